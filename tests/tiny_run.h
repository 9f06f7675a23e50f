#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/process.h"

namespace lockstep {

// A directory with a tiny recipe (tiny.toml: 4 layers, d 32, GQA, windows 3:1, batches of 6 in
// leaves of 2, 20 steps of which 16 are an epoch) and its data, and verbs to train in it.
class TinyRun : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  // lockstep train tiny.toml run.dir=RUN overrides...
  ProcessResult train(const std::string& run, const std::vector<std::string>& overrides = {});
  // The same, expecting exit code 0.
  void train_well(const std::string& run, const std::vector<std::string>& overrides = {});
  [[nodiscard]] std::vector<std::string> arguments(
      const std::string& run, const std::vector<std::string>& overrides = {}) const;

  // By step, what must be the same: "loss_bits grad_norm_bits lr batch_digest skipped".
  [[nodiscard]] std::map<std::int64_t, std::string> steps_of(const std::string& run) const;
  // The digest of the run's newest checkpoint.
  [[nodiscard]] std::string digest_of(const std::string& run) const;
  // Fails unless both runs logged the same steps and ended in the same state.
  void expect_same_run(const std::string& a, const std::string& b) const;

  [[nodiscard]] std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& bytes) const;
  void corrupt_byte(const std::string& name, std::uint64_t offset) const;

  std::string directory_;
};

}  // namespace lockstep
