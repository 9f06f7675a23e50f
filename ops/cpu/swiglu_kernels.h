#pragma once

#include <cstdint>

#include "ops/cpu/by_isa.h"

namespace lockstep::ops {

// Contiguous rows as the op's views.
struct SwiGluForwardRows {
  void* y;
  const void* gate_up;
  std::int64_t width;  // F
};
struct SwiGluBackwardRows {
  void* dgate_up;
  const void* dy;
  const void* gate_up;
  std::int64_t width;
};

// Over rows [begin, end); the same bits on every instruction set. Index 0 is f32, 1 is bf16.
struct SwiGluKernels {
  void (*forward[2])(const SwiGluForwardRows& rows, std::int64_t begin, std::int64_t end);
  void (*backward[2])(const SwiGluBackwardRows& rows, std::int64_t begin, std::int64_t end);
};

LOCKSTEP_FOR_EACH_ISA(extern const SwiGluKernels swiglu_kernels;)

}  // namespace lockstep::ops
