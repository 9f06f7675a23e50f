#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/safetensors.h"

namespace lockstep {

struct AverageOptions {
  StoredDType dtype = StoredDType::kF32;  // or kBF16
  // Called with the work done, in elements read of all that will be; may be empty.
  std::function<void(std::int64_t done, std::int64_t all)> progress;
};

struct AverageSource {
  std::string directory;       // a checkpoint or a Hugging Face directory
  std::string tokenizer_file;  // its tokenizer.json; empty: none is known
};

// What one source was, as recorded.
struct AveragedModel {
  std::string directory;
  std::int64_t step = -1;  // -1: not a checkpoint of a run
  std::string weights;     // hash over names, shapes and values as f32
};

struct AverageReport {
  std::vector<AveragedModel> sources;  // by hash, the order in which they are added
  std::string weights;                 // hash of the average, before it is rounded to the dtype
  std::vector<std::string> files;      // written
};

// The hash of a model's weights: XXH3-128 over each tensor's name, shape and f32 values, tensors by
// name. Equal for equal weights, however the files are split or named.
[[nodiscard]] std::string weights_hash(FileSystem& fs, const std::string& directory);

// Writes to `out` the model whose every weight is the mean of the sources' ("soup"; Wortsman et al.
// 2022, arXiv:2203.05482, uniform soup): summed in fp64, divided by their number, rounded once to
// f32 (and once more for bf16). Sources are added in the order of their weights' hashes, so no bit
// depends on the order of `sources`, on paths or on threads. Padded rows of embedding and head are
// averaged too. `out` gets the model, the first known tokenizer.json, and average.json with where
// it came from; it appears whole or not at all. Memory: a piece (1 MiB) of each source.
//
// Every source is read twice; a checkpoint is checked against its checksums first. kInput: fewer
// than two sources, two with the same weights, an `out` that exists, models whose config differs
// (naming the fields) or whose tokenizers do; kData: a damaged source; kNumeric: a mean that is not
// finite, naming the tensor.
AverageReport average_models(FileSystem& fs, const std::vector<AverageSource>& sources,
                             const std::string& out, const AverageOptions& options);

}  // namespace lockstep
