#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "model/counts.h"
#include "model/init.h"
#include "model/model.h"

// One forward and backward of the published sizes, with all their rows of vocabulary up to 1B.
// Skipped, saying so, where the machine's memory does not hold one.
namespace lockstep {
namespace {

constexpr LeafShape kShape{1, 24};

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t kilobytes = 0;
  std::string unit;
  while (file >> key >> kilobytes >> unit) {
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

std::int64_t needed_memory(const ModelConfig& config) {
  const ParameterTable table(config);
  constexpr std::int64_t kSpare = std::int64_t{1} << 30;
  return 2 * 4 * table.size() +
         Weights::packed_bytes(config, Precision::kBf16, Weights::Use::kForwardAndBackward,
                               best_isa()) +
         activation_bytes(config, kShape, Pass::kTraining, Remat::kNone, Precision::kBf16) + kSpare;
}

void take_a_step(const ModelConfig& config) {
  config.validate();
  const std::int64_t needed = needed_memory(config);
  if (const std::int64_t available = available_memory(); available < needed) {
    GTEST_SKIP() << "needs " << human_bytes(static_cast<std::uint64_t>(needed)) << ", there are "
                 << human_bytes(static_cast<std::uint64_t>(available));
  }
  CpuStream stream(ThreadPool::available_cpus());
  Model model(config, {.precision = Precision::kBf16}, stream);
  EXPECT_EQ(model.table().count(), parameter_count(config));
  initialise(model.table(), {.seed = 1, .std = config.init_std}, model.weights(), stream.pool());
  model.refresh();
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < kShape.tokens(); ++i) {
    tokens.push_back(static_cast<std::int32_t>(i * 12345 % config.vocab_size));
  }
  const View ids(tokens.data(), DType::kI32, {kShape.sequences, kShape.positions});
  Buffer memory(model.table().size() * 4, "gradient");
  const View gradient(memory.data(), DType::kF32, {model.table().size()});
  const LossSums sums = model.forward_backward({.tokens = ids, .targets = ids, .segments = {}},
                                               {.scale = 1.0F / 24}, gradient);
  // Logits are near normal with variance D std^2, which adds half of it to the entropy.
  const double uniform = std::log(static_cast<double>(config.vocab_rows()));
  const double variance = static_cast<double>(config.d_model) * config.init_std * config.init_std;
  EXPECT_NEAR(sums.ce / static_cast<double>(sums.count), uniform + variance / 2,
              0.25 + 5 * std::sqrt(variance / 24));
  for (const Parameter& parameter : model.table().parameters()) {
    const auto* values = model.table().tensor(gradient, parameter).data<float>();
    double squares = 0;
    for (std::int64_t i = 0; i < parameter.size; ++i) {
      squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    EXPECT_TRUE(std::isfinite(squares) && squares > 0) << parameter.name;
  }
}

class PresetStep : public testing::TestWithParam<Preset> {};

INSTANTIATE_TEST_SUITE_P(UpTo1B, PresetStep,
                         testing::Values(Preset::k1M, Preset::k14M, Preset::k30M, Preset::k60M,
                                         Preset::k100M, Preset::k190M, Preset::k370M, Preset::k600M,
                                         Preset::k760M, Preset::k1B),
                         [](const auto& tested) {
                           return std::string(to_name(tested.param)).substr(6);
                         });

TEST_P(PresetStep, RunsWhole) {
  ModelConfig config;
  config.preset = GetParam();
  config.apply_preset();
  take_a_step(config);
}

class TwoLayers : public testing::TestWithParam<Preset> {};

INSTANTIATE_TEST_SUITE_P(Large, TwoLayers,
                         testing::Values(Preset::k3B, Preset::k7B, Preset::k13B, Preset::k32B),
                         [](const auto& tested) {
                           return std::string(to_name(tested.param)).substr(6);
                         });

// Every shape of a block as it is; a sliding and a full layer, 2048 rows of vocabulary.
TEST_P(TwoLayers, RunTrueToShape) {
  ModelConfig config;
  config.preset = GetParam();
  config.apply_preset();
  config.n_layers = 2;
  config.layer_types = {LayerType::kSliding, LayerType::kFull};
  config.vocab_size = 2000;
  config.padded_vocab_size = 2048;
  config.eos_token_id = 0;
  config.pad_token_id = 1;
  take_a_step(config);
}

}  // namespace
}  // namespace lockstep
