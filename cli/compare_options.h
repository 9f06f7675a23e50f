#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/model_source.h"
#include "report/comparison.h"

// The parts of `lockstep compare`.
namespace lockstep::cli {

struct CompareCommand {
  std::string a;
  std::string b;
  std::vector<std::string> evaluations_a;
  std::vector<std::string> evaluations_b;
  std::string floor;
  std::string context;
  std::vector<std::string> tolerances;
  std::string c4;
  std::string report;  // the page to write; empty: none
  std::int64_t window = kDefaultWindow;
  std::uint64_t seed = 0;
  // Measuring token KL.
  bool no_kl = false;
  std::int64_t kl_tokens = 65536;
  std::string mix;
  std::string base_directory;
  std::string tokenizer_name;
  std::string token_type = "uint32";
  std::int64_t sequence_length = 0;
  std::string precision = "fp32";
  HfImportOptions import;
  MachineOptions machine;
};

// Runs the weights of two sides over held-out text: that of --mix, else of the [eval] of the first
// of `runs` that has one; without any, over the tokens of the reference's stored logits. `context`
// and `stream` must outlive the result; what it cannot measure it gives a reason for. Throws for
// files that cannot be used.
[[nodiscard]] KlSource make_kl_source(Context& context, FileSystem& fs,
                                      const CompareCommand& command,
                                      const std::vector<const Evidence*>& runs, CpuStream& stream);

// The comparison for people.
void say_comparison(Context& context, const Comparison& comparison);

}  // namespace lockstep::cli
