#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "checkpoint/hf_import.h"
#include "model/model.h"
#include "tensor/stream.h"

namespace lockstep::cli {

struct MachineOptions {
  int threads = 0;
  std::string isa = "auto";
};
// --threads and --isa.
void add_machine_options(CLI::App& command, MachineOptions& options);
[[nodiscard]] CpuStream make_stream(const MachineOptions& options);

// --vocab-size and --rope-scaling-on-all-layers.
void add_import_options(CLI::App& command, HfImportOptions& options);

// A Hugging Face directory, a checkpoint or a run: the directory that holds config.json, of a run
// its newest checkpoint. kInput when it is none of these.
[[nodiscard]] std::string model_directory(FileSystem& fs, const std::string& path);

// tokenizer.json of the model at `path`: `given` when not empty, else beside the model, else beside
// the run, else the run's data.tokenizer_file; empty when there is none.
[[nodiscard]] std::string tokenizer_path(FileSystem& fs, const std::string& path,
                                         const std::string& given);

// A model with its weights in place. `stream` must outlive it.
[[nodiscard]] std::unique_ptr<Model> load_model(const HfModel& source, const ModelOptions& options,
                                                CpuStream& stream);

// "fp32" or "bf16"; kConfig otherwise.
[[nodiscard]] Precision precision_of_name(const std::string& name);

}  // namespace lockstep::cli
