#include "checkpoint/average.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hf_export.h"
#include "checkpoint/hf_import.h"
#include "checkpoint/paths.h"
#include "config/compare.h"

namespace lockstep {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 18;
constexpr std::uint64_t kMaxTokenizerBytes = std::uint64_t{256} << 20;
constexpr const char* kTokenizer = "tokenizer.json";

// Hash of a model from the hashes of its tensors, which may come in any order.
class WeightsHash {
 public:
  void add(const Parameter& parameter, std::span<const float> piece) {
    shapes_[parameter.name] = parameter.shape;
    tensors_[parameter.name].add(piece.data(), piece.size_bytes());
  }
  [[nodiscard]] std::string hex() const {
    Hasher128 all;
    for (const auto& [name, values] : tensors_) {
      all.add(name);
      for (const std::int64_t dim : shapes_.at(name)) all.add_value(dim);
      all.add(values.hex());
    }
    return all.hex();
  }

 private:
  std::map<std::string, Hasher128> tensors_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
};

std::string hash_of(const HfModel& model, const std::function<void(std::int64_t)>& read) {
  WeightsHash hash;
  std::vector<float> values(static_cast<std::size_t>(kPiece));
  const ParameterTable table(model.config());
  for (const Parameter& parameter : table.parameters()) {
    for (std::int64_t first = 0; first < parameter.size; first += kPiece) {
      const auto count = static_cast<std::size_t>(std::min(kPiece, parameter.size - first));
      const auto piece = std::span(values).first(count);
      model.read(parameter, first, piece);
      hash.add(parameter, piece);
      read(std::ssize(piece));
    }
  }
  return hash.hex();
}

struct Source {
  AveragedModel record;
  std::unique_ptr<HfModel> model;
};

void require_one_config(const std::vector<Source>& sources) {
  const Source& first = sources.front();
  for (const Source& other : sources) {
    const auto found = config_differences(first.model->config(), other.model->config());
    if (found.empty()) continue;
    fail(ErrorKind::kInput, printable(first.record.directory), " and ",
         printable(other.record.directory), " are different models: ", describe(found),
         "; only checkpoints of one model can be averaged");
  }
}

// The contents of the first tokenizer.json that is known; empty when none is.
std::string common_tokenizer(FileSystem& fs, const std::vector<AverageSource>& sources) {
  std::string text;
  std::string where;
  for (const auto& source : sources) {
    if (source.tokenizer_file.empty()) continue;
    std::string other = read_file(fs, source.tokenizer_file, kMaxTokenizerBytes);
    if (where.empty()) {
      text = std::move(other);
      where = source.tokenizer_file;
    } else if (other != text) {
      fail(ErrorKind::kInput, printable(where), " and ", printable(source.tokenizer_file),
           " differ: models of different vocabularies cannot be averaged");
    }
  }
  return text;
}

// Sources with their hashes, checked and in the order of addition.
std::vector<Source> open_sources(FileSystem& fs, const std::vector<AverageSource>& given,
                                 const std::function<void(std::int64_t)>& read) {
  std::vector<Source> sources;
  for (const auto& source : given) {
    sources.push_back({{.directory = source.directory, .step = -1, .weights = {}},
                       std::make_unique<HfModel>(fs, source.directory)});
  }
  require_one_config(sources);
  for (Source& source : sources) {
    const std::string& directory = source.record.directory;
    if (fs.exists(join_path(directory, paths::kManifest))) {
      const CheckpointReader checkpoint(fs, directory);
      checkpoint.verify();
      source.record.step = checkpoint.state().step;
    }
    source.record.weights = hash_of(*source.model, read);
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return a.record.weights < b.record.weights; });
  for (std::size_t i = 1; i < sources.size(); ++i) {
    if (sources[i - 1].record.weights != sources[i].record.weights) continue;
    fail(ErrorKind::kInput, printable(sources[i - 1].record.directory), " and ",
         printable(sources[i].record.directory),
         " hold the same weights: each would count twice; name it once");
  }
  return sources;
}

// The mean of one piece of every source.
class Mean {
 public:
  explicit Mean(const std::vector<Source>& sources)
      : sources_(sources),
        values_(static_cast<std::size_t>(kPiece)),
        sums_(static_cast<std::size_t>(kPiece)) {}

  void read(const Parameter& parameter, std::int64_t first, std::span<float> out) {
    const auto sums = std::span(sums_).first(out.size());
    std::fill(sums.begin(), sums.end(), 0.0);
    for (const Source& source : sources_) {
      const auto piece = std::span(values_).first(out.size());
      source.model->read(parameter, first, piece);
      for (std::size_t i = 0; i < piece.size(); ++i) sums[i] += static_cast<double>(piece[i]);
    }
    const auto count = static_cast<double>(sources_.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(sums[i] / count);
  }

 private:
  const std::vector<Source>& sources_;
  std::vector<float> values_;
  std::vector<double> sums_;
};

std::string provenance(const AverageReport& report, StoredDType dtype) {
  OrderedJson json;
  json["format"] = "lockstep-average";
  json["version"] = 1;
  json["dtype"] = name_of(dtype);
  json["weights"] = report.weights;
  json["sources"] = OrderedJson::array();
  for (const auto& source : report.sources) {
    OrderedJson entry;
    entry["directory"] = source.directory;
    entry["step"] = source.step < 0 ? OrderedJson(nullptr) : OrderedJson(source.step);
    entry["weights"] = source.weights;
    json["sources"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

void remove_directory(FileSystem& fs, const std::string& directory) {
  for (const auto& name : fs.list(directory)) fs.remove(join_path(directory, name));
  fs.remove(directory);
}

void write_average(FileSystem& fs, const std::string& directory, const std::vector<Source>& sources,
                   const std::string& tokenizer, const AverageOptions& options,
                   const std::function<void(std::int64_t)>& read, AverageReport& report) {
  Mean mean(sources);
  WeightsHash hash;
  report.files =
      export_hf(fs, directory, sources.front().model->config(), {.dtype = options.dtype},
                [&](const Parameter& parameter, std::int64_t first, std::span<float> out) {
                  mean.read(parameter, first, out);
                  hash.add(parameter, out);
                  read(std::ssize(out) * std::ssize(sources));
                });
  report.weights = hash.hex();
  if (!tokenizer.empty()) {
    write_file_atomic(fs, join_path(directory, kTokenizer), std::string_view(tokenizer));
    report.files.emplace_back(kTokenizer);
  }
  write_file_atomic(fs, join_path(directory, paths::kAverage),
                    std::string_view(provenance(report, options.dtype)));
  report.files.emplace_back(paths::kAverage);
}

}  // namespace

std::string weights_hash(FileSystem& fs, const std::string& directory) {
  return hash_of(HfModel(fs, directory), [](std::int64_t) {});
}

AverageReport average_models(FileSystem& fs, const std::vector<AverageSource>& sources,
                             const std::string& out, const AverageOptions& options) {
  if (sources.size() < 2) {
    fail(ErrorKind::kInput, "an average needs at least two checkpoints, found ", sources.size());
  }
  if (fs.exists(out)) {
    fail(ErrorKind::kInput, printable(out), ": exists already; name another directory");
  }
  const std::string tokenizer = common_tokenizer(fs, sources);
  std::int64_t done = 0;
  std::int64_t all = 0;
  const auto read = [&](std::int64_t elements) {
    done += elements;
    if (options.progress) options.progress(done, all);
  };
  for (const auto& source : sources) {
    all += 2 * ParameterTable(HfModel(fs, source.directory).config()).count();
  }
  const std::vector<Source> opened = open_sources(fs, sources, read);
  AverageReport report;
  for (const Source& source : opened) report.sources.push_back(source.record);
  const std::string temporary = concat(out, ".tmp-", ::getpid());
  try {
    write_average(fs, temporary, opened, tokenizer, options, read, report);
    fs.rename(temporary, out);
    fs.sync_directory(parent_directory(out));
  } catch (...) {
    if (fs.exists(temporary)) remove_directory(fs, temporary);
    throw;
  }
  return report;
}

}  // namespace lockstep
