#pragma once

#include "tensor/stream.h"

namespace lockstep::ops {

// What the machine can do at most, measured on the spot with the stream's threads and instruction
// set: independent multiply-adds in registers, and a sum over memory far larger than the caches.
// Every MFU that this program prints is a share of these. Each number is the best of `repetitions`
// short runs.
struct MachinePeak {
  double bf16_flops = 0;  // flop/s: bf16 dot products or fp32 multiply-adds, whichever is faster
  double fp32_flops = 0;
  double read_bytes_per_s = 0;
};

// Takes about repetitions * 60 ms. `read` off leaves read_bytes_per_s at 0 and takes no memory.
enum class MeasureRead { kNo, kYes };
[[nodiscard]] MachinePeak measure_peak(CpuStream& stream, int repetitions, MeasureRead read);

}  // namespace lockstep::ops
