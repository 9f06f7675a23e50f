#include "data/order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "base/error.h"
#include "data/feistel.h"
#include "data/golden_file.h"
#include "data/pcg64.h"
#include "data/shuffle.h"

namespace lockstep {
namespace {

std::vector<std::uint64_t> whole(const OrderSpec& spec) {
  const auto order = make_order(FileSystem::real(), spec);
  std::vector<std::uint64_t> out(spec.instances);
  for (std::uint64_t i = 0; i < spec.instances; ++i) out[i] = order->instance(i);
  return out;
}

void expect_bijection(std::uint64_t n, std::uint64_t seed) {
  const FeistelPermutation permutation(n, seed, 1);
  std::vector<bool> seen(n, false);
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto instance = permutation(i);
    ASSERT_LT(instance, n);
    ASSERT_FALSE(seen[instance]) << "n " << n << " position " << i;
    seen[instance] = true;
  }
}

TEST(Pcg64, EqualsNumPy) {
  const std::array<std::uint32_t, 8> words = {259841036,  948304427,  3168892027, 898866042,
                                              2053364707, 1374419637, 1504797147, 2240024781};
  EXPECT_EQ(seed_sequence_words(34522), words);
  Pcg64 olmo(34522);
  EXPECT_EQ(olmo.u64(), 0xf4fbe23781d18313U);
  EXPECT_EQ(olmo.u64(), 0x43d3215968d035baU);
  EXPECT_EQ(olmo.u64(), 0x14e0d1d8e68017b9U);
  Pcg64 one(1);
  const Json golden = golden_file("olmo_core_misc.json");
  for (const auto& value : golden.at("pcg64_seed1_raw_u64")) {
    EXPECT_EQ(one.u64(), value.get<std::uint64_t>());
  }
}

TEST(Pcg64, TakesSeedsOfMoreThan32Bits) {
  // NumPy 1.24.2: PCG64(2**40 + 7).random_raw(2).
  Pcg64 random((std::uint64_t{1} << 40U) + 7);
  EXPECT_EQ(random.u64(), 0xd46e9e2034de21aaU);
  EXPECT_EQ(random.u64(), 0x415badc99c087675U);
}

TEST(OlmoCoreOrder, EqualsNumPyOnEveryGoldenCase) {
  const Json golden = golden_file("olmo_core_order.json");
  for (const auto& one : golden.at("cases")) {
    const OrderSpec spec = {.kind = OrderKind::kOlmoCore,
                            .seed = one.at("seed"),
                            .epoch = one.at("epoch"),
                            .instances = one.at("n"),
                            .cache_directory = ""};
    const auto found = whole(spec);
    if (one.contains("order")) {
      EXPECT_EQ(found, one.at("order").get<std::vector<std::uint64_t>>()) << one.at("n");
      continue;
    }
    const auto first = one.at("first").get<std::vector<std::uint64_t>>();
    const auto last = one.at("last").get<std::vector<std::uint64_t>>();
    EXPECT_TRUE(std::equal(first.begin(), first.end(), found.begin()));
    EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), found.rbegin()));
  }
}

TEST(OlmoCoreOrder, EqualsOlmoCoreItself) {
  const Json golden = golden_file("olmo_core_misc.json");
  const auto order_of = [](std::uint64_t n, std::uint64_t seed) {
    return whole({OrderKind::kOlmoCore, seed, 1, n, ""});
  };
  EXPECT_EQ(order_of(20, 0), golden.at("order_n20_seed0_epoch1").get<std::vector<std::uint64_t>>());
  EXPECT_EQ(order_of(20, 34521),
            golden.at("order_n20_seed34521_epoch1").get<std::vector<std::uint64_t>>());
  const auto large = order_of(100003, 34521);
  const Json& ends = golden.at("order_n100003_seed34521_epoch1");
  const auto head = ends.at("head").get<std::vector<std::uint64_t>>();
  const auto tail = ends.at("tail").get<std::vector<std::uint64_t>>();
  EXPECT_TRUE(std::equal(head.begin(), head.end(), large.begin()));
  EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), large.rbegin()));
}

TEST(FeistelOrder, IsABijectionAtEverySizeTo5000) {
  for (std::uint64_t n = 1; n <= 5000; ++n) expect_bijection(n, n % 3);
}

TEST(FeistelOrder, IsABijectionAroundPowersOfTwo) {
  for (const unsigned bits : {16U, 18U}) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    for (const std::uint64_t n : {power - 2, power - 1, power, power + 1, power + 2}) {
      expect_bijection(n, 34521);
    }
  }
}

TEST(FeistelOrder, GivesAnyPositionOfALargeEpochAtOnce) {
  const std::uint64_t n = 723'872'768;
  const FeistelPermutation permutation(n, 34521, 1);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 2000; ++i) seen.insert(permutation(i * (n / 2000)));
  EXPECT_EQ(seen.size(), 2000U);
  EXPECT_LT(*seen.rbegin(), n);
  EXPECT_GT(*seen.rbegin(), n - n / 100);  // 1 - 0.99^2000 = 1 - 2e-9
}

// The order is part of the contract of a run: a change here breaks every resume.
TEST(FeistelOrder, StaysWhatItIs) {
  EXPECT_EQ(whole({OrderKind::kFeistel, 34521, 1, 10, ""}),
            (std::vector<std::uint64_t>{7, 5, 8, 4, 2, 6, 3, 1, 0, 9}));
}

TEST(FeistelOrder, DiffersByEpochAndSeed) {
  const auto base = whole({OrderKind::kFeistel, 1, 1, 1000, ""});
  for (const OrderSpec& other : {OrderSpec{OrderKind::kFeistel, 1, 2, 1000, ""},
                                 OrderSpec{OrderKind::kFeistel, 2, 1, 1000, ""}}) {
    const auto found = whole(other);
    int same = 0;
    for (std::size_t i = 0; i < 1000; ++i) same += base[i] == found[i] ? 1 : 0;
    EXPECT_LT(same, 10);  // fixed points of a random permutation: Poisson(1)
  }
}

// Where instance 0..n-1 lands over many seeds: chi-square of an n x n table. For n = 5 there are
// (n-1)^2 = 16 degrees of freedom; 99.999% of chi-square(16) is below 54.
TEST(FeistelOrder, PutsEveryInstanceEverywhereEquallyOften) {
  constexpr std::uint64_t kN = 5;
  constexpr int kSeeds = 20000;
  std::array<std::array<int, kN>, kN> table{};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const FeistelPermutation permutation(kN, seed, 1);
    for (std::uint64_t i = 0; i < kN; ++i) ++table[i][permutation(i)];
  }
  const double wanted = static_cast<double>(kSeeds) / kN;
  double chi = 0;
  for (const auto& row : table) {
    for (const int count : row) chi += (count - wanted) * (count - wanted) / wanted;
  }
  EXPECT_LT(chi, 54.0);
}

// Neighbours must not stay neighbours, nor batches come from one region: means of 100 batches of
// 100 of 10,000 lie within 5 sigma of the middle; lag-1 correlation within 5/sqrt(n) of 0.
TEST(FeistelOrder, LooksUnorderedWithinAnEpoch) {
  constexpr std::uint64_t kN = 10000;
  const auto order = whole({OrderKind::kFeistel, 7, 3, kN, ""});
  const double middle = (kN - 1) / 2.0;
  const double sigma = kN / std::sqrt(12.0);
  double correlation = 0;
  for (std::size_t batch = 0; batch < 100; ++batch) {
    double mean = 0;
    for (std::size_t i = 0; i < 100; ++i) mean += static_cast<double>(order[100 * batch + i]) / 100;
    EXPECT_NEAR(mean, middle, 5 * sigma / 10);
  }
  for (std::size_t i = 0; i + 1 < kN; ++i) {
    correlation += (static_cast<double>(order[i]) - middle) / sigma *
                   (static_cast<double>(order[i + 1]) - middle) / sigma / kN;
  }
  EXPECT_LT(std::abs(correlation), 5 / std::sqrt(kN));
}

TEST(Order, RefusesWhatCannotBeOrdered) {
  FileSystem& fs = FileSystem::real();
  for (const OrderSpec& spec :
       {OrderSpec{OrderKind::kFeistel, 1, 1, 0, ""}, OrderSpec{OrderKind::kFeistel, 1, 0, 5, ""},
        OrderSpec{OrderKind::kOlmoCore, 1, 1, std::uint64_t{1} << 32U, ""}}) {
    EXPECT_THROW(static_cast<void>(make_order(fs, spec)), Error);
  }
  EXPECT_THROW(static_cast<void>(order_kind_of_name("fiestel")), Error);
  EXPECT_EQ(order_kind_of_name("olmo-core"), OrderKind::kOlmoCore);
}

TEST(Order, RefusesPositionsPastTheEnd) {
  for (const auto kind : {OrderKind::kFeistel, OrderKind::kOlmoCore, OrderKind::kSequential}) {
    const auto order = make_order(FileSystem::real(), {kind, 1, 1, 3, ""});
    EXPECT_THROW(static_cast<void>(order->instance(3)), Error);
  }
}

}  // namespace
}  // namespace lockstep
