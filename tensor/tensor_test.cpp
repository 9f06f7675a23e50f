#include <gtest/gtest.h>

#include <vector>

#include "tensor/buffer.h"
#include "tensor/isa.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep {
namespace {

TEST(View, SlicesSplitsAndKeepsStrides) {
  std::vector<float> memory(2 * 3 * 8);
  const View x(memory.data(), DType::kF32, {2, 3, 8});
  EXPECT_EQ(x.size(), 48);
  const View right = x.slice(2, 4, 4);
  EXPECT_FALSE(right.contiguous());
  EXPECT_EQ(right.stride(1), 8);
  EXPECT_EQ(right.data<float>(), memory.data() + 4);
  const View heads = right.split_last(2);
  EXPECT_EQ(heads.rank(), 4);
  EXPECT_EQ(heads.dim(2), 2);
  EXPECT_EQ(heads.stride(2), 2);
  EXPECT_EQ(heads.stride(1), 8);
  EXPECT_EQ(x.reshape({6, 8}).dim(0), 6);
  EXPECT_THROW(static_cast<void>(right.reshape({24})), Error);
  EXPECT_THROW(static_cast<void>(x.slice(0, 1, 2)), Error);
  EXPECT_THROW(static_cast<void>(x.data<bf16>()), Error);
  EXPECT_EQ(x.describe(), "f32 [2, 3, 8]");
}

TEST(Arena, MeasuresWhatItThenBinds) {
  const auto layout = [](Arena& arena) {
    static_cast<void>(arena.take(DType::kBF16, {3}));
    return arena.take(DType::kF32, {5, 5});
  };
  Arena measure;
  EXPECT_FALSE(layout(measure).empty());
  EXPECT_EQ(measure.used(), 64 + 128);
  Buffer memory(measure.used(), "test");
  Arena arena(memory);
  const View view = layout(arena);
  EXPECT_EQ(view.raw(), static_cast<char*>(memory.data()) + 64);
  EXPECT_EQ(view.data<float>()[24], 0.0F);
  EXPECT_THROW(static_cast<void>(arena.take(DType::kF32, {1})), Error);
}

TEST(Buffer, MayLiveInAFileThatLeavesNoName) {
  Buffer buffer(1 << 20, "test", "/tmp");
  auto* values = static_cast<float*>(buffer.data());
  EXPECT_EQ(values[1000], 0.0F);
  values[1000] = 1.5F;
  Buffer moved = std::move(buffer);
  EXPECT_EQ(static_cast<float*>(moved.data())[1000], 1.5F);
  EXPECT_THROW(Buffer(64, "test", "/nowhere"), Error);
}

TEST(Isa, NamesGoBothWays) {
  for (const Isa isa : kIsas) EXPECT_EQ(isa_from_name(name_of(isa)), isa);
  EXPECT_THROW(static_cast<void>(isa_from_name("sse9")), Error);
}

TEST(Isa, TheDefaultIsSupported) { EXPECT_LE(default_isa(), best_isa()); }

TEST(CpuStream, ScratchGrowsAndStays) {
  CpuStream stream(1);
  void* first = stream.scratch(1000);
  EXPECT_EQ(stream.scratch(10), first);
  EXPECT_GE(stream.scratch_bytes(), 1000);
}

}  // namespace
}  // namespace lockstep
