#include <memory>

#include "base/text.h"
#include "checkpoint/paths.h"
#include "cli/compare_options.h"
#include "cli/golden_file.h"
#include "data/heldout.h"
#include "data/mix.h"
#include "eval/token_kl.h"
#include "train/recipe.h"

namespace lockstep::cli {
namespace {

// Held-out text, and how its files are to be read.
struct HeldoutText {
  std::string mix;
  std::string base_directory;
  std::string tokenizer_name;
  std::string token_type;
  std::int64_t sequence_length = 0;  // 0: the model's context
};

HeldoutText choose_text(const CompareCommand& command, const std::vector<const Evidence*>& runs) {
  HeldoutText text{command.mix, command.base_directory, command.tokenizer_name, command.token_type,
                   command.sequence_length};
  for (const Evidence* run : runs) {
    if (!text.mix.empty()) break;
    if (run->recipe_path.empty()) continue;
    const Recipe recipe = read_recipe(run->recipe_path);
    if (recipe.eval.mix.empty()) continue;
    text.mix = recipe.eval.mix;
    text.base_directory =
        recipe.eval.base_dir.empty() ? recipe.data.base_dir : recipe.eval.base_dir;
    text.tokenizer_name =
        recipe.eval.tokenizer.empty() ? recipe.data.tokenizer : recipe.eval.tokenizer;
    text.token_type = to_name(recipe.data.token_type);
    if (text.sequence_length == 0) text.sequence_length = recipe.data.sequence_length;
  }
  return text;
}

class Measurer {
 public:
  Measurer(Context& context, FileSystem& fs, const CompareCommand& command, HeldoutText text,
           CpuStream& stream)
      : context_(context),
        fs_(fs),
        command_(command),
        options_{.precision = precision_of_name(command.precision), .use = Weights::Use::kForward},
        text_(std::move(text)),
        stream_(stream) {}

  MeasuredKl measure(const Evidence& model, std::int64_t model_step, const Evidence& reference,
                     std::int64_t reference_step) {
    const auto ours = model.checkpoints.find(model_step);
    if (ours == model.checkpoints.end()) return {.reason = lacks_weights(model, model_step)};
    const auto theirs = reference.checkpoints.find(reference_step);
    const auto logits = reference.logits.find(reference_step);
    const bool has_logits = logits != reference.logits.end();
    if (theirs == reference.checkpoints.end() && !has_logits) {
      return {.reason = lacks_weights(reference, reference_step)};
    }
    if (text_.mix.empty() && !has_logits) {
      return {.reason = "no held-out text to run the weights on: name it with --mix"};
    }
    if (theirs == reference.checkpoints.end() || text_.mix.empty()) {
      return measure_stored(ours->second, logits->second);
    }
    return measure_weights(ours->second, theirs->second);
  }

 private:
  static std::string lacks_weights(const Evidence& side, std::int64_t step) {
    return concat(printable(side.name), " has no weights of step ", step);
  }

  static std::string differing(std::int64_t ours, std::int64_t theirs) {
    return concat("the vocabularies differ: ", ours, " and ", theirs, " ids");
  }

  MeasuredKl measure_weights(const std::string& ours, const std::string& theirs) {
    const HfModel source(fs_, ours, command_.import);
    const HfModel other(fs_, theirs, command_.import);
    if (source.config().vocab_size != other.config().vocab_size) {
      return {.reason = differing(source.config().vocab_size, other.config().vocab_size)};
    }
    const HeldoutDocuments documents = open_documents(source.config());
    const auto model = load_model(source, options_, stream_);
    const auto reference = load_model(other, options_, stream_);
    KlSurface kl =
        measure_token_kl(*model, *reference, documents, stream_,
                         {.max_tokens = command_.kl_tokens,
                          .progress =
                              [&](std::int64_t done, std::int64_t all) {
                                context_.progress(concat("token KL of ", printable(ours), ": ",
                                                         done, " of ", all, " tokens"));
                              },
                          .stopping = {}});
    context_.end_progress();
    kl.reference = theirs;
    return {.kl = std::move(kl), .reason = {}};
  }

  MeasuredKl measure_stored(const std::string& ours, const std::string& logits) {
    const HfModel source(fs_, ours, command_.import);
    const Reference stored = open_golden_file(fs_, logits);
    if (stored.vocab < source.config().vocab_size || stored.vocab > source.config().vocab_rows()) {
      return {.reason = differing(source.config().vocab_size, stored.vocab)};
    }
    const auto model = load_model(source, options_, stream_);
    context_.progress(concat("token KL of ", printable(ours), " against stored logits"));
    KlSurface kl = measure_token_kl(*model, stored, stream_);
    context_.end_progress();
    kl.reference = logits;
    return {.kl = std::move(kl), .reason = {}};
  }

  HeldoutDocuments open_documents(const ModelConfig& model) {
    const std::int64_t length =
        text_.sequence_length > 0 ? text_.sequence_length : model.context_length;
    const HeldoutSpec spec{.base_directory = text_.base_directory,
                           .width = token_width_of_name(text_.token_type),
                           .end_of_text = static_cast<std::uint32_t>(model.eos_token_id),
                           .padding = 0,
                           .sequence_length = static_cast<std::uint64_t>(length),
                           .vocabulary = {.size = static_cast<std::uint32_t>(model.vocab_size),
                                          .rows = static_cast<std::uint32_t>(model.vocab_rows())}};
    return {fs_, spec, read_mix(fs_, text_.mix, text_.tokenizer_name)};
  }

  Context& context_;
  FileSystem& fs_;
  CompareCommand command_;
  ModelOptions options_;
  HeldoutText text_;
  CpuStream& stream_;
};

}  // namespace

KlSource make_kl_source(Context& context, FileSystem& fs, const CompareCommand& command,
                        const std::vector<const Evidence*>& runs, CpuStream& stream) {
  // Shared: std::function must be copyable.
  const auto measurer =
      std::make_shared<Measurer>(context, fs, command, choose_text(command, runs), stream);
  return [measurer](const Evidence& model, std::int64_t model_step, const Evidence& reference,
                    std::int64_t reference_step) {
    return measurer->measure(model, model_step, reference, reference_step);
  };
}

}  // namespace lockstep::cli
