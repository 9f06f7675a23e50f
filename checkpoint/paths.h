#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Every name inside a run directory and a checkpoint is made here (docs/formats.md).
namespace lockstep::paths {

// RUN/...
inline constexpr const char* kRecipe = "recipe.toml";  // resolved; marks a run directory
inline constexpr const char* kMetrics = "metrics.jsonl";
inline constexpr const char* kMetricsCsv = "metrics.csv";
inline constexpr const char* kEvents =
    "events.jsonl";  // starts, resumes, saves, forks, evaluations
inline constexpr const char* kLock = "lock";
inline constexpr const char* kCheckpoints = "checkpoints";
inline constexpr const char* kConsumed = "consumed";
inline constexpr const char* kEvals = "evals";

// CHECKPOINT/...
inline constexpr const char* kManifest = "manifest.json";  // written last
inline constexpr const char* kWeights = "model.safetensors";
inline constexpr const char* kMoments = "optimizer.safetensors";
inline constexpr const char* kState = "state.json";
inline constexpr const char* kHfConfig = "config.json";

// MODEL/..., beside a model that is an average of others.
inline constexpr const char* kAverage = "average.json";

// "step-00001000".
[[nodiscard]] std::string checkpoint_name(std::int64_t step);
// The step of such a name; nothing for any other name, one with a .tmp suffix included.
[[nodiscard]] std::optional<std::int64_t> step_of(std::string_view name);
// True for what a save that did not finish left behind: "step-00001000.tmp-<id>".
[[nodiscard]] bool is_unfinished(std::string_view name);

}  // namespace lockstep::paths
