#include <gtest/gtest.h>

#include <vector>

#include <cmath>
#include <limits>

#include "base/dtype.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"

namespace lockstep {
namespace {

TEST(BF16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(to_bf16(1.0F).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.0F + 0x1p-8F).bits, 0x3f80);      // tie, to even
  EXPECT_EQ(to_bf16(1.0F + 3 * 0x1p-8F).bits, 0x3f82);  // tie, to even
  EXPECT_EQ(to_bf16(1.0F + 0x1p-8F + 0x1p-20F).bits, 0x3f81);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_EQ(to_float(to_bf16(-0.0F)), 0.0F);
}

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, MatchesThePublishedVectors) {
  using V = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0}, {0, 0, 0, 0}), (V{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (V{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (V{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, TruncatedNormalHasTheRightMoments) {
  const CounterRng rng(7, "weight");
  double sum = 0;
  double squares = 0;
  double largest = 0;
  constexpr int kCount = 200000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = rng.truncated_normal(i, 3.0);
    sum += x;
    squares += x * x;
    largest = std::max(largest, std::abs(x));
  }
  // Standard normal cut at 3: variance 1 - 2*3*pdf(3)/(1 - 2*cdf(-3)) = 0.97334.
  EXPECT_NEAR(sum / kCount, 0.0, 5.0 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 0.97334, 0.02);
  EXPECT_LE(largest, 3.0);
  EXPECT_NE(rng.u64(0), CounterRng(7, "other").u64(0));
  EXPECT_NE(rng.u64(0), CounterRng(8, "weight").u64(0));
}

TEST(CounterRng, ManyTruncatedNormalsAreTheSingleOnes) {
  const CounterRng rng(7, "weight");
  std::vector<double> many(1000);
  rng.truncated_normals(0xFFFFFFF0, 3.0, many);  // crosses a 32-bit word
  for (std::size_t i = 0; i < many.size(); ++i) {
    ASSERT_EQ(many[i], rng.truncated_normal(0xFFFFFFF0 + i, 3.0)) << i;
  }
}

TEST(NormalQuantile, InvertsTheDistributionFunction) {
  for (const double p : {1e-300, 1e-12, 1e-4, 0.02425, 0.3, 0.5, 0.8, 0.999}) {
    const double x = normal_quantile(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1.0, 1e-10) << p;
  }
}

TEST(Hash, PiecesGiveTheDigestOfTheWhole) {
  Hasher128 hasher;
  hasher.add("lock");
  hasher.add("step");
  EXPECT_EQ(hasher.hex(), hash128_hex("lockstep"));
  EXPECT_EQ(hash128_hex("").size(), 32U);
  EXPECT_EQ(hash128_hex(""), "99aa06d3014798d86001c324468d497f");  // xxhsum -H2 of nothing
}

TEST(Json, RefusesWhatIsNotStrict) {
  EXPECT_EQ(parse_json(R"({"a": [1, 2.5, "x"]})", "t")["a"][0], 1);
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const std::string invalid_utf8 = "\"\xff\"";
  for (const std::string& text :
       {std::string(R"({"a":1,"a":2})"), deep, invalid_utf8, std::string("{} x"),
        std::string("NaN"), std::string("// c\n1"), std::string(), std::string("[1,]"),
        std::string(200000, '['), std::string("{}\0 x", 5)}) {
    try {
      static_cast<void>(parse_json(text, "file.json"));
      ADD_FAILURE() << printable(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_NE(std::string(error.what()).find("file.json"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(Text, FormatsAndSuggests) {
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_count(7298600000.0), "7.3B");
  EXPECT_EQ(human_seconds(185), "3m05s");
  EXPECT_EQ(with_commas(1413814), "1,413,814");
  EXPECT_EQ(with_commas(-100), "-100");
  const std::vector<std::string> names = {"optim.lr", "optim.weight_decay"};
  EXPECT_EQ(nearest_name("optim.lrr", names), "optim.lr");
  EXPECT_EQ(nearest_name("zzzzzzzz", names), "");
  EXPECT_EQ(printable("a\x1b[31m\nb\xff\xc2\x85"), "a\\x1b[31m\\nb\\xff\\xc2\\x85");
  EXPECT_TRUE(is_valid_utf8("gr\xc3\xbc\xc3\x9f"));
  EXPECT_FALSE(is_valid_utf8("\xed\xa0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xc0\x80"));
}

TEST(Errors, EveryKindHasItsExitCode) {
  EXPECT_EQ(exit_code(ErrorKind::kBug), 1);
  EXPECT_EQ(exit_code(ErrorKind::kConfig), 2);
  EXPECT_EQ(exit_code(ErrorKind::kInput), 2);
  EXPECT_EQ(exit_code(ErrorKind::kData), 3);
  EXPECT_EQ(exit_code(ErrorKind::kNumeric), 4);
  EXPECT_EQ(exit_code(ErrorKind::kIo), 5);
  EXPECT_EQ(exit_code(ErrorKind::kPreempted), 75);
}

}  // namespace
}  // namespace lockstep
