#include "train/learner.h"

#include <cmath>

#include "model/init.h"
#include "ops/adamw.h"
#include "ops/elementwise.h"
#include "ops/run.h"
#include "optim/adamw.h"

namespace lockstep {
namespace {

Buffer moments_memory(const Recipe& recipe, std::int64_t floats) {
  const std::int64_t bytes = 2 * floats * static_cast<std::int64_t>(sizeof(float));
  constexpr const char* kWhat = "the optimiser's moments";
  return recipe.train.offload == Offload::kDisk ? Buffer(bytes, kWhat, recipe.directory())
                                                : Buffer(bytes, kWhat);
}

Buffer tree_memory(std::int64_t leaves, std::int64_t floats) {
  Arena measure;
  static_cast<void>(LeafTree(leaves, floats, measure));
  return {measure.used(), "gradients"};
}

View view_of(const std::vector<std::int32_t>& values, std::int64_t rows) {
  if (values.empty()) return {};
  return {const_cast<std::int32_t*>(values.data()),
          DType::kI32,
          {rows, static_cast<std::int64_t>(values.size()) / rows}};
}

Leaf leaf_of(const LeafData& data) {
  const auto rows = static_cast<std::int64_t>(data.instances.size());
  return {.tokens = view_of(data.tokens, rows),
          .targets = view_of(data.targets, rows),
          .segments = view_of(data.segments, rows)};
}

// What the summed loss is divided by (facts of both references: recipe_sections.h).
std::int64_t divisor_of(const Batch& batch, LossDivisor kind, std::int64_t sequence_length) {
  auto count = static_cast<std::int64_t>(batch.target_count());
  if (kind == LossDivisor::kOlmoCore) {
    for (const auto& leaf : batch.leaves) {
      for (const auto filtered : leaf.filtered) count += filtered != 0 ? sequence_length - 1 : 0;
    }
  }
  return count;
}

}  // namespace

Learner::Learner(const Recipe& recipe, CpuStream& stream)
    : recipe_(recipe),
      stream_(stream),
      model_(recipe.model,
             {.precision = recipe.train.precision,
              .remat = recipe.train.remat,
              .use = Weights::Use::kForwardAndBackward},
             stream),
      moments_memory_(moments_memory(recipe, model_.table().size())),
      tree_memory_(tree_memory(recipe.leaves_per_step(), model_.table().size())),
      tree_([&] {
        Arena arena(tree_memory_);
        return LeafTree(recipe.leaves_per_step(), model_.table().size(), arena);
      }()),
      leaf_sums_(static_cast<std::size_t>(recipe.leaves_per_step())) {
  Arena moments(moments_memory_);
  first_moment_ = moments.take(DType::kF32, {model_.table().size()});
  second_moment_ = moments.take(DType::kF32, {model_.table().size()});
  model_.reserve({recipe.batch.microbatch, recipe.data.sequence_length}, Pass::kTraining);
  for (const auto& parameter : model_.table().parameters()) {
    const bool decayed = is_decayed(recipe.optim, parameter.name);
    const LinearWeight* linear = linear_of(parameter);
    if (ranges_.empty() || ranges_.back().decayed != decayed || ranges_.back().linear != linear) {
      ranges_.push_back({parameter.offset, 0, decayed, linear});
    }
    ranges_.back().size = parameter.offset + parameter.size - ranges_.back().begin;
  }
}

const LinearWeight* Learner::linear_of(const Parameter& parameter) const {
  const float* weight = model_.weights().data<float>() + parameter.offset;
  for (const LinearWeight& linear : model_.linears()) {
    const auto* master = linear.master.data<float>();
    if (weight >= master && weight < master + linear.master.size()) return &linear;
  }
  return nullptr;
}

void Learner::initialise() {
  lockstep::initialise(
      model_.table(),
      {.seed = static_cast<std::uint64_t>(recipe_.init.seed), .std = recipe_.model.init_std},
      model_.weights(), stream_.pool());
  refresh();
}

void Learner::load(const CheckpointReader& checkpoint, bool moments) {
  for (const auto& parameter : model_.table().parameters()) {
    const auto read = [&](TensorPart part, const View& flat) {
      const View view = model_.table().tensor(flat, parameter);
      checkpoint.read(part, parameter.name,
                      {view.data<float>(), static_cast<std::size_t>(parameter.size)});
    };
    read(TensorPart::kWeight, model_.weights());
    if (!moments) continue;
    read(TensorPart::kFirstMoment, first_moment_);
    read(TensorPart::kSecondMoment, second_moment_);
  }
  refresh();
}

StepResult Learner::step(const Batch& batch, double lr, TrainingState& state) {
  const std::int64_t divisor =
      divisor_of(batch, recipe_.train.loss_divisor, recipe_.data.sequence_length);
  if (divisor == 0) {
    fail(ErrorKind::kData, "step ", state.step + 1, ": every instance of batch ", batch.step,
         " is masked out of the loss; switch filter.enabled off or pass the step over with "
         "train.steps_to_skip");
  }
  const Objective objective{.scale = static_cast<float>(1.0 / static_cast<double>(divisor)),
                            .z_coefficient = static_cast<float>(recipe_.train.z_loss)};
  for (std::size_t i = 0; i < batch.leaves.size(); ++i) {
    const auto [gradient, accumulate] = tree_.next();
    leaf_sums_[i] =
        model_.forward_backward(leaf_of(batch.leaves[i]), objective, gradient, accumulate);
    tree_.add(stream_);
  }
  const View gradient = tree_.finish(stream_);

  StepResult result;
  for (const auto& sums : leaf_sums_) {
    result.ce_loss += sums.ce;
    result.z_loss += sums.z;
    result.targets += sums.count;
  }
  result.ce_loss /= static_cast<double>(divisor);
  result.z_loss *= recipe_.train.z_loss / static_cast<double>(divisor);

  double sum_of_squares = 0;
  ops::run(stream_, ops::SumOfSquares{.sum = &sum_of_squares, .x = gradient});
  result.grad_norm = std::sqrt(sum_of_squares);

  result.verdict = state.skip.judge(recipe_.optim.skip_step, result.ce_loss, result.grad_norm);
  if (result.verdict == StepVerdict::kTake) {
    const double clip = clip_coefficient(result.grad_norm, recipe_.optim.grad_clip);
    update(gradient, lr, clip, ++state.adam_step);
  }
  return result;
}

void Learner::update(const View& gradient, double lr, double clip, std::int64_t t) {
  for (const Range& range : ranges_) {
    const AdamWFactors factors = adamw_factors(recipe_.optim, lr, t, range.decayed);
    const auto part = [&](const View& flat) { return flat.slice(0, range.begin, range.size); };
    ops::run(stream_,
             ops::AdamWStep{.p = part(model_.weights()),
                            .m = part(first_moment_),
                            .v = part(second_moment_),
                            .g = part(gradient),
                            .packed = range.is_whole() ? &range.linear->packed : nullptr,
                            .decay = static_cast<float>(factors.decay),
                            .beta1 = static_cast<float>(recipe_.optim.beta1),
                            .beta2 = static_cast<float>(recipe_.optim.beta2),
                            .step_size = static_cast<float>(factors.step_size),
                            .inv_sqrt_correction = static_cast<float>(factors.inv_sqrt_correction),
                            .eps = static_cast<float>(recipe_.optim.eps),
                            .grad_scale = static_cast<float>(clip)});
  }
  // A weight whose parameters decay differently was updated in parts.
  const LinearWeight* last = nullptr;
  for (const Range& range : ranges_) {
    if (range.linear == nullptr || range.is_whole() || range.linear == last) continue;
    last = range.linear;
    ops::run(stream_, ops::PackWeight{.packed = &last->packed, .weight = last->master});
  }
}

std::vector<CheckpointTensor> Learner::tensors() const {
  std::vector<CheckpointTensor> tensors;
  for (const auto& parameter : model_.table().parameters()) {
    const auto values = [&](const View& flat) -> std::span<const float> {
      return {model_.table().tensor(flat, parameter).data<float>(),
              static_cast<std::size_t>(parameter.size)};
    };
    tensors.push_back({parameter.name,
                       {parameter.shape.begin(), parameter.shape.end()},
                       values(model_.weights()),
                       values(first_moment_),
                       values(second_moment_)});
  }
  return tensors;
}

std::string Learner::kernel_set() const {
  return concat(name_of(stream_.isa()), "/", kKernelNumerics);
}

}  // namespace lockstep
