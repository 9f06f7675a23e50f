#pragma once

#include <cstdint>
#include <initializer_list>

#include "tensor/view.h"

// What every op's check() is made of. All throw kBug, the op's tag first:
// "[rms_norm_forward] y: f32 [2, 3], want f32 or bf16 [2, 4]".
namespace lockstep::ops {

enum class Types { kF32, kBF16, kF32OrBF16, kI32 };
enum class Rows { kContiguous, kStrided };  // kStrided: any strides but the last dim's, which is 1

// The view is there, has one of the types, the shape, and (kContiguous) no gaps. Every dim of a
// wanted shape must be positive.
void require(const char* op, const char* name, const View& view, Types types,
             std::initializer_list<std::int64_t> shape, Rows rows = Rows::kContiguous);

// The view is there and has this many dims, so that a check may read them.
void require_rank(const char* op, const char* name, const View& view, int rank);

// Both have the same dtype.
void require_same_type(const char* op, const char* a_name, const View& a, const char* b_name,
                       const View& b);

// No memory is shared: the spans from first to last element are apart, or both are column slices of
// one matrix that have no column in common.
void require_apart(const char* op, const char* a_name, const View& a, const char* b_name,
                   const View& b);

// As require_apart, or else exactly the same elements: same address, shape, strides and dtype.
void require_apart_or_same(const char* op, const char* a_name, const View& a, const char* b_name,
                           const View& b);

}  // namespace lockstep::ops
