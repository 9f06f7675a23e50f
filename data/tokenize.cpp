#include "data/tokenize.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/token_writer.h"

namespace lockstep {

namespace {

// Documents are read and encoded in groups of about this many bytes or this many documents.
constexpr std::size_t kGroupBytes = std::size_t{16} << 20U;
constexpr std::size_t kGroupDocuments = 16384;

// The files of one part of one label: a new one is begun when the last is full.
class PartWriter {
 public:
  PartWriter(FileSystem& fs, const TokenizeSpec& spec, std::string stem, TokenizedPart& part)
      : fs_(fs), spec_(spec), stem_(std::move(stem)), part_(part) {}

  void add(std::span<const std::uint32_t> ids, std::size_t text_bytes) {
    if (writer_ && writer_->tokens() + ids.size() > spec_.max_file_tokens) finish();
    if (!writer_) {
      std::string number = std::to_string(part_.files.size());
      number.insert(0, number.size() < 5 ? 5 - number.size() : 0, '0');
      part_.files.push_back(concat(stem_, "-", number, ".npy"));
      writer_ = std::make_unique<TokenWriter>(
          fs_, join_path(spec_.output_directory, part_.files.back()), spec_.width);
    }
    writer_->add_document(ids);
    ++part_.documents;
    part_.tokens += ids.size();
    part_.text_bytes += text_bytes;
  }
  void finish() {
    if (writer_) writer_->finish();
    writer_.reset();
  }

 private:
  FileSystem& fs_;
  const TokenizeSpec& spec_;
  std::string stem_;
  TokenizedPart& part_;
  std::unique_ptr<TokenWriter> writer_;
};

// What encoding makes of one document.
struct Encoded {
  std::vector<std::uint32_t> ids;
  std::size_t text_bytes = 0;
  bool heldout = false;
};

class Job {
 public:
  Job(FileSystem& fs, const TokenizeSpec& spec, const EncodeText& encode, ThreadPool& pool,
      const std::function<void(const TokenizeProgress&)>& report)
      : fs_(fs), spec_(spec), encode_(encode), pool_(pool), report_(report) {}

  void count_bytes(const std::vector<CorpusInput>& inputs) {
    for (const CorpusInput& input : inputs) {
      for (const std::string& file : input.files) progress_.bytes_total += fs_.file_size(file);
    }
  }

  TokenizedLabel run(const CorpusInput& input) {
    TokenizedLabel result;
    result.label = input.label;
    fs_.create_directories(join_path(spec_.output_directory, input.label));
    PartWriter train(fs_, spec_, join_path(input.label, "train"), result.train);
    PartWriter heldout(fs_, spec_, join_path(input.label, "heldout"), result.heldout);
    for (const std::string& path : input.files) {
      CorpusReader reader(fs_, path, spec_.rules);
      const std::uint64_t before = progress_.bytes_done;
      progress_.file = path;
      while (read_group(reader)) {
        encode_group(reader);
        for (std::size_t i = 0; i < group_size_; ++i) {
          const Encoded& document = encoded_[i];
          if (document.ids.empty()) {
            ++result.empty_documents;
            continue;
          }
          (document.heldout ? heldout : train).add(document.ids, document.text_bytes);
          ++progress_.documents;
          progress_.tokens += document.ids.size();
        }
        progress_.bytes_done = before + reader.position();
        report_(progress_);
      }
      progress_.bytes_done = before + fs_.file_size(path);
    }
    train.finish();
    heldout.finish();
    return result;
  }

 private:
  // False when there was nothing more to read.
  bool read_group(CorpusReader& reader) {
    group_size_ = 0;
    std::size_t bytes = 0;
    while (bytes < kGroupBytes && group_size_ < kGroupDocuments) {
      if (group_size_ == raw_.size()) raw_.emplace_back();
      if (!reader.next(raw_[group_size_])) break;
      bytes += raw_[group_size_].bytes.size();
      ++group_size_;
    }
    return group_size_ > 0;
  }

  void encode_group(const CorpusReader& reader) {
    encoded_.resize(std::max(encoded_.size(), group_size_));
    pool_.parallel_for(static_cast<std::int64_t>(group_size_), [&](std::int64_t i, int thread) {
      Encoded& out = encoded_[static_cast<std::size_t>(i)];
      const std::string text = reader.text_of(raw_[static_cast<std::size_t>(i)]);
      out.ids.clear();
      if (text.empty()) return;
      encode_(text, thread, out.ids);
      out.ids.push_back(spec_.end_of_text);
      out.text_bytes = text.size();
      out.heldout = is_held_out(text, spec_.heldout_fraction, spec_.heldout_seed);
    });
  }

  FileSystem& fs_;
  const TokenizeSpec& spec_;
  const EncodeText& encode_;
  ThreadPool& pool_;
  const std::function<void(const TokenizeProgress&)>& report_;
  TokenizeProgress progress_;
  std::vector<RawDocument> raw_;
  std::vector<Encoded> encoded_;
  std::size_t group_size_ = 0;
};

void check_labels(const std::vector<CorpusInput>& inputs) {
  std::set<std::string> seen;
  for (const CorpusInput& input : inputs) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (input.label.empty() || input.label.front() == '.' ||
        input.label.find_first_not_of(kPlain) != std::string::npos) {
      fail(ErrorKind::kConfig, "label '", printable(input.label),
           "': letters, digits, '-', '_' and '.' make a label, and no '.' in front");
    }
    if (!seen.insert(input.label).second) {
      fail(ErrorKind::kConfig, "label '", input.label, "' is given twice");
    }
  }
}

OrderedJson part_json(const TokenizedPart& part) {
  return {{"documents", part.documents},
          {"tokens", part.tokens},
          {"text_bytes", part.text_bytes},
          {"files", part.files}};
}

void write_manifests(FileSystem& fs, const TokenizeSpec& spec,
                     const std::vector<TokenizedLabel>& labels) {
  std::string mix;
  std::string heldout;
  OrderedJson json = {{"format_version", 1},
                      {"tokenizer", spec.tokenizer_fingerprint},
                      {"end_of_text", spec.end_of_text},
                      {"dtype", name_of(spec.width)},
                      {"heldout_fraction", spec.heldout_fraction},
                      {"heldout_seed", spec.heldout_seed},
                      {"labels", OrderedJson::array()}};
  for (const TokenizedLabel& label : labels) {
    for (const auto& file : label.train.files) mix += concat(label.label, ',', file, '\n');
    for (const auto& file : label.heldout.files) heldout += concat(label.label, ',', file, '\n');
    json["labels"].push_back({{"label", label.label},
                              {"train", part_json(label.train)},
                              {"heldout", part_json(label.heldout)},
                              {"empty_documents", label.empty_documents}});
  }
  const std::string& directory = spec.output_directory;
  if (!mix.empty()) write_file_atomic(fs, join_path(directory, "mix.txt"), mix);
  if (!heldout.empty()) write_file_atomic(fs, join_path(directory, "heldout.txt"), heldout);
  write_file_atomic(fs, join_path(directory, "dataset.json"), json.dump(1) + "\n");
}

}  // namespace

std::vector<TokenizedLabel> tokenize_corpus(
    FileSystem& fs, const TokenizeSpec& spec, const std::vector<CorpusInput>& inputs,
    const EncodeText& encode, ThreadPool& pool,
    const std::function<void(const TokenizeProgress&)>& progress) {
  check_labels(inputs);
  static_cast<void>(is_held_out("", spec.heldout_fraction, 0));  // refuse a wrong fraction first
  const std::string summary = join_path(spec.output_directory, "dataset.json");
  if (fs.exists(summary)) {
    fail(ErrorKind::kConfig, printable(summary),
         " exists: tokenized data are there already; name another directory or remove it");
  }
  Job job(fs, spec, encode, pool, progress);
  job.count_bytes(inputs);
  std::vector<TokenizedLabel> labels;
  std::uint64_t documents = 0;
  for (const CorpusInput& input : inputs) {
    labels.push_back(job.run(input));
    documents += labels.back().train.documents + labels.back().heldout.documents;
  }
  if (documents == 0) {
    fail(ErrorKind::kData, "the input holds no document with any text in it");
  }
  write_manifests(fs, spec, labels);
  return labels;
}

}  // namespace lockstep
