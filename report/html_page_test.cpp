#include "report/html_page.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "data/scratch_directory.h"
#include "report/html_assets.h"
#include "report/html_surfaces.h"

namespace lockstep {
namespace {

// A run's name holds no "/", a bundle's may hold anything.
constexpr const char* kHostileRun = "<img onerror=alert(1)>&\"";
constexpr const char* kHostile = "</script><img src=https://evil.example/x onerror=alert(1)>";

FileSystem& fs() { return FileSystem::real(); }

std::string recipe(const std::string& name) {
  return "[run]\nname = '" + name +
         "'\n[data]\nmix = 'm'\nsequence_length = 32\n[batch]\ninstances = 4\n"
         "[train]\nsteps = 2\nprecision = 'fp32'\n";
}

std::string metrics(int steps) {
  std::string lines;
  for (int step = 1; step <= steps; ++step) {
    lines += concat(R"({"step":)", step, R"(,"loss":)", 5.0 / step,
                    R"(,"grad_norm":null,"tokens_per_s":100,"seconds":0.5,"tokens":)", step * 128,
                    ",\"skipped\":false}\n");
  }
  return lines;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// All tags, without what is between them: "<p class=...></p>..."
std::string tags_of(std::string html) {
  for (const char* element : {"script", "style"}) {
    const std::string end = concat("</", element, ">");
    for (auto at = html.find(concat("<", element)); at != std::string::npos;
         at = html.find(concat("<", element), at + 1)) {
      const auto open = html.find('>', at) + 1;
      html.erase(open, html.find(end, open) - open);
    }
  }
  std::string tags;
  for (auto at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    tags += html.substr(at, html.find('>', at) + 1 - at);
  }
  return tags;
}

struct Report {
  std::string html;
  std::vector<Comparison> comparisons;
};

Report report_on(const std::vector<std::string>& paths) {
  std::vector<Evidence> evidence;
  for (const auto& path : paths) evidence.push_back(load_evidence(fs(), path));
  ThreadPool pool(1);
  std::vector<Comparison> comparisons = compare_first(fs(), evidence, {}, pool);
  return {make_report(fs(), evidence, comparisons, {}), comparisons};
}

class Page : public ::testing::Test {
 protected:
  void SetUp() override {
    files_.write("a/recipe.toml", recipe(kHostileRun));
    files_.write("a/metrics.jsonl", metrics(12));
    files_.write("a/events.jsonl", concat(R"({"event":"fork","step":3,"differences":")", kHostile,
                                          "\"}\n{\"event\":\"save\",\"step\":4}\n"));
    files_.write("b/recipe.toml", recipe("other"));
    files_.write("b/metrics.jsonl", metrics(10));
    files_.write("c/bundle.json",
                 concat(R"({"format":"lockstep-bundle","version":1,"producer":"x","name":")",
                        kHostile, R"(","precision":"fp32","tokens_per_step":128})"));
    files_.write("c/metrics.jsonl", metrics(4));
    a_ = files_.path() + "/a";
    b_ = files_.path() + "/b";
    c_ = files_.path() + "/c";
  }
  ScratchDirectory files_;
  std::string a_;
  std::string b_;
  std::string c_;  // a bundle
};

TEST_F(Page, LoadsNothingFromAnywhere) {
  const std::string html = report_on({a_, b_}).html;
  const std::string tags = tags_of(html);
  // Every attribute that names something to load, and the two ways of a style sheet.
  for (const char* attribute :
       {"src", "srcset", "action", "formaction", "poster", "data", "style", "background"}) {
    EXPECT_EQ(count(tags, concat(" ", attribute, "=")), 0U) << attribute;
  }
  EXPECT_EQ(count(html, "@import"), 0U);
  EXPECT_EQ(count(html, "url("), 0U);
  EXPECT_EQ(count(tags, " href="), 2U);
  EXPECT_EQ(count(tags, " href=\"#"), 1U);
  EXPECT_EQ(count(tags, " href=\"data:,\""), 1U);
  EXPECT_NE(html.find("default-src &#39;none&#39;"), std::string::npos);
  EXPECT_NE(html.find("connect-src &#39;none&#39;"), std::string::npos);
  EXPECT_NE(html.find("Permission is hereby granted, free of charge"), std::string::npos);
}

TEST_F(Page, ANameCannotEndAScriptOrOpenAnElement) {
  const std::string html = report_on({a_, c_}).html;
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(count(html, "</script>"), 4U);  // two data blocks, the library, the page's own
  EXPECT_NE(html.find("&lt;/script&gt;&lt;img src=https://evil.example/x"), std::string::npos);
  EXPECT_NE(html.find("\\u003c/script\\u003e"), std::string::npos);
}

TEST(AblationSection, ShowsARowAVariantAndEscapesIt) {
  EXPECT_EQ(ablations_html({}), "");
  AblationFile file;
  file.recipe = kHostile;
  file.machine = "2 threads";
  file.ablation = {.steps = 1200, .tokens = 9, .block = 10, .rows = {AblationRow()}};
  file.ablation.rows[0].label = kHostile;
  file.ablation.rows[0].speed_ratio = {.value = 1.25, .interval = {1.1, 1.4}, .n = 20};
  const std::string begun = ablations_html({&file, 1});
  EXPECT_NE(begun.find("not finished"), std::string::npos);
  file.finished = true;
  const std::string html = ablations_html({&file, 1});
  EXPECT_NE(html.find("1.25 (1.1 to 1.4)"), std::string::npos);
  EXPECT_NE(html.find("1,200 steps each"), std::string::npos);
  EXPECT_EQ((begun + html).find("<img"), std::string::npos);
}

TEST_F(Page, OneRunHasNoVerdictAndTwoHaveOne) {
  EXPECT_NE(report_on({a_}).html.find("One run: nothing compared."), std::string::npos);
  const Report both = report_on({a_, b_});
  ASSERT_EQ(both.comparisons.size(), 1U);
  EXPECT_EQ(both.comparisons[0].verdict, Verdict::kNotEnoughData);
  EXPECT_NE(both.html.find("<strong>not enough data</strong>"), std::string::npos);
  EXPECT_NE(both.html.find("Recipe keys that differ"), std::string::npos);
}

TEST_F(Page, IsTheSameBytesEachTime) {
  EXPECT_EQ(report_on({a_, b_}).html, report_on({a_, b_}).html);
}

TEST_F(Page, StaysSmallForALongRun) {
  files_.write("a/metrics.jsonl", metrics(30000));
  const std::string html = report_on({a_}).html;
  EXPECT_LT(html.size(), std::size_t{1} << 20);
  EXPECT_NE(html.find("stands for 8 steps"), std::string::npos);
}

TEST_F(Page, ChartNumbersAreThoseOfTheRuns) {
  RunReader a(fs(), load_evidence(fs(), a_), 100);
  RunReader b(fs(), load_evidence(fs(), b_), 100);
  a.refresh();
  b.refresh();
  const std::vector<const RunPage*> runs = {&a.page(), &b.page()};
  const std::vector<LossDifference> differences = {
      loss_difference(1, load_evidence(fs(), a_).curve, load_evidence(fs(), b_).curve, 100)};
  const Json json = parse_json(chart_json(runs, differences), "charts");
  EXPECT_EQ(json["runs"][0]["name"], kHostileRun);
  EXPECT_EQ(json["runs"][0]["step"].size(), 12U);
  EXPECT_EQ(json["runs"][0]["columns"]["loss"]["mean"][1], 2.5);
  EXPECT_FALSE(json["runs"][0]["columns"]["loss"].contains("min"));
  EXPECT_FALSE(json["runs"][0]["columns"].contains("grad_norm"));
  EXPECT_EQ(json["runs"][0]["marks"].size(), 2U);
  EXPECT_EQ(json["differences"][0]["step"].size(), 10U);
  EXPECT_EQ(json["differences"][0]["columns"]["loss"]["mean"][9], 0);
}

TEST(SurfaceLines, HalfWidthIsStudentsTimesTheErrorOfARatio) {
  Evaluation evaluation;
  evaluation.heldout.emplace();
  evaluation.heldout->domains = {{.label = "d", .loss = 2.0}};
  // Ratios 1 and 3 of equal weight: mean 2, standard error of the mean 1, t(1) at 97.5%.
  evaluation.heldout->by_document = {{.label = "d", .document = 0, .targets = 10, .ce = 10},
                                     {.label = "d", .document = 1, .targets = 10, .ce = 30}};
  evaluation.tasks = {{.name = "t", .n = 100, .acc = 0.5, .acc_stderr = 0.05}};
  const auto lines = surface_lines({{7, evaluation}});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].steps, std::vector<std::int64_t>{7});
  EXPECT_EQ(lines[0].values[0].value, 2.0);
  EXPECT_DOUBLE_EQ(lines[0].values[0].half_width, t_quantile(0.975, 1));
  EXPECT_DOUBLE_EQ(lines[1].values[0].half_width, 0.098);
}

TEST(ConsumedLedger, FindsEntriesTakenTwice) {
  const ScratchDirectory files;
  const auto range = [](int first, int last, int begin, int end) {
    return concat(R"({"first_step":)", first, R"(,"last_step":)", last, R"(,"epoch":1,"begin":)",
                  begin, R"(,"end":)", end, ",\"passed_over\":false,\"digest\":\"\"}\n");
  };
  EXPECT_EQ(read_ledger(fs(), files.path()).ranges, 0);
  files.write("consumed/ranges.jsonl", range(1, 4, 0, 16) + range(5, 8, 16, 32) + "{\"first");
  const ConsumedLedger good = read_ledger(fs(), files.path());
  EXPECT_TRUE(good.ok());
  ASSERT_EQ(good.epochs.size(), 1U);
  EXPECT_EQ(good.epochs[0].entries, 32);
  files.write("consumed/ranges.jsonl", range(1, 4, 0, 16) + range(5, 8, 12, 28));
  const ConsumedLedger twice = read_ledger(fs(), files.path());
  EXPECT_FALSE(twice.ok());
  EXPECT_EQ(twice.epochs[0].entries, 28);
  EXPECT_EQ(twice.epochs[0].repeated, 4);
  files.write("consumed/ranges.jsonl", range(1, 4, 0, 16) + range(6, 8, 16, 28));
  EXPECT_FALSE(read_ledger(fs(), files.path()).ok());
}

}  // namespace
}  // namespace lockstep
