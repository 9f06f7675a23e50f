#include "eval/parity.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "tensor/buffer.h"

namespace lockstep {
namespace {

// Rows of logits that are held at once.
constexpr std::int64_t kRows = 64;

View view_of(std::vector<std::int32_t>& ids, std::int64_t first, std::int64_t sequences,
             std::int64_t positions) {
  if (ids.empty()) return {};
  return {ids.data() + first * positions, DType::kI32, {sequences, positions}};
}

class Comparison {
 public:
  Comparison(Model& model, const Reference& reference, CpuStream& stream, const OnPosition& on)
      : model_(model),
        reference_(reference),
        stream_(stream),
        on_position_(on),
        tokens_(reference.tokens),
        segments_(reference.segments),
        targets_(reference.targets),
        rows_(std::min(kRows, reference.compared)),
        our_memory_(rows_ * model.config().vocab_rows() * 4, "logits"),
        ours_(our_memory_.data(), DType::kF32, {rows_, model.config().vocab_rows()}),
        theirs_(static_cast<std::size_t>(rows_ * reference.vocab)),
        row_results_(static_cast<std::size_t>(rows_)) {
    report_.vocab = std::min(model.config().vocab_size, reference.vocab);
    check();
  }

  ParityReport run() {
    for (std::int64_t sequence = 0; sequence < reference_.sequences; ++sequence) {
      compare_sequence(sequence);
    }
    const auto compared = static_cast<double>(report_.compared);
    report_.kl_mean = kl_sum_ / compared;
    report_.top1 = static_cast<double>(same_top_) / compared;
    if (!reference_.gradients.empty()) compare_gradients();
    return std::move(report_);
  }

 private:
  void check() const {
    const auto tokens = static_cast<std::size_t>(reference_.sequences * reference_.positions);
    LOCKSTEP_CHECK(reference_.compared > 0 && reference_.compared <= reference_.positions,
                   reference_.compared, " of ", reference_.positions);
    LOCKSTEP_CHECK(tokens_.size() == tokens, tokens_.size(), " tokens");
    LOCKSTEP_CHECK(segments_.empty() || segments_.size() == tokens, segments_.size());
    for (std::size_t i = 0; i < tokens; ++i) {
      if (tokens_[i] < 0 || tokens_[i] >= model_.config().vocab_rows()) {
        fail(ErrorKind::kInput, "token ", tokens_[i], " at ", i, ": the model's ids are below ",
             model_.config().vocab_rows());
      }
    }
  }

  void compare_sequence(std::int64_t sequence) {
    model_.forward({.tokens = view_of(tokens_, sequence, 1, reference_.positions),
                    .targets = {},
                    .segments = view_of(segments_, sequence, 1, reference_.positions)});
    const std::int64_t begin = reference_.positions - reference_.compared;
    for (std::int64_t first = begin; first < reference_.positions; first += rows_) {
      compare_rows(sequence, first, std::min(rows_, reference_.positions - first));
    }
  }

  void compare_rows(std::int64_t sequence, std::int64_t first, std::int64_t count) {
    const auto vocab = static_cast<std::size_t>(reference_.vocab);
    const auto cut = static_cast<std::size_t>(report_.vocab);
    reference_.logits(sequence, first,
                      std::span(theirs_).first(static_cast<std::size_t>(count) * vocab));
    model_.logits(first, ours_.slice(0, 0, count));
    const auto* ours = ours_.data<float>();
    const std::int64_t stride = ours_.stride(0);
    stream_.pool().parallel_for(count, [&](std::int64_t row, int) {
      const auto index = static_cast<std::size_t>(row);
      row_results_[index] =
          logit_distance({theirs_.data() + index * vocab, cut}, {ours + row * stride, cut});
    });
    for (std::int64_t row = 0; row < count; ++row) {
      const LogitDistance& result = row_results_[static_cast<std::size_t>(row)];
      const auto largest = [](double a, double b) { return b <= a ? a : b; };  // keeps a NaN
      report_.logit_max_abs = largest(report_.logit_max_abs, result.max_abs);
      report_.kl_max = largest(report_.kl_max, result.kl);
      kl_sum_ += result.kl;
      same_top_ += result.same_top ? 1 : 0;
      ++report_.compared;
      if (on_position_) on_position_(sequence, first + row, result);
    }
  }

  void compare_gradients() {
    const std::int64_t B = reference_.sequences;
    const std::int64_t T = reference_.positions;
    const auto targets = std::count_if(targets_.begin(), targets_.end(),
                                       [](std::int32_t target) { return target >= 0; });
    Buffer memory(model_.table().size() * 4, "gradient");
    const View gradient(memory.data(), DType::kF32, {model_.table().size()});
    model_.forward_backward({.tokens = view_of(tokens_, 0, B, T),
                             .targets = view_of(targets_, 0, B, T),
                             .segments = view_of(segments_, 0, B, T)},
                            {.scale = 1.0F / static_cast<float>(targets),
                             .z_coefficient = reference_.z_coefficient,
                             .vocab = model_.config().vocab_size},
                            gradient);
    double squares = 0;
    std::vector<Distance> distances;
    for (const Reference::Gradient& theirs : reference_.gradients) {
      distances.push_back(distance(theirs, gradient));
      squares += distances.back().norm_squared;
    }
    const double norm = reference_.gradient_norm.value_or(std::sqrt(squares));
    for (std::size_t i = 0; i < distances.size(); ++i) {
      const double scale = std::max(std::sqrt(distances[i].norm_squared), 1e-6 * norm);
      const double difference = std::sqrt(distances[i].difference_squared);
      report_.gradient_errors.emplace_back(reference_.gradients[i].name,
                                           difference == 0 ? 0 : difference / scale);
    }
  }

  struct Distance {
    double difference_squared = 0;
    double norm_squared = 0;
  };
  // Rows of ours beyond the reference's vocabulary are padding.
  [[nodiscard]] Distance distance(const Reference::Gradient& theirs, const View& gradient) const {
    const Parameter* parameter = model_.table().find(theirs.name);
    if (parameter == nullptr) {
      fail(ErrorKind::kInput, "the reference has a gradient of ", printable(theirs.name),
           ", which the model does not have");
    }
    const std::int64_t padded = model_.config().vocab_rows() - model_.config().vocab_size;
    const std::int64_t unpadded =
        parameter->shape.front() == model_.config().vocab_rows() && !parameter->is_gain()
            ? parameter->size - padded * parameter->shape.back()
            : parameter->size;
    if (theirs.elements != parameter->size && theirs.elements != unpadded) {
      fail(ErrorKind::kInput, "the reference's gradient of ", printable(theirs.name), " has ",
           theirs.elements, " elements, the model's ", parameter->size);
    }
    std::vector<float> values(static_cast<std::size_t>(theirs.elements));
    theirs.read(values);
    const float* ours = model_.table().tensor(gradient, *parameter).data<float>();
    Distance result;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto wanted = static_cast<double>(values[i]);
      const double difference = static_cast<double>(ours[i]) - wanted;
      result.difference_squared += difference * difference;
      result.norm_squared += wanted * wanted;
    }
    return result;
  }

  Model& model_;
  const Reference& reference_;
  CpuStream& stream_;
  const OnPosition& on_position_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> segments_;
  std::vector<std::int32_t> targets_;
  std::int64_t rows_;
  Buffer our_memory_;
  View ours_;                  // (rows, V)
  std::vector<float> theirs_;  // (rows, vocab)
  std::vector<LogitDistance> row_results_;
  ParityReport report_;
  double kl_sum_ = 0;
  std::int64_t same_top_ = 0;
};

}  // namespace

std::optional<double> ParityReport::gradient_error_max() const {
  std::optional<double> largest;
  for (const auto& [name, error] : gradient_errors) {
    if (!largest || !(error <= *largest)) largest = error;  // keeps a NaN
  }
  return largest;
}

ParityReport measure_parity(Model& model, const Reference& reference, CpuStream& stream,
                            const OnPosition& on_position) {
  return Comparison(model, reference, stream, on_position).run();
}

Reference reference_from_model(Model& other, std::vector<std::int32_t> tokens,
                               std::int64_t sequences) {
  Reference reference;
  reference.sequences = sequences;
  reference.positions = std::ssize(tokens) / sequences;
  reference.compared = reference.positions;
  reference.vocab = other.config().vocab_size;
  reference.tokens = std::move(tokens);
  struct State {
    std::vector<std::int32_t> tokens;
    std::int64_t ran = -1;  // the sequence whose hidden states the model holds
    std::vector<float> rows;
  };
  auto state = std::make_shared<State>();  // shared: std::function must be copyable
  state->tokens = reference.tokens;
  const std::int64_t T = reference.positions;
  reference.logits = [&other, state, T](std::int64_t sequence, std::int64_t first,
                                        std::span<float> out) {
    if (state->ran != sequence) {
      other.forward(
          {.tokens = view_of(state->tokens, sequence, 1, T), .targets = {}, .segments = {}});
      state->ran = sequence;
    }
    const std::int64_t vocab = other.config().vocab_size;
    const std::int64_t rows = other.config().vocab_rows();
    const std::int64_t count = std::ssize(out) / vocab;
    state->rows.resize(static_cast<std::size_t>(count * rows));
    other.logits(first, {state->rows.data(), DType::kF32, {count, rows}});
    for (std::int64_t row = 0; row < count; ++row) {
      std::copy_n(state->rows.begin() + row * rows, vocab, out.begin() + row * vocab);
    }
  };
  return reference;
}

}  // namespace lockstep
