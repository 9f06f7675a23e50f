#include "report/comparison.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kMaxTokenizerBytes = std::uint64_t{256} << 20;

template <class Map>
std::string at_or_empty(const Map& files, std::int64_t step) {
  const auto found = files.find(step);
  return found == files.end() ? std::string() : found->second;
}

std::string normal(const std::string& path) {
  std::string text = std::filesystem::absolute(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// Whether an evaluation's words for its reference mean this side at this step.
bool is_reference(const std::string& text, const Evidence& side, std::int64_t step) {
  if (text.empty()) return false;
  if (text == side.name) return true;
  for (const std::string& path :
       {side.path, at_or_empty(side.checkpoints, step), at_or_empty(side.logits, step)}) {
    if (!path.empty() && normal(path) == normal(text)) return true;
  }
  return false;
}

class Comparer {
 public:
  Comparer(FileSystem& fs, const CompareOptions& options, ThreadPool& pool,
           std::vector<std::string>& notes)
      : fs_(fs), options_(options), pool_(pool), notes_(notes) {}

  // `kl_tolerance`: of token_kl, where it is not the one of the options.
  std::vector<SurfaceResult> compare(const Evidence& a, const Evidence& b, const CommonStep& at,
                                     std::optional<double> kl_tolerance) {
    const auto ours = evaluation_at(a, at.step_a);
    const auto theirs = evaluation_at(b, at.step_b);
    std::vector<std::string> notes;
    const auto& surfaces = options_.surfaces;
    std::vector<SurfaceResult> results = compare_heldout(
        ours && ours->heldout ? &*ours->heldout : nullptr,
        theirs && theirs->heldout ? &*theirs->heldout : nullptr, surfaces, pool_, notes);
    auto tasks =
        compare_tasks(ours && ours->tasks ? &*ours->tasks : nullptr,
                      theirs && theirs->tasks ? &*theirs->tasks : nullptr, surfaces, notes);
    // The order of the table: c4_loss, tasks, perplexity, token_kl.
    results.insert(results.begin() + 1, tasks.begin(), tasks.end());
    if (a.vocab_size && b.vocab_size && *a.vocab_size != *b.vocab_size) {
      refuse_losses(results, *a.vocab_size, *b.vocab_size);
    }
    results.push_back(compare_kl(ours, a, b, at, kl_tolerance, notes));
    for (const std::string& note : notes) add_note(a, b, at, note);
    return results;
  }

  // The tolerance of token_kl that the floor gives at this step: twice its own KL.
  std::optional<double> floor_tolerance(const std::vector<SurfaceResult>& floor) const {
    if (options_.surfaces.tolerances.is_set("token_kl")) return {};
    const double mean = floor.back().estimate.value;
    if (!std::isfinite(mean) || mean < 0) return {};
    return 2 * mean;
  }

 private:
  std::optional<Evaluation> evaluation_at(const Evidence& side, std::int64_t step) {
    const std::string path = at_or_empty(side.evaluations, step);
    if (path.empty()) return {};
    return read_evaluation(fs_, path);
  }

  static void refuse_losses(std::vector<SurfaceResult>& results, std::int64_t a, std::int64_t b) {
    for (SurfaceResult& result : results) {
      if (result.surface.starts_with("tasks")) continue;
      result.verdict = Verdict::kNotEnoughData;
      result.reason = concat("the vocabularies differ (", a, " and ", b,
                             " ids): losses a token do not compare");
    }
  }

  SurfaceResult compare_kl(const std::optional<Evaluation>& ours, const Evidence& a,
                           const Evidence& b, const CommonStep& at, std::optional<double> tolerance,
                           std::vector<std::string>& notes) {
    const double within = tolerance.value_or(options_.surfaces.tolerances.of("token_kl"));
    if (ours && ours->kl) {
      if (is_reference(ours->kl->reference, b, at.step_b)) {
        return judge_kl(*ours->kl, within, options_.surfaces, pool_);
      }
      notes.push_back(concat("token KL: the evaluation measured it against ",
                             printable(ours->kl->reference), ", which is not B"));
    }
    if (!options_.measure_kl) return no_data("token_kl", within, "no evaluation holds it");
    const MeasuredKl measured = options_.measure_kl(a, at.step_a, b, at.step_b);
    if (!measured.kl) return no_data("token_kl", within, measured.reason);
    return judge_kl(*measured.kl, within, options_.surfaces, pool_);
  }

  // The same remark about several checkpoints is told once.
  void add_note(const Evidence& a, const Evidence& b, const CommonStep& at,
                const std::string& note) {
    const std::string who = concat(printable(a.name), " and ", printable(b.name), ": ");
    const std::string line = concat(who, note);
    const auto same = [&](const std::string& each) { return each.ends_with(line); };
    if (std::none_of(notes_.begin(), notes_.end(), same)) {
      notes_.push_back(concat("from step ", at.step, " on: ", line));
    }
  }

  FileSystem& fs_;
  const CompareOptions& options_;
  ThreadPool& pool_;
  std::vector<std::string>& notes_;
};

const SurfaceResult& surface_of(const StepComparison& step, std::string_view name) {
  const auto found = std::find_if(step.surfaces.begin(), step.surfaces.end(),
                                  [&](const SurfaceResult& each) { return each.surface == name; });
  LOCKSTEP_CHECK(found != step.surfaces.end(), name);
  return *found;
}

Verdict overall(const StepComparison& step) {
  bool all = true;
  for (const SurfaceResult& each : step.surfaces) {
    if (each.verdict == Verdict::kDiffers) return Verdict::kDiffers;
    if (!each.detail && each.verdict != Verdict::kReproduced) all = false;
  }
  return all ? Verdict::kReproduced : Verdict::kNotEnoughData;
}

void note_settings(FileSystem& fs, const Evidence& a, const Evidence& b,
                   std::vector<std::string>& notes) {
  for (const Evidence* side : {&a, &b}) {
    if (side->kind == EvidenceKind::kModel) {
      notes.push_back(concat(printable(side->path), " is a model without a training-loss curve"));
    }
  }
  if (a.tokens_per_step && b.tokens_per_step && *a.tokens_per_step != *b.tokens_per_step) {
    notes.push_back(concat("a step is ", *a.tokens_per_step, " tokens in A, ", *b.tokens_per_step,
                           " in B: equal steps are not equal amounts of data"));
  }
  if (a.tokenizer_path.empty() || b.tokenizer_path.empty() || !fs.exists(a.tokenizer_path) ||
      !fs.exists(b.tokenizer_path)) {
    return;
  }
  if (read_file(fs, a.tokenizer_path, kMaxTokenizerBytes) !=
      read_file(fs, b.tokenizer_path, kMaxTokenizerBytes)) {
    notes.push_back(concat("the tokenizer files differ: ", printable(a.tokenizer_path), " and ",
                           printable(b.tokenizer_path)));
  }
}

void note_curves(const CurveDifference& curve, std::vector<std::string>& notes) {
  if (curve.common_steps > 0 && curve.only_a + curve.only_b > 0) {
    notes.push_back(concat("training loss: ", curve.only_a, " steps are logged by A only, ",
                           curve.only_b, " by B only"));
  }
  if (curve.not_finite > 0) {
    notes.push_back(concat("training loss: ", curve.not_finite,
                           " common steps have no finite loss on both sides"));
  }
  if (curve.different_batches > 0) {
    notes.push_back(concat("training data: ", curve.different_batches, " of ", curve.batches,
                           " common steps saw different batches"));
  }
}

// Data seen several times lowers the training loss by memory; held-out loss stays or rises.
void note_memorisation(const Comparison& comparison, std::vector<std::string>& notes) {
  if (comparison.steps.empty() || comparison.training_loss.common_steps == 0) return;
  const CurveDifference& curve = comparison.training_loss;
  const SurfaceResult& heldout = surface_of(comparison.steps.back(), "perplexity");
  if (!std::isfinite(heldout.estimate.value)) return;
  const double gain = curve.last_b - curve.last_a;
  for (const auto& [side, lower, heldout_gain] : {std::tuple{"A", gain, -heldout.estimate.value},
                                                  std::tuple{"B", -gain, heldout.estimate.value}}) {
    if (lower > heldout.tolerance && heldout_gain < lower / 2) {
      notes.push_back(concat("training loss of ", side, " is lower by ", lower, " over the last ",
                             curve.window, " common steps, its held-out loss by ", heldout_gain,
                             ": a sign of data seen more than once (lockstep data audit)"));
    }
  }
}

// A floor above the usual tolerance says that such runs drift apart by rounding alone.
void note_floor(std::optional<double> tolerance, double usual, const CommonStep& at,
                std::vector<std::string>& notes) {
  if (!tolerance || *tolerance <= usual) return;
  notes.push_back(concat("step ", at.step, ": the floor's own token KL is ", *tolerance / 2,
                         ", so that token_kl is held to ", *tolerance, ", not ", usual,
                         ": such runs drift apart by rounding alone"));
}

bool has_anything(const Evidence& side, std::int64_t step) {
  return side.evaluations.contains(step) || side.checkpoints.contains(step);
}

}  // namespace

const SurfaceResult* Companion::find(std::int64_t step, const std::string& surface) const {
  for (const StepComparison& each : steps) {
    if (each.at.step != step) continue;
    for (const SurfaceResult& result : each.surfaces) {
      if (result.surface == surface) return &result;
    }
  }
  return nullptr;
}

std::vector<Comparison> compare_first(FileSystem& fs, std::span<const Evidence> evidence,
                                      const CompareOptions& options, ThreadPool& pool) {
  std::vector<Comparison> comparisons;
  for (std::size_t i = 1; i < evidence.size(); ++i) {
    comparisons.push_back(
        compare_evidence(fs, evidence[0], evidence[i], nullptr, nullptr, options, pool));
  }
  return comparisons;
}

Comparison compare_evidence(FileSystem& fs, const Evidence& a, const Evidence& b,
                            const Evidence* floor, const Evidence* context,
                            const CompareOptions& options, ThreadPool& pool) {
  Comparison result;
  result.a = a;
  result.b = b;
  result.tolerances = options.surfaces.tolerances.all();
  std::vector<std::string>& notes = result.notes;
  for (const Evidence* side : {&a, &b}) {
    notes.insert(notes.end(), side->notes.begin(), side->notes.end());
  }
  note_settings(fs, a, b, notes);
  result.training_loss = compare_curves(a.curve, b.curve, options.window);
  note_curves(result.training_loss, notes);

  Comparer comparer(fs, options, pool, notes);
  const auto start = [](const Evidence* side) {
    return side == nullptr
               ? std::nullopt
               : std::optional(Companion{.path = side->path, .name = side->name, .steps = {}});
  };
  result.floor = start(floor);
  result.context = start(context);
  for (const CommonStep& at : common_steps(a, b, notes)) {
    const auto add = [&](const Evidence* side, std::optional<Companion>& companion) {
      if (side == nullptr || !has_anything(*side, at.step)) return false;
      companion->steps.push_back(
          {at, comparer.compare(*side, b, {at.step, at.step, at.step_b}, {})});
      return true;
    };
    std::optional<double> tolerance;
    if (add(floor, result.floor)) {
      tolerance = comparer.floor_tolerance(result.floor->steps.back().surfaces);
      note_floor(tolerance, options.surfaces.tolerances.of("token_kl"), at, notes);
    }
    add(context, result.context);
    result.steps.push_back({at, comparer.compare(a, b, at, tolerance)});
  }
  for (const auto* companion : {&result.floor, &result.context}) {
    if (*companion && (*companion)->steps.empty()) {
      notes.push_back(concat(printable((*companion)->path),
                             ": has nothing at the common checkpoints and is not used"));
    }
  }
  note_memorisation(result, notes);
  if (!result.steps.empty()) result.verdict = overall(result.steps.back());
  return result;
}

}  // namespace lockstep
