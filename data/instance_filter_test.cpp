#include "data/instance_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "data/golden_file.h"

namespace lockstep {
namespace {

// The definition of facts in its plainest form.
bool reference(const std::vector<std::uint32_t>& x) {
  for (std::size_t p = 1; p <= std::min<std::size_t>(13, x.size() / 3); ++p) {
    std::size_t run = 0;
    for (std::size_t t = p; t < x.size(); ++t) {
      run = x[t] == x[t - p] ? run + 1 : 0;
      if (run >= 31 * p) return true;
    }
  }
  return false;
}

TEST(InstanceFilter, EqualsOlmoCoreOnEveryGoldenCase) {
  const Json golden = golden_file("instance_filter.json");
  ASSERT_GT(golden.at("cases").size(), 10U);
  for (const auto& one : golden.at("cases")) {
    const auto tokens = one.at("tokens").get<std::vector<std::uint32_t>>();
    EXPECT_EQ(!has_periodic_span(tokens), one.at("clean").get<bool>()) << one.at("what");
  }
}

TEST(InstanceFilter, EqualsThePlainDefinitionOnRandomSpans) {
  std::mt19937 random(5);
  int positives = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::uint32_t> x(20 + random() % 600);
    for (auto& value : x) value = static_cast<std::uint32_t>(random() % 3);
    const std::size_t period = 1 + random() % 14;
    const std::size_t length = period * 31 + random() % (3 * period);
    const std::size_t start = random() % x.size();
    for (std::size_t i = start + period; i < std::min(x.size(), start + length); ++i) {
      x[i] = x[i - period];
    }
    ASSERT_EQ(has_periodic_span(x), reference(x)) << "trial " << trial;
    positives += reference(x) ? 1 : 0;
  }
  EXPECT_GT(positives, 300);
  EXPECT_LT(positives, 2700);
}

TEST(InstanceFilter, PassesTheEmptyInstance) { EXPECT_FALSE(has_periodic_span({})); }

}  // namespace
}  // namespace lockstep
