#include "tensor/view.h"

namespace lockstep {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

View::View(void* data, DType dtype, std::initializer_list<std::int64_t> shape)
    : data_(data), dtype_(dtype), rank_(static_cast<int>(shape.size())) {
  LOCKSTEP_CHECK(shape.size() <= kMaxRank, "rank ", shape.size());
  std::size_t i = 0;
  for (const auto dim : shape) {
    LOCKSTEP_CHECK(dim >= 0, "dim ", dim);
    shape_[i++] = dim;
  }
  std::int64_t stride = 1;
  for (int d = rank_ - 1; d >= 0; --d) {
    stride_[at(d)] = stride;
    stride *= shape_[at(d)];
  }
}

std::int64_t View::size() const {
  std::int64_t n = 1;
  for (int d = 0; d < rank_; ++d) n *= shape_[at(d)];
  return n;
}

bool View::contiguous() const {
  std::int64_t stride = 1;
  for (int d = rank_ - 1; d >= 0; --d) {
    if (shape_[at(d)] != 1 && stride_[at(d)] != stride) return false;
    stride *= shape_[at(d)];
  }
  return true;
}

View View::slice(int i, std::int64_t begin, std::int64_t count) const {
  LOCKSTEP_CHECK(i >= 0 && i < rank_ && begin >= 0 && count >= 0 && begin + count <= dim(i),
                 "slice [", begin, ", ", begin + count, ") of dim ", i, " of ", describe());
  View out = *this;
  out.data_ =
      static_cast<char*>(data_) + begin * stride(i) * static_cast<std::int64_t>(size_of(dtype_));
  out.shape_[at(i)] = count;
  return out;
}

View View::reshape(std::initializer_list<std::int64_t> shape) const {
  const View out(data_, dtype_, shape);
  LOCKSTEP_CHECK(contiguous() && out.size() == size(), describe(), " as ", out.describe());
  return out;
}

View View::split_last(std::int64_t inner) const { return split(rank_ - 1, dim(rank_ - 1) / inner); }

View View::split(int i, std::int64_t outer) const {
  LOCKSTEP_CHECK(rank_ < kMaxRank && i >= 0 && i < rank_ && outer > 0 && dim(i) % outer == 0,
                 "dim ", i, " of ", describe(), " into ", outer);
  View out = *this;
  out.rank_ = rank_ + 1;
  for (int d = rank_; d > i + 1; --d) {
    out.shape_[at(d)] = shape_[at(d - 1)];
    out.stride_[at(d)] = stride_[at(d - 1)];
  }
  const std::int64_t inner = dim(i) / outer;
  out.shape_[at(i)] = outer;
  out.stride_[at(i)] = stride(i) * inner;
  out.shape_[at(i + 1)] = inner;
  out.stride_[at(i + 1)] = stride(i);
  return out;
}

bool View::same_shape(const View& other) const {
  if (rank_ != other.rank_) return false;
  for (int d = 0; d < rank_; ++d) {
    if (shape_[at(d)] != other.shape_[at(d)]) return false;
  }
  return true;
}

std::string View::describe() const {
  if (empty()) return "absent";
  std::string text = concat(name_of(dtype_), " [");
  for (int d = 0; d < rank_; ++d) text += concat(d == 0 ? "" : ", ", dim(d));
  return text + "]";
}

}  // namespace lockstep
