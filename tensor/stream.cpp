#include "tensor/stream.h"

#include "base/error.h"

namespace lockstep {

CpuStream::CpuStream(int threads, Isa isa)
    : pool_(std::make_unique<ThreadPool>(threads)), isa_(isa) {
  if (isa > best_isa()) {
    fail(ErrorKind::kConfig, "cpu.isa = ", name_of(isa), ": this CPU supports at most ",
         name_of(best_isa()));
  }
}

void* CpuStream::scratch(std::int64_t bytes) {
  if (scratch_.bytes() < bytes) {
    scratch_ = Buffer();
    scratch_ = Buffer(bytes, "kernel scratch");
  }
  return scratch_.data();
}

}  // namespace lockstep
