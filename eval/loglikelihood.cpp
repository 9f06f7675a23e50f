#include "eval/loglikelihood.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace lockstep {
namespace {

// What is run for one question: `prefix` positions once, then `rest` for each request.
struct Plan {
  std::size_t question = 0;
  std::int64_t prefix = 0;
  std::int64_t rest = 0;
  std::int64_t requests = 0;
  [[nodiscard]] std::int64_t work() const { return prefix + rest * requests; }
};

// The prefix ends before the first position that is scored, so that the loss is taken of the rest
// alone: this saves work with a single request, too.
Plan plan_of(const Question& question, std::size_t index, PrefixReuse reuse) {
  constexpr std::int64_t kWorthIt = 8;  // below, a second pass costs more than it saves
  Plan plan{.question = index, .requests = std::ssize(question)};
  const auto& first = question.front().input;
  std::int64_t longest = 0;
  plan.prefix = std::ssize(first);
  for (const ScoreRequest& request : question) {
    const auto [a, b] =
        std::mismatch(first.begin(), first.end(), request.input.begin(), request.input.end());
    plan.prefix = std::min<std::int64_t>(plan.prefix, a - first.begin());
    plan.prefix = std::min(plan.prefix, std::ssize(request.input) - std::ssize(request.targets));
    longest = std::max(longest, std::ssize(request.input));
  }
  if (reuse == PrefixReuse::kNo || plan.prefix < kWorthIt) plan.prefix = 0;
  plan.rest = longest - plan.prefix;
  return plan;
}

class Scorer {
 public:
  Scorer(Model& model, std::span<const Question> questions, std::vector<std::vector<Score>>& scores)
      : model_(model), questions_(questions), scores_(scores) {}

  // Questions of similar plans together: the shortest prefix among them is run once each, the rest
  // is padded behind. A row's bits do not depend on what stands behind it or on other sequences.
  void run(std::span<const Plan> group) {
    const std::int64_t prefix = shortest_prefix(group);
    std::int64_t rest = 0;
    std::vector<std::int64_t> sources;
    for (std::size_t g = 0; g < group.size(); ++g) {
      const Question& question = questions_[group[g].question];
      sources.resize(sources.size() + question.size(), static_cast<std::int64_t>(g));
      rest = std::max(rest, group[g].prefix + group[g].rest - prefix);
    }
    fill(group, prefix, rest);
    const std::int64_t rows = std::ssize(sources);
    const View tokens(tokens_.data(), DType::kI32, {rows, rest});
    if (prefix == 0) {
      model_.forward({.tokens = tokens, .targets = {}, .segments = {}});
    } else {
      const auto& config = model_.config();
      const Precision precision = model_.options().precision;
      KvCache once(config, precision, std::ssize(group), prefix);
      model_.extend(once, {prefix_.data(), DType::kI32, {std::ssize(group), prefix}});
      KvCache each(config, precision, rows, prefix + rest);
      each.copy_from(once, sources);
      model_.extend(each, tokens);
    }
    static_cast<void>(
        model_.loss(View(targets_.data(), DType::kI32, {rows, rest}), model_.config().vocab_size));
    take_scores(group, prefix, rest);
  }

  static std::int64_t shortest_prefix(std::span<const Plan> group) {
    std::int64_t prefix = group.front().prefix;
    for (const Plan& plan : group) prefix = std::min(prefix, plan.prefix);
    return prefix;
  }

 private:
  void fill(std::span<const Plan> group, std::int64_t prefix, std::int64_t rest) {
    prefix_.clear();
    tokens_.clear();
    targets_.clear();
    for (const Plan& plan : group) {
      const Question& question = questions_[plan.question];
      const auto& first = question.front().input;
      prefix_.insert(prefix_.end(), first.begin(), first.begin() + prefix);
      for (const ScoreRequest& request : question) {
        const std::int64_t size = std::ssize(request.input) - prefix;
        tokens_.insert(tokens_.end(), request.input.begin() + prefix, request.input.end());
        tokens_.resize(tokens_.size() + static_cast<std::size_t>(rest - size), 0);
        const std::size_t unscored = static_cast<std::size_t>(size) - request.targets.size();
        targets_.resize(targets_.size() + unscored, -1);
        targets_.insert(targets_.end(), request.targets.begin(), request.targets.end());
        targets_.resize(tokens_.size(), -1);
      }
    }
  }

  void take_scores(std::span<const Plan> group, std::int64_t prefix, std::int64_t rest) {
    const auto* ce = model_.token_ce().data<float>();
    const auto* best = model_.token_argmax().data<std::int32_t>();
    std::int64_t row = 0;
    for (const Plan& plan : group) {
      const Question& question = questions_[plan.question];
      for (std::size_t r = 0; r < question.size(); ++r) {
        const auto& targets = question[r].targets;
        const std::int64_t begin =
            row + std::ssize(question[r].input) - prefix - std::ssize(targets);
        Score score{.logprob = 0, .greedy = true};
        for (std::size_t i = 0; i < targets.size(); ++i) {
          const std::int64_t at = begin + static_cast<std::int64_t>(i);
          score.logprob -= static_cast<double>(ce[at]);
          score.greedy = score.greedy && best[at] == targets[i];
        }
        scores_[plan.question][r] = score;
        row += rest;
      }
    }
  }

  Model& model_;
  std::span<const Question> questions_;
  std::vector<std::vector<Score>>& scores_;
  std::vector<std::int32_t> prefix_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> targets_;
};

// How many plans from the front fit into `tokens` positions a pass; at least one.
std::size_t group_size(std::span<const Plan> plans, std::int64_t tokens) {
  std::int64_t prefix = plans.front().prefix;
  std::int64_t end = 0;
  std::int64_t requests = 0;
  std::size_t count = 0;
  while (count < plans.size()) {
    const Plan& plan = plans[count];
    prefix = std::min(prefix, plan.prefix);
    end = std::max(end, plan.prefix + plan.rest);
    requests += plan.requests;
    const auto questions = static_cast<std::int64_t>(count) + 1;
    if (count > 0 && (requests * (end - prefix) > tokens || questions * prefix > tokens)) break;
    ++count;
  }
  return count;
}

}  // namespace

std::vector<std::vector<Score>> score_questions(Model& model, std::span<const Question> questions,
                                                const ScoreOptions& options) {
  LOCKSTEP_CHECK(options.tokens >= 1, "tokens ", options.tokens);
  std::vector<std::vector<Score>> scores(questions.size());
  std::vector<Plan> plans;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (questions[i].empty()) continue;
    scores[i].resize(questions[i].size());
    plans.push_back(plan_of(questions[i], i, options.reuse));
    all += plans.back().work();
  }
  std::sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    if (a.prefix != b.prefix) return a.prefix > b.prefix;
    return a.rest != b.rest ? a.rest > b.rest : a.question < b.question;
  });
  Scorer scorer(model, questions, scores);
  std::int64_t done = 0;
  for (std::span<const Plan> left = plans; !left.empty();) {
    if (options.stopping && options.stopping()) break;
    const auto group = left.first(group_size(left, options.tokens));
    scorer.run(group);
    left = left.subspan(group.size());
    for (const Plan& plan : group) done += plan.work();
    if (options.progress) options.progress(static_cast<double>(done) / static_cast<double>(all));
  }
  return scores;
}

}  // namespace lockstep
