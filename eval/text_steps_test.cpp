#include "eval/text_steps.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "eval/text_template.h"

namespace lockstep {
namespace {

std::string step(std::string_view name, std::string_view text) {
  return TextStep(name, "here").apply(text);
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TextSteps, WhiteSpaceIsPythons) {
  EXPECT_EQ(step("strip", "\x1c\t a b\u3000\u00a0\n"), "a b");
  EXPECT_EQ(step("lstrip", "\u2003 a "), "a ");
  EXPECT_EQ(step("rstrip", " a\u200b "), " a\u200b");  // a zero-width space is none
  EXPECT_EQ(step("strip", " \n"), "");
}

TEST(TextSteps, CapitalizeLowersTheRest) {
  EXPECT_EQ(step("capitalize", "THEN THEY go"), "Then they go");
  EXPECT_EQ(step("capitalize", "élan À LA"), "Élan à la");
  EXPECT_EQ(step("capitalize", ""), "");
}

TEST(TextSteps, ReplaceIsOnePass) {
  EXPECT_EQ(step("replace:  : ", "a   b    c"), "a  b  c");
  EXPECT_EQ(step("replace:_: ", "a_b_"), "a b ");
  EXPECT_EQ(step("replace:x:", "xaxx"), "a");
}

TEST(TextSteps, RemoveBetweenTakesTheShortestPartOnOneLine) {
  EXPECT_EQ(step("remove_between:[:]", "[x][y]z"), "z");
  EXPECT_EQ(step("remove_between:[:]", "nested [a [b] c] d"), "nested  c] d");
  EXPECT_EQ(step("remove_between:[:]", "[a\nb] [c [d] e"), "[a\nb]  e");
  EXPECT_EQ(step("remove_between:[:]", "] a ["), "] a [");
}

TEST(TextSteps, BeforeAndAfterTakeTheFirst) {
  EXPECT_EQ(step("before:_", "so _ won _"), "so ");
  EXPECT_EQ(step("after:_", "so _ won _"), " won _");
  EXPECT_EQ(error_of([] { static_cast<void>(step("after:_", "no gap")); }),
            "no \"_\" in \"no gap\"");
}

TEST(TextSteps, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(error_of([] {
              TextStep("upper", "t.toml:3: context");
            }).find("t.toml:3: context: unknown step \"upper\""),
            std::string::npos);
  EXPECT_NE(error_of([] { TextStep("replace:a", "t"); }).find("replace takes 2 arguments"),
            std::string::npos);
  EXPECT_NE(error_of([] { TextStep("before:", "t"); }).find("the first not empty"),
            std::string::npos);
}

TEST(TextSteps, CountsCharactersNotBytes) {
  EXPECT_EQ(count_characters("naïve €"), 7U);
  EXPECT_EQ(length_without_trailing_space("a\u00a0 "), 1U);
}

TEST(TextTemplate, PutsFieldsIn) {
  const DataRow row{parse_json(R"({"q": " why ", "c": {"t": ["x", "y"]}, "n": 3, "a": [1]})", "r"),
                    "f.jsonl:7"};
  EXPECT_EQ(TextTemplate("Q: {{q|strip}}? {{c.t.1}}{{n}} {x}", "t").render(row), "Q: why? y3 {x}");
  EXPECT_EQ(TextTemplate("", "t").render(row), "");
  const auto render = [&](const char* text) {
    return error_of([&] { static_cast<void>(TextTemplate(text, "t").render(row)); });
  };
  EXPECT_EQ(render("{{c.t.2}}"), "f.jsonl:7: no field \"c.t.2\"");
  EXPECT_EQ(render("{{a}}"), "f.jsonl:7: field \"a\": array, want text or an integer");
  EXPECT_EQ(render("{{q|before:_}}"), "f.jsonl:7: field \"q\": no \"_\" in \" why \"");
  EXPECT_NE(error_of([] { TextTemplate("{{q", "t.toml:1: context"); }).find("without \"}}\""),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
