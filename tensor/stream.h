#pragma once

#include <cstdint>
#include <memory>

#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/isa.h"
#include "tensor/trace.h"

namespace lockstep {

// Where CPU ops run: a thread pool, the instruction set chosen once for the process, and scratch
// memory that kernels use between two lines of one op (grown on first use, never in a later step of
// the same shapes). Ops run at once, in order. One op at a time.
class CpuStream {
 public:
  // Throws kConfig when threads < 1 or the CPU lacks the instruction set.
  explicit CpuStream(int threads, Isa isa = default_isa());

  [[nodiscard]] ThreadPool& pool() { return *pool_; }
  [[nodiscard]] Isa isa() const { return isa_; }
  // At least `bytes`, aligned to 64; contents undefined; the next call may hand out the same
  // memory.
  [[nodiscard]] void* scratch(std::int64_t bytes);
  [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_.bytes(); }

  // Where ops are recorded; null (the default) records nothing. Borrowed.
  [[nodiscard]] Trace* trace() const { return trace_; }
  void set_trace(Trace* trace) { trace_ = trace; }

 private:
  std::unique_ptr<ThreadPool> pool_;
  Isa isa_;
  Buffer scratch_;
  Trace* trace_ = nullptr;
};

}  // namespace lockstep
