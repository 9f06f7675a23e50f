#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/dtype.h"
#include "base/error.h"

namespace lockstep {

// A borrowed tensor of up to four dims: pointer, dtype, shape, strides (in elements). The last dim
// is always contiguous. Owns nothing; valid as long as the memory is. A default View is empty
// (absent).
class View {
 public:
  static constexpr int kMaxRank = 4;

  View() = default;
  // Contiguous.
  View(void* data, DType dtype, std::initializer_list<std::int64_t> shape);

  [[nodiscard]] bool empty() const { return data_ == nullptr; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::int64_t dim(int i) const { return shape_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::int64_t stride(int i) const { return stride_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::int64_t size() const;  // number of elements
  [[nodiscard]] std::int64_t bytes() const {
    return size() * static_cast<std::int64_t>(size_of(dtype_));
  }
  [[nodiscard]] bool contiguous() const;
  [[nodiscard]] void* raw() const { return data_; }

  // The elements as T. Throws kBug when T is not the dtype.
  template <class T>
  [[nodiscard]] T* data() const {
    LOCKSTEP_CHECK(kDTypeOf<T> == dtype_, "view holds ", name_of(dtype_));
    return static_cast<T*>(data_);
  }

  // dims [begin, begin + count) of dim i; shares memory. Throws kBug when out of range.
  [[nodiscard]] View slice(int i, std::int64_t begin, std::int64_t count) const;
  // The same elements with another shape; must be contiguous, same size.
  [[nodiscard]] View reshape(std::initializer_list<std::int64_t> shape) const;
  // The last dim n split into (n / inner, inner); strides of the others stay.
  [[nodiscard]] View split_last(std::int64_t inner) const;
  // Dim i split into (outer, n / outer); strides follow.
  [[nodiscard]] View split(int i, std::int64_t outer) const;

  [[nodiscard]] bool same_shape(const View& other) const;
  // "bf16 [2, 512, 768]", for messages.
  [[nodiscard]] std::string describe() const;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> shape_{};
  std::array<std::int64_t, kMaxRank> stride_{};
};

}  // namespace lockstep
