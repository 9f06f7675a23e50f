#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "config/compare.h"
#include "config/print.h"
#include "config/read.h"

namespace lockstep {
namespace {

enum class Shape { kRound, kSquare };
constexpr auto enum_table(Shape) {
  return std::array{EnumName{Shape::kRound, "round"}, EnumName{Shape::kSquare, "square"}};
}

struct Inner {
  std::string preset = "small";
  int width = 8;
  std::vector<Shape> shapes = {Shape::kRound};
  std::optional<double> scale;
  template <class V>
  void fields(V&& v) {
    v("preset", preset, "small or large");
    v("width", width, "columns, 1 or more", {.min = 1, .max = 4096});
    v("shapes", shapes, "one for each column");
    v("scale", scale, "multiplies | all", {.min = 0, .above_min = true});
    v.retired("height", {std::int64_t{0}}, "width");
  }
  void apply_preset() { width = preset == "large" ? 512 : 8; }
};

struct Outer {
  std::string name = "run";
  std::int64_t tokens = 100;
  bool fast = false;
  double rate = 3e-4;
  std::vector<std::array<std::int64_t, 2>> ranges;
  int log_every = 1;
  Inner inner;
  template <class V>
  void fields(V&& v) {
    v("name", name, "what it is called");
    v("tokens", tokens, "how many", {.min = 0});
    v("fast", fast, "hurry");
    v("rate", rate, "per step", {.min = 0});
    v("ranges", ranges, "pairs", {.min = 1});
    v("log_every", log_every, "steps between lines", {.min = 1, .benign = true});
    v("inner", inner, "the inner part");
  }
  void validate() const {
    if (inner.width % 8 != 0) fail_key("inner.width", {std::int64_t{inner.width}}, "must be 8n");
  }
};

Outer read(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  return read_config<Outer>(toml, "f.toml", overrides);
}

std::string error_of(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  try {
    (void)read(toml, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.what();
  }
  return "no error";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Config, ReadsEveryKindOfField) {
  const Outer c = read(R"(
name = "a \"b\""
tokens = 5e12
fast = true
rate = 1
ranges = [[3, 4], [7, 9]]
[inner]
width = 16
shapes = ["square", "round"]
scale = 0.5
)");
  EXPECT_EQ(c.name, "a \"b\"");
  EXPECT_EQ(c.tokens, 5'000'000'000'000);
  EXPECT_TRUE(c.fast);
  EXPECT_EQ(c.rate, 1.0);
  ASSERT_EQ(c.ranges.size(), 2U);
  EXPECT_EQ(c.ranges[1][1], 9);
  EXPECT_EQ(c.inner.width, 16);
  EXPECT_EQ(c.inner.shapes, (std::vector{Shape::kSquare, Shape::kRound}));
  EXPECT_EQ(c.inner.scale, 0.5);
}

TEST(Config, OverrideWinsOverFile) {
  const Outer c = read("tokens = 5\n[inner]\nscale = 2.0\n",
                       {"tokens=7", "inner.shapes=[\"square\"]", "inner.scale=", "fast=true"});
  EXPECT_EQ(c.tokens, 7);
  EXPECT_EQ(c.inner.shapes, std::vector{Shape::kSquare});
  EXPECT_FALSE(c.inner.scale.has_value());
  EXPECT_TRUE(c.fast);
}

TEST(Config, OverrideOfAStringTakesAnyText) {
  EXPECT_EQ(read("", {"name=plain words"}).name, "plain words");
  EXPECT_EQ(read("", {"name=12"}).name, "12");
  EXPECT_EQ(read("", {"name=true"}).name, "true");
  EXPECT_EQ(read("", {"name=\"quoted\""}).name, "quoted");
  EXPECT_EQ(read("", {"name=2026-01-01"}).name, "2026-01-01");
  EXPECT_EQ(read("", {"name=a=b # c\nd"}).name, "a=b # c\nd");
  EXPECT_EQ(read("", {"name="}).name, "");
}

TEST(Config, PresetAppliesBeforeTheOtherFieldsWhereverItIsGiven) {
  EXPECT_EQ(read("[inner]\nwidth = 24\npreset = \"large\"\n").inner.width, 24);
  EXPECT_EQ(read("[inner]\nwidth = 24\n", {"inner.preset=large"}).inner.width, 24);
  EXPECT_EQ(read("", {"inner.preset=large"}).inner.width, 512);
}

TEST(Config, AKeyOfAnEarlierVersionIsReadWithTheValueThatHadNoEffect) {
  EXPECT_EQ(read("[inner]\nheight = 0\nwidth = 24\n").inner.width, 24);
  EXPECT_HAS(error_of("[inner]\nheight = 3\n"),
             "f.toml:2: inner.height = 3: the key is no more; use inner.width");
}

TEST(Config, UnknownKeyNamesNearestAndSiblings) {
  const std::string text = error_of("\n[inner]\nwidht = 3\n");
  EXPECT_HAS(text, "f.toml:3: unknown key 'inner.widht' = 3; did you mean 'inner.width'?");
  EXPECT_HAS(text, "(in [inner]: preset, width, shapes, scale)");
  EXPECT_HAS(error_of("", {"width=3"}),
             "command line: unknown key 'width' = 3; did you mean 'inner.width'?");
  EXPECT_HAS(error_of("[iner]\n"), "f.toml:1: unknown key 'iner'; did you mean 'inner'?");
  EXPECT_HAS(error_of("[tokens]\nx = 1\n"), "tokens is a table");
  EXPECT_HAS(error_of("inner = 3\n"), "'inner' is a section");
}

TEST(Config, WrongTypeNamesPlaceKeyValueAndRule) {
  EXPECT_HAS(error_of("tokens = \"7x\"\n"),
             "f.toml:1: tokens = \"7x\" is a string; wanted an integer of at least 0 (how many)");
  EXPECT_HAS(error_of("", {"tokens=7x"}),
             "command line: tokens = \"7x\" is a string; wanted an integer");
  EXPECT_HAS(error_of("tokens = 7.5\n"), "is a number; wanted an integer");
  EXPECT_HAS(error_of("tokens = 1e300\n"), "wanted an integer");
  EXPECT_HAS(error_of("fast = 1\n"), "wanted true or false");
  EXPECT_HAS(error_of("rate = nan\n"), "wanted a number of at least 0");
  EXPECT_HAS(error_of("rate = inf\n"), "wanted a number of at least 0");
  EXPECT_HAS(error_of("", {"tokens="}), "is nothing; wanted an integer");
  EXPECT_HAS(error_of("ranges = [[1, 2, 3]]\n"), "wanted an array, each an array of 2");
  EXPECT_HAS(error_of("name = 2026-01-01\n"), "dates and times");
}

TEST(Config, OutOfRangeNamesTheRule) {
  EXPECT_HAS(error_of("[inner]\nwidth = 0\n"), "wanted an integer from 1 to 4096");
  EXPECT_HAS(error_of("[inner]\nscale = 0.0\n"), "wanted a number above 0");
  EXPECT_HAS(error_of("[inner]\nwidth = 99999999999\n"), "wanted an integer from 1 to 4096");
  EXPECT_HAS(error_of("[inner]\nshapes = [\"sqare\"]\n"), "each one of round, square");
}

TEST(Config, ValidateErrorsCarryTheOriginOfTheirKey) {
  EXPECT_EQ(error_of("[inner]\nwidth = 12\n"), "f.toml:2: inner.width = 12: must be 8n");
}

TEST(Config, MessagesAreOneLineWhateverTheFileIsCalled) {
  try {
    (void)read_config<Outer>("x\ty = 1\n", "evil\n\x1b[2Jname.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_HAS(std::string(error.what()), "evil\\n");
    EXPECT_EQ(std::string(error.what()).find_first_of("\n\x1b"), std::string::npos);
  }
}

TEST(Config, RefusesDuplicatesAndBadSyntax) {
  EXPECT_HAS(error_of("tokens = 1\ntokens = 2\n"), "f.toml:2:");
  EXPECT_HAS(error_of("tokens = 7x\n"), "f.toml:1:");
  EXPECT_HAS(error_of("", {"tokens=1", "tokens=2"}), "given twice: 1 and 2");
  EXPECT_HAS(error_of("", {"tokens"}), "KEY=VALUE");
  EXPECT_HAS(error_of("", {"tokens=1\nfast=true"}), "wanted an integer");
}

TEST(Config, HostileNestingIsRefusedQuickly) {
  std::string key;
  for (int i = 0; i < 400000; ++i) key += "a.";
  EXPECT_HAS(error_of(key + "a = 1\n"), "more than 64 parts");
  EXPECT_HAS(error_of("x = [\"\"\"\n\"\"\", {" + key + "a = 1}]\n"), "more than 64 parts");
  EXPECT_HAS(error_of("x = " + std::string(400000, '[')), "f.toml:1");
  EXPECT_HAS(error_of(std::string(900000, 'k') + " = 1\n"), "unknown key");
  EXPECT_EQ(
      read("# " + std::string(100, '.') + "\nname = \"" + std::string(100, '.') + "\"\n").name,
      std::string(100, '.'));
}

// Inputs that break internal assertions of the TOML parser, found by mutation.
TEST(Config, InputsThatTheParserGivesUpOnAreErrors) {
  for (const char* text : {"[[,\x01"
                           "a = 1",
                           "a = [\xe2\x80\xa8"}) {
    EXPECT_HAS(error_of(text), "the parser gave up") << text;
  }
}

TEST(Config, PrintedTomlReadsBackToTheSameConfig) {
  Outer c =
      read("rate = 0.00020712352850360292\nname = \"tab\\t \\u0001 \\u00e9\"\nranges = [[1, 2]]\n");
  for (const Comments comments : {Comments::kNone, Comments::kHelp}) {
    const std::string text = config_toml(c, comments);
    EXPECT_TRUE(config_differences(c, read(text)).empty()) << text;
  }
  EXPECT_HAS(config_toml(c), "# scale is not set: multiplies | all");
  EXPECT_HAS(config_toml(c), "# the inner part\n[inner]\npreset = \"small\"  # small or large\n");
}

TEST(Config, JsonNestsSections) {
  const Json json = parse_json(config_json(Outer{}), "json");
  EXPECT_EQ(json["inner"]["width"], 8);
  EXPECT_TRUE(json["inner"]["scale"].is_null());
  EXPECT_EQ(json["inner"]["shapes"][0], "round");
}

TEST(Config, DifferencesAreListedAndBenignOnesMarked) {
  const auto found = config_differences(read(""), read("", {"inner.width=16", "log_every=5"}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[0].benign);
  EXPECT_FALSE(found[1].benign);
  EXPECT_EQ(describe(found), "log_every: 1 -> 5; inner.width: 8 -> 16");
}

TEST(Config, FingerprintIgnoresBenignFieldsAndSeesAllOthers) {
  const std::string base = config_fingerprint(read(""));
  EXPECT_EQ(base, config_fingerprint(read("", {"log_every=5"})));
  EXPECT_NE(base, config_fingerprint(read("", {"inner.width=16"})));
  EXPECT_EQ(config_fingerprint(read("", {"tokens=5"}), "inner"),
            config_fingerprint(read(""), "inner"));
}

TEST(Config, ReferenceListsKeyDefaultTypeAndMeaning) {
  const std::string text = config_reference<Outer>();
  EXPECT_HAS(text, "| `width` | `8` | an integer from 1 to 4096 | columns, 1 or more |");
  EXPECT_HAS(text, "multiplies \\| all");
  EXPECT_HAS(text, "(may change on resume)");
}

TEST(Config, DoublesPrintShortestAndAsFloats) {
  EXPECT_EQ(to_text({3e-4}), "0.0003");
  EXPECT_EQ(to_text({500000.0}), "500000.0");
  EXPECT_EQ(to_text({0.00020712352850360292}), "0.00020712352850360292");
  EXPECT_EQ(to_text({1e-6}), "1e-06");
  EXPECT_EQ(to_text({1.0}), "1.0");
  EXPECT_EQ(to_text({1e300}), "1e+300");
}

}  // namespace
}  // namespace lockstep
