#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "model/init.h"
#include "model/model.h"
#include "model/training_scratch.h"

// Counts every allocation of this executable.
namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
// Not inlined: g++ 12 would see a free() of what some operator new returned, and warn.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace lockstep {
namespace {

TEST(Model, AStepAllocatesNothing) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const Remat remat : {Remat::kNone, Remat::kFull}) {
      ModelConfig config;
      config.preset = Preset::k14M;
      config.apply_preset();
      config.vocab_size = 500;
      config.eos_token_id = 0;
      config.pad_token_id = 1;
      CpuStream stream(2);
      Model model(config, {.precision = precision, .remat = remat}, stream);
      initialise(model.table(), {.seed = 1}, model.weights(), stream.pool());
      std::vector<std::int32_t> tokens(2 * 50);
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * 7 % 500);
      const View ids(tokens.data(), DType::kI32, {2, 50});
      std::vector<float> memory(static_cast<std::size_t>(model.table().size()));
      const View gradient(memory.data(), DType::kF32, {model.table().size()});
      const auto step = [&] {
        model.refresh();
        static_cast<void>(
            model.forward_backward({.tokens = ids, .targets = ids, .segments = ids}, {}, gradient));
        return model.forward_backward({.tokens = ids, .targets = ids, .segments = ids}, {},
                                      gradient, ops::Accumulate::kAdd);
      };
      const LossSums first = step();
      const auto scratch = stream.scratch_bytes();
      const long before = allocations;
      const LossSums second = step();
      EXPECT_EQ(allocations - before, 0) << to_name(precision) << " " << to_name(remat);
      EXPECT_EQ(stream.scratch_bytes(), scratch);
      EXPECT_EQ(scratch, training_scratch_bytes(config, {2, 50}, precision, ops::Accumulate::kAdd,
                                                stream.isa(), 2));
      EXPECT_EQ(second.ce, first.ce);
    }
  }
}

}  // namespace
}  // namespace lockstep
