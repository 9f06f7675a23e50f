#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/batch.h"
#include "model/model.h"
#include "optim/skip_step.h"
#include "parallel/leaf_tree.h"
#include "tensor/buffer.h"
#include "train/recipe.h"

namespace lockstep {

// Counts up when a change of kernels changes bits; part of a checkpoint's kernel_set.
inline constexpr int kKernelNumerics = 2;

// What one optimiser step did.
struct StepResult {
  double ce_loss = 0;
  double z_loss = 0;  // weighted
  double grad_norm = 0;
  StepVerdict verdict = StepVerdict::kTake;
  std::int64_t targets = 0;
  [[nodiscard]] double loss() const { return ce_loss + z_loss; }
};

// The model, its gradient and AdamW's moments, and the step that changes them. All memory is taken
// at construction; step() allocates nothing. Not thread-safe.
class Learner {
 public:
  // Throws kIo when the memory cannot be had. `stream` must outlive it.
  Learner(const Recipe& recipe, CpuStream& stream);

  // Fresh weights from the recipe's seed, zero moments.
  void initialise();
  // Everything from a checkpoint; kData when a tensor is missing, damaged or of another shape.
  void load(const CheckpointReader& checkpoint, bool moments);
  // Call after the weights were changed from outside.
  void refresh() { model_.refresh(); }

  // Forward and backward of the batch's leaves in order, their canonical sum, clipping, the skip
  // rule and AdamW. A step that is not taken leaves weights, moments and adam_step alone; the skip
  // window takes its values in. kData for token ids that the model has not.
  StepResult step(const Batch& batch, double lr, TrainingState& state);

  [[nodiscard]] Model& model() { return model_; }
  // Weights and moments by name, borrowed.
  [[nodiscard]] std::vector<CheckpointTensor> tensors() const;
  // Elements in all of tensors(), moments included.
  [[nodiscard]] std::int64_t checkpoint_floats() const { return 3 * model_.table().count(); }
  [[nodiscard]] std::string kernel_set() const;

 private:
  // A run of the flat arrays with one weight-decay factor: all of one weight of products, a part of
  // one, or what lies between them.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t size = 0;
    bool decayed = true;
    const LinearWeight* linear = nullptr;
    [[nodiscard]] bool is_whole() const {
      return linear != nullptr && linear->master.size() == size;
    }
  };
  [[nodiscard]] const LinearWeight* linear_of(const Parameter& parameter) const;
  void update(const View& gradient, double lr, double clip, std::int64_t t);

  Recipe recipe_;
  CpuStream& stream_;
  Model model_;
  Buffer moments_memory_;
  Buffer tree_memory_;
  View first_moment_;
  View second_moment_;
  LeafTree tree_;
  std::vector<Range> ranges_;
  std::vector<LossSums> leaf_sums_;
};

}  // namespace lockstep
