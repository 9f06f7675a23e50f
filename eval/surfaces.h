#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/instance_source.h"
#include "eval/evaluation_file.h"
#include "eval/heldout.h"
#include "eval/loglikelihood.h"
#include "eval/parity.h"
#include "eval/task_choice.h"
#include "eval/task_eval.h"
#include "model/model.h"

// The surfaces that a model is held against, made ready once and evaluated as often as wanted.
namespace lockstep {

struct HeldoutPart {
  std::shared_ptr<const InstanceSource> documents;
  std::vector<std::int32_t> bytes_of_token;  // as HeldoutOptions
  std::int64_t batch = 8;
  std::int64_t max_documents = 0;
};

struct TasksPart {
  struct Task {
    std::string name;
    EncodedTask encoded;
  };
  std::vector<Task> tasks;
  std::int64_t fewshot = 0;
  std::int64_t tokens = 4096;  // as ScoreOptions
  PrefixReuse reuse = PrefixReuse::kYes;
};

struct KlPart {
  std::shared_ptr<const InstanceSource> documents;
  std::int64_t max_tokens = 0;  // as KlOptions
  std::string name;             // of the reference
  // The reference for a step of the model's: null when there is none, then the surface is left out.
  std::function<std::unique_ptr<Model>(std::int64_t step)> reference;
  // Or stored logits, which carry their own tokens; `documents` and `reference` are not used then.
  std::optional<Reference> stored = std::nullopt;
};

struct Surfaces {
  std::optional<HeldoutPart> heldout = std::nullopt;
  std::optional<TasksPart> tasks = std::nullopt;
  std::optional<KlPart> kl = std::nullopt;
};

struct SurfaceOptions {
  // `what` names the surface or task, `share` of its work is done; may be empty.
  std::function<void(const std::string& what, double share)> progress = {};
  std::function<bool()> stopping = {};  // may be empty
};

// Evaluates what is there. Nothing depends on batches, threads or reuse, to the bit. Returns
// nothing when it was stopped on the way.
[[nodiscard]] std::optional<Evaluation> evaluate_surfaces(Model& model, const EvaluatedModel& about,
                                                          const Surfaces& surfaces,
                                                          CpuStream& stream,
                                                          const SurfaceOptions& options);

// What the evaluation file holds of a domain, and of a held-out evaluation.
[[nodiscard]] HeldoutSurface::Domain domain_of(const DomainLoss& domain);
[[nodiscard]] HeldoutSurface heldout_surface(const HeldoutReport& report,
                                             const InstanceSource& documents);

// The domain whose loss stands for the C4-like text: the one of that label (nothing when there is
// none), for an empty label the first whose label holds "c4" in any case, else the first.
[[nodiscard]] const HeldoutSurface::Domain* c4_domain(const HeldoutSurface& heldout,
                                                      const std::string& label);

}  // namespace lockstep
