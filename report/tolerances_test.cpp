#include "report/tolerances.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

TEST(Tolerances, TheMostSpecialNameWins) {
  Tolerances tolerances;
  EXPECT_EQ(tolerances.of("c4_loss"), 0.01);
  EXPECT_EQ(tolerances.of("tasks/arc_easy"), 0.05);
  tolerances.set("task=0.1");
  tolerances.set("tasks/piqa=0.2");
  tolerances.set("perplexity/a=b=0.3");  // a label may hold the sign
  EXPECT_EQ(tolerances.of("tasks/arc_easy"), 0.1);
  EXPECT_EQ(tolerances.of("tasks/piqa"), 0.2);
  EXPECT_EQ(tolerances.of("tasks"), 0.02);
  EXPECT_EQ(tolerances.of("perplexity/a=b"), 0.3);
  EXPECT_EQ(tolerances.of("perplexity/other"), 0.02);
  EXPECT_FALSE(tolerances.is_set("token_kl"));
  tolerances.set("token_kl=0");
  EXPECT_TRUE(tolerances.is_set("token_kl"));
  EXPECT_EQ(tolerances.all().at("token_kl"), 0);
  EXPECT_EQ(tolerances.all().at("tasks/piqa"), 0.2);
}

TEST(Tolerances, WrongNamesAndValuesAreRefused) {
  Tolerances tolerances;
  for (const auto& [text, word] : {std::pair{"token_k=1", "token_kl"},
                                   {"c4_loss", "SURFACE=VALUE"},
                                   {"tasks/=1", "tasks/"},
                                   {"c4_loss=", "number"},
                                   {"c4_loss=-1", "0 or more"},
                                   {"c4_loss=1x", "1x"},
                                   {"c4_loss=nan", "number"},
                                   {"c4_loss=inf", "number"},
                                   {"=1", "no surface"}}) {
    try {
      tolerances.set(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace lockstep
