#include "base/python_random.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Ids = std::vector<std::uint32_t>;

// CPython 3.11: r = random.Random(1234); r.sample(range(n), k) one after another.
TEST(PythonRandom, SamplesLikePython) {
  PythonRandom random(1234);
  EXPECT_EQ(random.sample(10042, 5), (Ids{7220, 1914, 122, 1485, 9539}));
  EXPECT_EQ(random.sample(5, 5), (Ids{0, 4, 3, 1, 2}));
  EXPECT_EQ(random.sample(100, 7), (Ids{2, 3, 44, 82, 79, 61, 78}));
  EXPECT_EQ(random.sample(1000000, 6), (Ids{486065, 155770, 95721, 191984, 748064, 119970}));
}

TEST(PythonRandom, TakesTheSameOneOfPythonsTwoWaysAtTheBorder) {
  PythonRandom random(0);
  EXPECT_EQ(random.sample(40, 10), (Ids{24, 26, 2, 16, 32, 31, 25, 19, 30, 11}));
  EXPECT_EQ(random.sample(86, 20),
            (Ids{74, 27, 64, 17, 36, 12, 79, 32, 68, 77, 18, 39, 9, 42, 60, 71, 45, 55, 40, 78}));
  EXPECT_EQ(random.sample(85, 16),
            (Ids{81, 26, 70, 61, 56, 66, 33, 7, 82, 1, 11, 51, 0, 63, 42, 31}));
}

// CPython 3.11: random.Random(123).shuffle(list(range(n))).
TEST(PythonRandom, ShufflesLikePython) {
  EXPECT_EQ(PythonRandom(123).shuffled_range(10),
            (std::vector<std::size_t>{8, 7, 5, 9, 2, 3, 6, 1, 4, 0}));
  auto large = PythonRandom(123).shuffled_range(1000);
  large.resize(6);
  EXPECT_EQ(large, (std::vector<std::size_t>{178, 830, 641, 410, 255, 470}));
  EXPECT_EQ(PythonRandom(123).shuffled_range(1), std::vector<std::size_t>{0});
  EXPECT_TRUE(PythonRandom(123).shuffled_range(0).empty());
}

}  // namespace
}  // namespace lockstep
