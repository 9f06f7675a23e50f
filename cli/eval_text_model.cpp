#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "cli/eval_options.h"
#include "train/run_evaluation.h"

namespace lockstep::cli {
namespace {

Tokenizer tokenizer_of(FileSystem& fs, const EvalOptions& options, const ModelConfig& model) {
  const std::string path = tokenizer_path(fs, options.model, options.tokenizer);
  if (path.empty()) {
    fail(ErrorKind::kInput, printable(options.model),
         ": no tokenizer.json beside the model; name one with --tokenizer");
  }
  return load_tokenizer(fs, path, model);
}

}  // namespace

std::unique_ptr<TextModel> open_text_model(FileSystem& fs, const EvalOptions& options) {
  CpuStream stream = make_stream(options.machine);
  HfModel source(fs, model_directory(fs, options.model), options.import);
  Tokenizer tokenizer = tokenizer_of(fs, options, source.config());
  const std::int32_t prefix = context_prefix(tokenizer, source.config());
  const std::int64_t length =
      options.sequence_length > 0 ? options.sequence_length : source.config().context_length;
  std::unique_ptr<TextModel> text(new TextModel{std::move(stream), std::move(source),
                                                std::move(tokenizer), prefix, length, nullptr});
  text->model = load_model(
      text->source,
      {.precision = precision_of_name(precision_name(options)), .use = Weights::Use::kForward},
      text->stream);
  return text;
}

std::string precision_name(const EvalOptions& options) {
  return options.precision.empty() ? "fp32" : options.precision;
}

ScoreOptions score_options(const EvalOptions& options) {
  constexpr std::int64_t kPositions = 512;  // of one sequence, as a rule
  return {.tokens = options.batch * kPositions,
          .reuse = options.no_prefix_reuse ? PrefixReuse::kNo : PrefixReuse::kYes,
          .progress = {}};
}

ProgressBar::ProgressBar(Context& context) : context_(context), start_ns_(now_ns()) {}

void ProgressBar::show(double share, std::string_view what) {
  constexpr std::size_t kWidth = 24;
  const auto filled = static_cast<std::size_t>(std::floor(share * kWidth));
  const double elapsed = static_cast<double>(now_ns() - start_ns_) / 1e9;
  std::string line = "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "] ";
  line += concat(static_cast<int>(share * 100), "% ", what);
  if (share > 0 && share < 1) {
    line += concat(", ", human_seconds(elapsed * (1 - share) / share), " left");
  }
  context_.progress(line);
}

OrderedJson number_or_null(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

}  // namespace lockstep::cli
