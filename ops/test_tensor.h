#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "tensor/buffer.h"
#include "tensor/stream.h"
#include "tensor/view.h"

// What op tests share: tensors that own their memory, the grid of instruction sets and threads, and
// derivatives by complex step. Included by tests only.
namespace lockstep::ops {

using Complex = std::complex<double>;

// n numbers of a distribution like activations: normal, standard deviation `scale`.
inline std::vector<double> random_values(std::int64_t n, std::string_view name, double scale = 1) {
  const CounterRng rng(1234, name);
  std::vector<double> out;
  for (std::int64_t i = 0; i < n; ++i) {
    out.push_back(scale * rng.truncated_normal(static_cast<std::uint64_t>(i), 4));
  }
  return out;
}

// Elements between the rows of a test tensor.
struct Gap {
  std::int64_t elements = 0;
};

// A tensor of f32, bf16 or i32 with its memory; each row may be followed by a gap, filled with a
// sentinel whose survival intact() tells.
class TestTensor {
 public:
  TestTensor(DType dtype, std::initializer_list<std::int64_t> shape, Gap gap = {})
      : dtype_(dtype), gap_(gap.elements) {
    std::int64_t rows = 1;
    std::vector<std::int64_t> dims(shape);
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
    rows_ = rows;
    width_ = dims.back();
    memory_ = Buffer(rows * (width_ + gap_) * static_cast<std::int64_t>(size_of(dtype)), "test");
    std::memset(memory_.data(), kSentinel, static_cast<std::size_t>(memory_.bytes()));
    const View flat(memory_.data(), dtype, {rows, width_ + gap_});
    view_ = flat.slice(1, 0, width_);
    if (dims.size() == 1) view_ = view_.reshape({width_});
    if (dims.size() == 3) view_ = view_.split(0, dims[0]);
  }
  // Rounded to the dtype.
  TestTensor(DType dtype, std::initializer_list<std::int64_t> shape,
             const std::vector<double>& values, Gap gap = {})
      : TestTensor(dtype, shape, gap) {
    for (std::int64_t i = 0; i < rows_ * width_; ++i) set(i, values[static_cast<std::size_t>(i)]);
  }

  [[nodiscard]] const View& view() const { return view_; }

  // The elements as T, rows joined.
  template <class T = double>
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> out;
    for (std::int64_t i = 0; i < rows_ * width_; ++i) out.push_back(static_cast<T>(get(i)));
    return out;
  }
  // All memory, gaps included, to compare bit for bit.
  [[nodiscard]] std::vector<unsigned char> bytes() const {
    const auto* begin = static_cast<const unsigned char*>(memory_.data());
    return {begin, begin + memory_.bytes()};
  }
  [[nodiscard]] bool intact() const {
    const auto element = static_cast<std::int64_t>(size_of(dtype_));
    const auto* at = static_cast<const unsigned char*>(memory_.data());
    for (std::int64_t row = 0; row < rows_; ++row) {
      for (std::int64_t i = width_ * element; i < (width_ + gap_) * element; ++i) {
        if (at[row * (width_ + gap_) * element + i] != kSentinel) return false;
      }
    }
    return true;
  }

 private:
  static constexpr unsigned char kSentinel = 0x5a;

  [[nodiscard]] std::int64_t offset(std::int64_t i) const {
    return i / width_ * (width_ + gap_) + i % width_;
  }
  void set(std::int64_t i, double value) {
    void* at = memory_.data();
    if (dtype_ == DType::kF32) static_cast<float*>(at)[offset(i)] = static_cast<float>(value);
    if (dtype_ == DType::kBF16) {
      static_cast<bf16*>(at)[offset(i)] = to_bf16(static_cast<float>(value));
    }
    if (dtype_ == DType::kI32) {
      static_cast<std::int32_t*>(at)[offset(i)] = static_cast<std::int32_t>(value);
    }
  }
  [[nodiscard]] double get(std::int64_t i) const {
    const void* at = memory_.data();
    if (dtype_ == DType::kF32) return static_cast<double>(static_cast<const float*>(at)[offset(i)]);
    if (dtype_ == DType::kBF16) {
      return static_cast<double>(to_float(static_cast<const bf16*>(at)[offset(i)]));
    }
    return static_cast<double>(static_cast<const std::int32_t*>(at)[offset(i)]);
  }

  DType dtype_;
  std::int64_t gap_;
  std::int64_t rows_ = 0;
  std::int64_t width_ = 0;
  Buffer memory_;
  View view_;
};

// Calls body(stream) for every instruction set of this machine with 1 thread, and for the best with
// 2 and 3.
inline void for_each_stream(const std::function<void(CpuStream&)>& body) {
  for (const Isa isa : kIsas) {
    if (isa > best_isa()) continue;
    CpuStream stream(1, isa);
    body(stream);
  }
  for (const int threads : {2, 3}) {
    CpuStream stream(threads);
    body(stream);
  }
}

// d f / d x[i] of a real function written for complex numbers: Im f(x + i h) / h, exact to
// rounding (Squire & Trapp 1998).
inline double complex_step(const std::function<Complex(const std::vector<Complex>&)>& f,
                           std::vector<Complex> x, std::size_t i) {
  constexpr double kStep = 1e-30;
  x[i] += Complex(0, kStep);
  return f(x).imag() / kStep;
}

inline std::vector<Complex> to_complex(const std::vector<double>& x) {
  return std::vector<Complex>(x.begin(), x.end());
}

}  // namespace lockstep::ops
