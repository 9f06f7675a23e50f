#include "ops/contract.h"

#include <string>

#include "base/error.h"

namespace lockstep::ops {
namespace {

const char* text_of(Types types) {
  switch (types) {
    case Types::kF32:
      return "f32";
    case Types::kBF16:
      return "bf16";
    case Types::kF32OrBF16:
      return "f32 or bf16";
    case Types::kI32:
      return "i32";
  }
  return "?";
}

bool has_type(const View& view, Types types) {
  const DType dtype = view.dtype();
  switch (types) {
    case Types::kF32:
      return dtype == DType::kF32;
    case Types::kBF16:
      return dtype == DType::kBF16;
    case Types::kF32OrBF16:
      return dtype == DType::kF32 || dtype == DType::kBF16;
    case Types::kI32:
      return dtype == DType::kI32;
  }
  return false;
}

bool has_shape(const View& view, std::initializer_list<std::int64_t> shape) {
  if (static_cast<std::size_t>(view.rank()) != shape.size()) return false;
  int i = 0;
  for (const std::int64_t dim : shape) {
    if (dim <= 0 || view.dim(i++) != dim) return false;
  }
  return true;
}

std::string text_of(std::initializer_list<std::int64_t> shape) {
  std::string text;
  for (const std::int64_t dim : shape) text += concat(text.empty() ? "[" : ", ", dim);
  return text + "]";
}

struct Span {
  const char* begin;
  const char* end;
};

Span span_of(const View& view) {
  std::int64_t last = 0;
  for (int i = 0; i < view.rank(); ++i) last += (view.dim(i) - 1) * view.stride(i);
  const auto* begin = static_cast<const char*>(view.raw());
  return {begin, begin + (last + 1) * static_cast<std::int64_t>(size_of(view.dtype()))};
}

// Column slices of one matrix: rows interleave, but columns do not meet.
bool side_by_side(const View& a, const View& b) {
  if (a.rank() < 2 || b.rank() < 2) return false;
  const auto row_bytes = [](const View& view) {
    return view.stride(view.rank() - 2) * static_cast<std::int64_t>(size_of(view.dtype()));
  };
  const auto width = [](const View& view) {
    return view.dim(view.rank() - 1) * static_cast<std::int64_t>(size_of(view.dtype()));
  };
  const std::int64_t row = row_bytes(a);
  if (row <= 0 || row_bytes(b) != row) return false;
  for (const View* view : {&a, &b}) {
    for (int i = 0; i < view->rank() - 2; ++i) {
      if (view->stride(i) % view->stride(view->rank() - 2) != 0) return false;
    }
  }
  const std::int64_t shift = static_cast<const char*>(b.raw()) - static_cast<const char*>(a.raw());
  const std::int64_t column = ((shift % row) + row) % row;
  return width(a) <= column && column + width(b) <= row;
}

bool apart(const View& a, const View& b) {
  if (a.empty() || b.empty()) return true;
  const Span left = span_of(a);
  const Span right = span_of(b);
  return left.end <= right.begin || right.end <= left.begin || side_by_side(a, b);
}

bool same(const View& a, const View& b) {
  if (a.raw() != b.raw() || a.dtype() != b.dtype() || !a.same_shape(b)) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) > 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

}  // namespace

void require(const char* op, const char* name, const View& view, Types types,
             std::initializer_list<std::int64_t> shape, Rows rows) {
  if (view.empty() || !has_type(view, types) || !has_shape(view, shape)) {
    fail(ErrorKind::kBug, "[", op, "] ", name, ": ", view.describe(), ", want ", text_of(types),
         " ", text_of(shape));
  }
  if (rows == Rows::kContiguous ? !view.contiguous() : view.stride(view.rank() - 1) != 1) {
    fail(ErrorKind::kBug, "[", op, "] ", name, ": ", view.describe(),
         rows == Rows::kContiguous ? " is strided, want it contiguous"
                                   : " has a strided last dim, want it contiguous");
  }
}

void require_rank(const char* op, const char* name, const View& view, int rank) {
  if (view.empty() || view.rank() != rank) {
    fail(ErrorKind::kBug, "[", op, "] ", name, ": ", view.describe(), ", want ", rank, " dims");
  }
}

void require_same_type(const char* op, const char* a_name, const View& a, const char* b_name,
                       const View& b) {
  if (a.dtype() != b.dtype()) {
    fail(ErrorKind::kBug, "[", op, "] ", a_name, ": ", a.describe(), ", want the dtype of ", b_name,
         ": ", b.describe());
  }
}

void require_apart(const char* op, const char* a_name, const View& a, const char* b_name,
                   const View& b) {
  if (!apart(a, b)) {
    fail(ErrorKind::kBug, "[", op, "] ", a_name, ": ", a.describe(), " shares memory with ", b_name,
         ": ", b.describe(), ", want them apart");
  }
}

void require_apart_or_same(const char* op, const char* a_name, const View& a, const char* b_name,
                           const View& b) {
  if (!same(a, b)) require_apart(op, a_name, a, b_name, b);
}

}  // namespace lockstep::ops
