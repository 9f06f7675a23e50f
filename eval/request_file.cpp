#include "eval/request_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/error.h"
#include "base/text.h"
#include "eval/text_template.h"
#include "io/compressed.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kTwins = 1'000'000;
constexpr std::uint64_t kMostChoices = 10'000;

struct Line {
  std::uint64_t doc = 0;
  std::uint64_t idx = 0;
  std::optional<std::uint64_t> label;
  std::string context;
  std::string continuation;
};

std::uint64_t unsigned_field(const DataRow& row, std::string_view path) {
  const Json& value = field_of(row, path);
  if (!value.is_number_unsigned()) {
    fail(ErrorKind::kInput, row.where, ": field \"", path, "\": ", printable(value.dump(), 40),
         ", want an integer from 0 on");
  }
  return value.get<std::uint64_t>();
}

std::string text_field(const DataRow& row, std::string_view path) {
  const Json& value = field_of(row, path);
  if (!value.is_string()) {
    fail(ErrorKind::kInput, row.where, ": field \"", path, "\": ", value.type_name(),
         ", want text");
  }
  return value.get<std::string>();
}

Line parse_line(const DataRow& row) {
  Line line;
  line.doc = unsigned_field(row, "doc_id");
  line.idx = unsigned_field(row, "idx");
  if (line.idx >= kMostChoices) {
    fail(ErrorKind::kInput, row.where, ": field \"idx\": ", line.idx, ", want one below ",
         kMostChoices);
  }
  const Json* label = find_field(row.json, "label");
  if (label != nullptr && label->is_number()) line.label = unsigned_field(row, "label");
  line.context = text_field(row, "request.context");
  line.continuation = text_field(row, "request.continuation");
  return line;
}

// Collects lines into documents; a twin's lines into the document that they belong to.
class Collector {
 public:
  void add(Line line, const std::string& where) {
    const bool twin = line.doc >= kTwins;
    const std::uint64_t id = twin ? line.doc - kTwins : line.doc;
    const auto [at, added] = index_.emplace(id, documents_.size());
    if (added) {
      documents_.push_back({.id = id, .choices = {}});
      counts_.push_back({});
    }
    FrozenDocument& document = documents_[at->second];
    std::vector<bool>& seen = twin ? counts_[at->second].twin : counts_[at->second].own;
    if (seen.size() <= line.idx) seen.resize(line.idx + 1, false);
    if (seen[line.idx]) {
      fail(ErrorKind::kInput, where, ": document ", line.doc, ", idx ", line.idx, " came before");
    }
    seen[line.idx] = true;
    if (document.choices.size() <= line.idx) document.choices.resize(line.idx + 1);
    FrozenChoice& choice = document.choices[line.idx];
    if (twin) {
      document.has_twin = true;
      choice.bare_context = std::move(line.context);
      return;
    }
    document.has_choices = line.label.has_value();
    document.gold = line.label.value_or(0);
    choice.context = std::move(line.context);
    choice.continuation = std::move(line.continuation);
  }

  std::vector<FrozenDocument> finish(const std::string& path) {
    for (std::size_t i = 0; i < documents_.size(); ++i) {
      const FrozenDocument& document = documents_[i];
      const auto whole = [&](const std::vector<bool>& seen) {
        return seen.size() == document.choices.size() &&
               std::find(seen.begin(), seen.end(), false) == seen.end();
      };
      if (!whole(counts_[i].own) || (document.has_twin && !whole(counts_[i].twin))) {
        fail(ErrorKind::kInput, path, ": document ", document.id, ": a choice is missing");
      }
      if (document.gold >= document.choices.size()) {
        fail(ErrorKind::kInput, path, ": document ", document.id, ": label ", document.gold, " of ",
             document.choices.size(), " choices");
      }
    }
    if (documents_.empty()) fail(ErrorKind::kInput, path, ": no requests");
    return std::move(documents_);
  }

 private:
  struct Seen {
    std::vector<bool> own;
    std::vector<bool> twin;
  };
  std::map<std::uint64_t, std::size_t> index_;
  std::vector<FrozenDocument> documents_;
  std::vector<Seen> counts_;
};

std::string bare(const std::string& continuation) {
  return continuation.starts_with(' ') ? continuation.substr(1) : continuation;
}

// The document's own requests, then its twin's.
std::vector<Question> questions_of(const std::vector<FrozenDocument>& documents,
                                   const Tokenizer& tokenizer, std::int32_t prefix,
                                   std::int64_t max_length, std::string_view name,
                                   ThreadPool& pool) {
  std::vector<Question> questions(2 * documents.size());
  pool.parallel_for(std::ssize(documents), [&](std::int64_t index, int) {
    const auto i = static_cast<std::size_t>(index);
    const std::string where = concat(name, ", document ", documents[i].id);
    const auto request = [&](const std::string& context, const std::string& continuation) {
      return score_request(encode_apart(tokenizer, context, continuation, prefix), max_length,
                           where);
    };
    for (const auto& choice : documents[i].choices) {
      questions[i].push_back(request(choice.context, choice.continuation));
      if (!documents[i].has_twin) continue;
      questions[documents.size() + i].push_back(request(choice.bare_context, choice.continuation));
    }
  });
  return questions;
}

void add_choice(RequestReport& report, const FrozenDocument& document,
                const std::vector<Score>& scores, const std::vector<Score>& twin) {
  std::vector<std::string> choices;
  for (const auto& choice : document.choices) choices.push_back(bare(choice.continuation));
  const Picks picks = pick(scores, choices);
  ++report.with_choices;
  report.acc += picks.acc == document.gold ? 1 : 0;
  report.acc_per_char += picks.acc_norm == document.gold ? 1 : 0;
  report.acc_per_byte += picks.acc_bytes == document.gold ? 1 : 0;
  if (!document.has_twin) return;
  std::vector<Score> gain = scores;
  for (std::size_t i = 0; i < gain.size(); ++i) gain[i].logprob -= twin[i].logprob;
  ++report.with_twin;
  report.acc_uncond += pick(gain, choices).acc == document.gold ? 1 : 0;
}

}  // namespace

std::vector<FrozenDocument> read_requests(FileSystem& fs, const std::string& path) {
  LineReader reader(open_byte_source(fs, path));
  Collector collector;
  std::string line;
  while (reader.next(line)) {
    if (line.empty()) continue;
    DataRow row{{}, concat(printable(path), ":", reader.line_number())};
    row.json = parse_json(line, row.where);
    collector.add(parse_line(row), row.where);
  }
  return collector.finish(printable(path));
}

RequestReport evaluate_requests(Model& model, const std::vector<FrozenDocument>& documents,
                                const Tokenizer& tokenizer, std::int32_t prefix,
                                std::int64_t max_length, std::string_view name, ThreadPool& pool,
                                const ScoreOptions& options) {
  const auto questions = questions_of(documents, tokenizer, prefix, max_length, name, pool);
  const auto scores = score_questions(model, questions, options);
  RequestReport report{.documents = std::ssize(documents)};
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const FrozenDocument& document = documents[i];
    if (document.has_choices) {
      add_choice(report, document, scores[i], scores[documents.size() + i]);
    }
    const std::size_t gold = document.gold;
    const double bits = -scores[i][gold].logprob / std::numbers::ln2 /
                        static_cast<double>(document.choices[gold].continuation.size());
    sum += bits;
    squares += bits * bits;
  }
  const auto n = static_cast<double>(documents.size());
  report.bits_per_byte = sum / n;
  report.bits_per_byte_error =
      documents.size() < 2 ? std::nan("")
                           : std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)) / n);
  return report;
}

}  // namespace lockstep
