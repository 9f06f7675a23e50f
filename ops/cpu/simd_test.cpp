#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "ops/cpu/simd_probe.h"

namespace lockstep::ops {
namespace {

const SimdProbe& probe(Isa isa) {
  return *by_isa(isa, &portable::simd_probe, &avx2::simd_probe, &avx512::simd_probe,
                 &avx512_bf16::simd_probe);
}

std::vector<Isa> isas() {
  std::vector<Isa> list;
  for (const Isa isa : kIsas) {
    if (isa <= best_isa()) list.push_back(isa);
  }
  return list;
}

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// Every 4099th of the 2^32 floats (a prime, so that exponents and low bits all vary), and the ends.
std::vector<float> floats_of_all_kinds() {
  std::vector<float> list = {0.0F,
                             -0.0F,
                             INFINITY,
                             -INFINITY,
                             NAN,
                             std::bit_cast<float>(0x7f800001U),
                             std::bit_cast<float>(0xff80ffffU),
                             std::numeric_limits<float>::max(),
                             std::numeric_limits<float>::denorm_min(),
                             std::numeric_limits<float>::min(),
                             std::bit_cast<float>(0x7f7f8000U),
                             std::bit_cast<float>(0x3f808000U),
                             std::bit_cast<float>(0x3f818000U)};
  for (std::uint64_t b = 0; b < (1ULL << 32U); b += 4099) {
    list.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
  }
  return list;
}

// The distance of two non-negative floats in units in the last place, subnormals included.
std::int64_t ulps(float a, float b) {
  return std::abs(static_cast<std::int64_t>(bits(a)) - static_cast<std::int64_t>(bits(b)));
}

TEST(Simd, StoresBf16AsTheScalarFunction) {
  const std::vector<float> x = floats_of_all_kinds();
  const auto n = static_cast<std::int64_t>(x.size());
  for (const Isa isa : isas()) {
    std::vector<bf16> y(x.size());
    std::vector<float> rounded(x.size());
    std::vector<float> back(x.size());
    probe(isa).to_bf16(y.data(), x.data(), n);
    probe(isa).round_bf16(rounded.data(), x.data(), n);
    probe(isa).from_bf16(back.data(), y.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i].bits, to_bf16(x[i]).bits) << name_of(isa) << " of " << bits(x[i]);
      ASSERT_EQ(bits(rounded[i]), bits(to_float(y[i]))) << name_of(isa);
      ASSERT_EQ(bits(back[i]), bits(to_float(y[i]))) << name_of(isa);
    }
  }
}

TEST(Simd, ExpIsWithinTwoUlpOverTheWholeRangeAndTheSameEverywhere) {
  std::vector<float> x = floats_of_all_kinds();
  for (int i = -110000; i <= 90000; ++i) x.push_back(static_cast<float>(i) * 1.0007e-3F);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> first(x.size());
  probe(Isa::kPortable).exp(first.data(), x.data(), n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto want = static_cast<float>(std::exp(static_cast<long double>(x[i])));
    if (std::isnan(x[i])) {
      ASSERT_TRUE(std::isnan(first[i]));
    } else {
      ASSERT_LE(ulps(first[i], want), 2) << "exp(" << x[i] << ") = " << first[i];
    }
  }
  for (const Isa isa : isas()) {
    std::vector<float> y(x.size());
    probe(isa).exp(y.data(), x.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) continue;
      ASSERT_EQ(bits(y[i]), bits(first[i])) << name_of(isa) << " " << x[i];
    }
  }
}

TEST(Simd, SigmoidIsWithinFourUlp) {
  // exp within 2, then a sum and a quotient of half a unit each, doubled at most by the binade.
  std::vector<float> x;
  for (int i = -8700; i <= 10000; ++i) x.push_back(static_cast<float>(i) * 0.01003F);
  for (const Isa isa : isas()) {
    std::vector<float> y(x.size());
    probe(isa).sigmoid(y.data(), x.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double want = 1.0L / (1.0L + std::exp(-static_cast<long double>(x[i])));
      ASSERT_LE(ulps(y[i], static_cast<float>(want)), 4) << name_of(isa) << " " << x[i];
    }
  }
  const float ends[4] = {-INFINITY, -200, 200, INFINITY};
  for (const Isa isa : isas()) {
    float y[4];
    probe(isa).sigmoid(y, ends, 4);
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_EQ(y[1], 0.0F);
    EXPECT_EQ(y[2], 1.0F);
    EXPECT_EQ(y[3], 1.0F);
  }
}

TEST(Simd, SumsAndArithmeticHaveTheSameBitsOnEveryInstructionSet) {
  const CounterRng rng(7, "simd");
  std::vector<float> a(160);
  std::vector<float> b(160);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(rng.uniform(2 * i) - 0.3);
    b[i] = static_cast<float>(rng.uniform(2 * i + 1) - 0.6);
  }
  float tree[16];
  for (int i = 0; i < 16; ++i) tree[i] = a[static_cast<std::size_t>(i)];
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) tree[i] += tree[i + half];
  }
  double wide = 0;
  for (int i = 0; i < 16; ++i) wide += static_cast<double>(a[static_cast<std::size_t>(i)]);
  for (const Isa isa : isas()) {
    std::vector<float> y(960);
    probe(isa).pairs(y.data(), a.data(), b.data(), 160);
    EXPECT_EQ(bits(probe(isa).hsum(a.data())), bits(tree[0]));
    EXPECT_EQ(probe(isa).hmax(a.data()), *std::max_element(a.begin(), a.begin() + 16));
    EXPECT_NEAR(probe(isa).hsum_wide(a.data()), wide, 1e-14);
    for (std::size_t i = 0; i < 160; ++i) {
      const float* out = y.data() + i / 16 * 96 + i % 16;
      ASSERT_EQ(out[0], std::min(a[i], b[i]));
      ASSERT_EQ(out[16], std::max(a[i], b[i]));
      ASSERT_EQ(out[32], std::sqrt(a[i] * a[i]));
      ASSERT_EQ(out[48], a[i] / b[i]);
      ASSERT_EQ(out[64], a[i] < b[i] ? a[i] : b[i]);
      ASSERT_EQ(out[80], ((a[i] + b[i]) - a[i]) * b[i]);
    }
  }
}

}  // namespace
}  // namespace lockstep::ops
