#include "eval/surfaces.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "eval/token_kl.h"

namespace lockstep {
namespace {

bool holds_c4(std::string label) {
  std::transform(label.begin(), label.end(), label.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return label.find("c4") != std::string::npos;
}

class Run {
 public:
  Run(Model& model, CpuStream& stream, const SurfaceOptions& options)
      : model_(model), stream_(stream), options_(options) {}

  [[nodiscard]] bool stopped() const { return options_.stopping && options_.stopping(); }

  HeldoutSurface heldout(const HeldoutPart& part) {
    const HeldoutReport report = evaluate_heldout(
        model_, *part.documents,
        {.batch = part.batch,
         .max_documents = part.max_documents,
         .bytes_of_token = part.bytes_of_token,
         .progress =
             [&](std::size_t done, std::size_t all) {
               show("held-out", static_cast<double>(done) / static_cast<double>(all));
             },
         .stopping = options_.stopping});
    return heldout_surface(report, *part.documents);
  }

  std::vector<TaskSurface> tasks(const TasksPart& part) {
    std::vector<TaskSurface> surfaces;
    for (const TasksPart::Task& task : part.tasks) {
      ScoreOptions score{.tokens = part.tokens, .reuse = part.reuse};
      score.progress = [&](double share) { show(task.name, share); };
      score.stopping = options_.stopping;
      const auto answers = answer_task(model_, task.encoded, score);
      if (stopped()) break;
      surfaces.push_back(task_surface(task.name, part.fewshot, answers));
    }
    return surfaces;
  }

  std::optional<KlSurface> kl(const KlPart& part, std::int64_t step) {
    KlSurface surface;
    if (part.stored) {
      surface = measure_token_kl(model_, *part.stored, stream_);
    } else {
      const auto reference = part.reference(step);
      if (reference == nullptr) return std::nullopt;
      surface = measure_token_kl(model_, *reference, *part.documents, stream_,
                                 {.max_tokens = part.max_tokens,
                                  .progress =
                                      [&](std::int64_t done, std::int64_t all) {
                                        show("token KL",
                                             static_cast<double>(done) / static_cast<double>(all));
                                      },
                                  .stopping = options_.stopping});
    }
    surface.reference = part.name;
    return surface;
  }

 private:
  void show(const std::string& what, double share) const {
    if (options_.progress) options_.progress(what, share);
  }

  Model& model_;
  CpuStream& stream_;
  const SurfaceOptions& options_;
};

}  // namespace

std::optional<Evaluation> evaluate_surfaces(Model& model, const EvaluatedModel& about,
                                            const Surfaces& surfaces, CpuStream& stream,
                                            const SurfaceOptions& options) {
  Run run(model, stream, options);
  Evaluation evaluation;
  evaluation.model = about;
  if (surfaces.heldout) evaluation.heldout = run.heldout(*surfaces.heldout);
  if (surfaces.tasks && !run.stopped()) evaluation.tasks = run.tasks(*surfaces.tasks);
  if (surfaces.kl && !run.stopped()) evaluation.kl = run.kl(*surfaces.kl, about.step);
  if (run.stopped()) return std::nullopt;
  return evaluation;
}

HeldoutSurface::Domain domain_of(const DomainLoss& domain) {
  return {.label = domain.label,
          .documents = domain.documents,
          .tokens = domain.tokens,
          .targets = domain.targets,
          .bytes = domain.bytes,
          .loss = domain.strict(),
          .perplexity = domain.perplexity(),
          .bits_per_byte = domain.bits_per_byte(),
          .loss_olmo_core = domain.olmo_core(),
          .perplexity_olmo_core = std::exp(domain.olmo_core())};
}

HeldoutSurface heldout_surface(const HeldoutReport& report, const InstanceSource& documents) {
  HeldoutSurface surface{.data_fingerprint = documents.fingerprint(),
                         .sequence_length = static_cast<std::int64_t>(documents.sequence_length())};
  for (const DomainLoss& domain : report.domains) surface.domains.push_back(domain_of(domain));
  for (const DocumentLoss& document : report.documents) {
    surface.by_document.push_back({.label = documents.labels()[document.label],
                                   .document = static_cast<std::int64_t>(document.document),
                                   .targets = document.targets,
                                   .bytes = document.bytes,
                                   .ce = document.ce});
  }
  return surface;
}

const HeldoutSurface::Domain* c4_domain(const HeldoutSurface& heldout, const std::string& label) {
  const auto& domains = heldout.domains;
  const auto found = std::find_if(domains.begin(), domains.end(), [&](const auto& domain) {
    return label.empty() ? holds_c4(domain.label) : domain.label == label;
  });
  if (found != domains.end()) return &*found;
  return label.empty() && !domains.empty() ? &domains.front() : nullptr;
}

}  // namespace lockstep
