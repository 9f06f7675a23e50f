#include "ops/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "ops/ref/adamw.h"
#include "ops/run.h"
#include "ops/test_tensor.h"

namespace lockstep::ops {
namespace {

// A packed weight whose memory holds 0xff at first, what no packing writes.
struct PackedMemory {
  PackedMemory(std::int64_t out, std::int64_t in, DType dtype, Isa isa) {
    Arena measure;
    static_cast<void>(PackedWeight(out, in, dtype, isa, kUse, measure));
    memory = Buffer(measure.peak(), "packed weight");
    std::memset(memory.data(), 0xff, static_cast<std::size_t>(memory.bytes()));
    Arena arena(memory);
    packed = PackedWeight(out, in, dtype, isa, kUse, arena);
  }
  [[nodiscard]] std::string bytes() const {
    return {static_cast<const char*>(memory.data()), static_cast<std::size_t>(memory.bytes())};
  }
  static constexpr auto kUse = PackedWeight::Use::kForwardAndBackward;
  Buffer memory;
  PackedWeight packed;
};

TEST(AdamW, RefusesWrongShapesAndAliases) {
  const TestTensor p(DType::kF32, {8});
  const TestTensor m(DType::kF32, {8});
  const TestTensor v(DType::kF32, {8});
  const TestTensor g(DType::kF32, {8});
  const TestTensor g16(DType::kBF16, {8});
  AdamWStep op{.p = p.view(), .m = m.view(), .v = v.view(), .g = g.view()};
  op.check();
  op.g = g16.view();
  EXPECT_THROW(op.check(), Error);
  op.g = p.view();
  EXPECT_THROW(op.check(), Error);
  op.g = g.view().slice(0, 0, 7);
  EXPECT_THROW(op.check(), Error);
}

TEST(AdamW, RefusesAPackedWeightOfAnotherSize) {
  CpuStream stream(1);
  const PackedMemory memory(5, 3, DType::kF32, stream.isa());
  const TestTensor p(DType::kF32, {15});
  const TestTensor m(DType::kF32, {15});
  const TestTensor v(DType::kF32, {15});
  const TestTensor g(DType::kF32, {15});
  AdamWStep op{
      .p = p.view(), .m = m.view(), .v = v.view(), .g = g.view(), .packed = &memory.packed};
  op.check();
  for (View* view : {&op.p, &op.m, &op.v, &op.g}) *view = view->slice(0, 0, 14);
  EXPECT_THROW(op.check(), Error);
}

TEST(AdamW, WritesAPackedWeightAsPackingItAfterwardsWould) {
  struct Shape {
    std::int64_t out, in;
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto [out, in] :
         {Shape{1, 1}, Shape{2, 5}, Shape{48, 48}, Shape{50, 33}, Shape{200, 97}}) {
      for_each_stream([&](CpuStream& stream) {
        const std::int64_t n = out * in;
        const TestTensor p(DType::kF32, {n}, random_values(n, "p"));
        const TestTensor m(DType::kF32, {n}, random_values(n, "m"));
        const TestTensor v(DType::kF32, {n}, std::vector<double>(static_cast<std::size_t>(n), 0.5));
        const TestTensor g(DType::kF32, {n}, random_values(n, "g"));
        const PackedMemory memory(out, in, dtype, stream.isa());
        const PackedMemory want(out, in, dtype, stream.isa());
        AdamWStep op{.p = p.view(), .m = m.view(), .v = v.view(), .g = g.view()};
        op.step_size = 0.25F;
        op.packed = &memory.packed;
        run(stream, op);
        run(stream, PackWeight{&want.packed, View(p.view().raw(), DType::kF32, {out, in})});
        ASSERT_EQ(memory.bytes(), want.bytes())
            << name_of(stream.isa()) << " " << name_of(dtype) << " " << out << " x " << in;
        ASSERT_NE(memory.bytes(), PackedMemory(out, in, dtype, stream.isa()).bytes());
      });
    }
  }
}

TEST(AdamW, TheFirstStepMovesByTheLearningRate) {
  // With m = v = 0 the corrected step is lr g / |g|.
  const TestTensor p(DType::kF32, {2}, {1, 1});
  const TestTensor m(DType::kF32, {2}, {0, 0});
  const TestTensor v(DType::kF32, {2}, {0, 0});
  const TestTensor g(DType::kF32, {2}, {5, -0.25});
  CpuStream stream(1);
  run(stream, AdamWStep{.p = p.view(),
                        .m = m.view(),
                        .v = v.view(),
                        .g = g.view(),
                        .step_size = 0.125F / 0.1F,
                        .inv_sqrt_correction = static_cast<float>(1 / std::sqrt(0.05)),
                        .eps = 0});
  EXPECT_NEAR(p.values()[0], 0.875, 1e-6);
  EXPECT_NEAR(p.values()[1], 1.125, 1e-6);
  EXPECT_FLOAT_EQ(m.values<float>()[0], 0.5F);
  EXPECT_FLOAT_EQ(v.values<float>()[0], 1.25F);
}

TEST(AdamW, IsTheScalarRuleBitForBitOverManyStepsOnEveryInstructionSetAndAnyThreads) {
  for (const std::int64_t n : {1, 7, 8, 9, 127, 40000}) {
    for_each_stream([&](CpuStream& stream) {
      const TestTensor p(DType::kF32, {n}, random_values(n, "p"));
      const TestTensor m(DType::kF32, {n}, std::vector<double>(static_cast<std::size_t>(n)));
      const TestTensor v(DType::kF32, {n}, std::vector<double>(static_cast<std::size_t>(n)));
      std::vector<ref::AdamWElement<float>> want;
      for (const float value : p.values<float>()) want.push_back({value, 0, 0});
      for (int t = 1; t <= 4; ++t) {
        const TestTensor g(DType::kF32, {n}, random_values(n, concat("g", t), 0.01 * t));
        const AdamWStep op{
            .p = p.view(),
            .m = m.view(),
            .v = v.view(),
            .g = g.view(),
            .decay = 0.9997F,
            .step_size = static_cast<float>(3e-3 / (1 - std::pow(0.9, t))),
            .inv_sqrt_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(0.95, t))),
            .grad_scale = 0.7F};
        run(stream, op);
        const auto grads = g.values<float>();
        const auto got_p = p.values<float>();
        const auto got_m = m.values<float>();
        const auto got_v = v.values<float>();
        for (std::size_t i = 0; i < want.size(); ++i) {
          want[i] = ref::adamw_step(want[i], grads[i], op);
          ASSERT_EQ(got_p[i], want[i].p) << name_of(stream.isa()) << " at " << i;
          ASSERT_EQ(got_m[i], want[i].m);
          ASSERT_EQ(got_v[i], want[i].v);
        }
      }
    });
  }
}

TEST(AdamW, StaysNearTheRuleInDoublePrecision) {
  constexpr std::int64_t kCount = 100;
  const TestTensor p(DType::kF32, {kCount}, random_values(kCount, "p"));
  const TestTensor m(DType::kF32, {kCount}, std::vector<double>(kCount));
  const TestTensor v(DType::kF32, {kCount}, std::vector<double>(kCount));
  std::vector<ref::AdamWElement<double>> want;
  for (const double value : p.values()) want.push_back({value, 0, 0});
  CpuStream stream(1);
  for (int t = 1; t <= 50; ++t) {
    const TestTensor g(DType::kF32, {kCount}, random_values(kCount, concat("g", t)));
    const AdamWStep op{
        .p = p.view(),
        .m = m.view(),
        .v = v.view(),
        .g = g.view(),
        .decay = 0.9999F,
        .step_size = static_cast<float>(1e-3 / (1 - std::pow(0.9, t))),
        .inv_sqrt_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(0.95, t)))};
    run(stream, op);
    for (std::size_t i = 0; i < want.size(); ++i) {
      want[i] = ref::adamw_step(want[i], g.values()[i], op);
    }
  }
  // 50 steps with three roundings of p (|p| < 4) each, and of updates that are 2000 times smaller.
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(p.values()[i], want[i].p, 150 * 4 * std::ldexp(1.0, -24));
  }
}

}  // namespace
}  // namespace lockstep::ops
