#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "eval/logit_distance.h"
#include "model/model.h"
#include "tensor/view.h"

namespace lockstep {

// What a model is held against: tokens, and for the last `compared` positions of each sequence the
// logits that another implementation (or another model) gives.
struct Reference {
  std::int64_t sequences = 0;          // B
  std::int64_t positions = 0;          // T
  std::int64_t compared = 0;           // logits are there for positions [T - compared, T)
  std::int64_t vocab = 0;              // columns of its logits
  std::vector<std::int32_t> tokens;    // B T
  std::vector<std::int32_t> segments;  // B T, or none: no document mask
  std::vector<std::int32_t> targets;   // B T, -1: masked; read when there are gradients

  // Gives logits of positions [first, first + rows) of a sequence, (rows, vocab) row-major.
  std::function<void(std::int64_t sequence, std::int64_t first, std::span<float> out)> logits;

  // The gradient of  mean ce + z_coefficient mean z  over the targets; none: not compared.
  struct Gradient {
    std::string name;  // of the parameter
    std::int64_t elements = 0;
    std::function<void(std::span<float> out)> read;
  };
  std::vector<Gradient> gradients;
  std::optional<double> gradient_norm;  // global; computed from `gradients` when absent
  float z_coefficient = 1e-5F;
};

// How far our model is from it. KL(reference || ours) in nats by position, from fp64 softmaxes over
// the smaller of the two vocabularies (MaxText, tests/utils/forward_pass_logit_checker.py); top1 is
// the share of positions with the same most likely token.
struct ParityReport {
  std::int64_t compared = 0;  // positions, of all sequences
  std::int64_t vocab = 0;
  double logit_max_abs = 0;
  double kl_mean = 0;
  double kl_max = 0;
  double top1 = 0;
  // By parameter: ||g - g*|| / max(||g*||, 1e-6 of the global norm); none without gradients.
  std::vector<std::pair<std::string, double>> gradient_errors;
  [[nodiscard]] std::optional<double> gradient_error_max() const;
};

// Runs the model over the reference's tokens and compares. Memory: activations of one sequence and
// a few rows of logits; with gradients, of all sequences, and the gradient. Throws kInput when the
// reference cannot be this model's (a gradient of an unknown parameter or another size, a token
// outside the vocabulary).
// `on_position` (may be empty) is told of every position compared, in their order.
using OnPosition = std::function<void(std::int64_t sequence, std::int64_t position,
                                      const LogitDistance& distance)>;
[[nodiscard]] ParityReport measure_parity(Model& model, const Reference& reference,
                                          CpuStream& stream, const OnPosition& on_position = {});

// A reference's logits from another model, which must outlive the result. Sequences are run on
// demand, one at a time, in order.
[[nodiscard]] Reference reference_from_model(Model& other, std::vector<std::int32_t> tokens,
                                             std::int64_t sequences);

}  // namespace lockstep
