#include "cli/tokenizer_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/thread_pool.h"
#include "io/file.h"
#include "tokenizer/tokenizer.h"

namespace lockstep::cli {
namespace {

// What is there now, waiting for at least a byte; 0 at the end. Lines are answered as they come, so
// that a program can hold a conversation through two pipes.
std::size_t read_stdin(std::string& buffer) {
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t got = read(STDIN_FILENO, block.data(), block.size());
    if (got >= 0) {
      buffer.append(block.data(), static_cast<std::size_t>(got));
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR) {
      fail(ErrorKind::kIo, "standard input: cannot read: ", std::strerror(errno));
    }
  }
}

std::string read_all_stdin() {
  std::string text;
  while (read_stdin(text) != 0) {
  }
  return text;
}

// Answers every line of standard input with answer(line, what), in order, on many threads.
template <class Answer>
void answer_lines(Context& context, ThreadPool& pool, const Answer& answer) {
  std::string buffer;
  std::uint64_t line_number = 0;
  bool more = true;
  while (more && !context.reader_gone()) {
    more = read_stdin(buffer) != 0;
    const std::size_t end = more ? buffer.rfind('\n') + 1 : buffer.size();  // npos + 1 is 0
    if (end == 0) continue;
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin < end;) {
      const std::size_t stop = std::min(buffer.find('\n', begin), end);
      lines.emplace_back(buffer.data() + begin, stop - begin);
      begin = stop + 1;
    }
    std::vector<std::string> answers(lines.size());
    pool.parallel_for(static_cast<std::int64_t>(lines.size()), [&](std::int64_t i, int) {
      const auto at = static_cast<std::size_t>(i);
      if (lines[at].find_first_not_of(" \t\r") == std::string_view::npos) return;
      answers[at] = answer(lines[at], concat("standard input line ", line_number + at + 1));
    });
    std::string out;
    for (const auto& text : answers) {
      if (!text.empty()) out += text + "\n";
    }
    if (!out.empty()) context.say(std::string_view(out));
    line_number += lines.size();
    buffer.erase(0, end);
  }
}

struct EncodeOptions {
  std::string tokenizer;
  bool no_special = false;
  bool jsonl = false;
  int threads = 0;
};

int encode(Context& context, const EncodeOptions& options) {
  if (options.jsonl && context.json()) {
    fail(ErrorKind::kConfig, "--jsonl and --json exclude each other: one answers every line");
  }
  const Tokenizer tokenizer = Tokenizer::load(FileSystem::real(), options.tokenizer);
  const Special special = options.no_special ? Special::kText : Special::kParse;
  if (!options.jsonl) {
    const auto ids = tokenizer.encode(read_all_stdin(), special);
    std::string text;
    for (const std::uint32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
    context.say(std::string_view(text));
    OrderedJson document;
    document["ids"] = ids;
    context.result(document);
    return 0;
  }
  ThreadPool pool(threads_or_cpus(options.threads));
  answer_lines(context, pool, [&](std::string_view line, const std::string& what) {
    const Json in = parse_json(line, what);
    if (!in.is_object() || !in.contains("text") || !in["text"].is_string()) {
      fail(ErrorKind::kInput, what, ": want an object with a string \"text\"");
    }
    OrderedJson out;
    try {
      out["ids"] = tokenizer.encode(in["text"].get_ref<const std::string&>(), special);
    } catch (const Error& error) {
      fail(error.kind(), what, ": ", error.what());
    }
    return out.dump();
  });
  return 0;
}

std::uint32_t id_of(const Json& value, const std::string& what) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number <= UINT32_MAX) return static_cast<std::uint32_t>(number);
  }
  fail(ErrorKind::kInput, what, ": want ids that are whole numbers below 2^32, not ",
       printable(value.dump()));
}

std::vector<std::uint32_t> ids_in_text(std::string_view text) {
  std::vector<std::uint32_t> ids;
  for (std::size_t begin = 0;;) {
    begin = text.find_first_not_of(" \t\r\n", begin);
    if (begin == std::string_view::npos) return ids;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
    std::uint32_t id = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end) {
      fail(ErrorKind::kInput, "standard input: \"", printable(text.substr(begin, end - begin)),
           "\" is no token id; want whole numbers between spaces");
    }
    ids.push_back(id);
    begin = end;
  }
}

struct DecodeOptions {
  std::string tokenizer;
  bool skip_special = false;
  bool jsonl = false;
  int threads = 0;
};

int decode(Context& context, const DecodeOptions& options) {
  if (options.jsonl && context.json()) {
    fail(ErrorKind::kConfig, "--jsonl and --json exclude each other: one answers every line");
  }
  const Tokenizer tokenizer = Tokenizer::load(FileSystem::real(), options.tokenizer);
  const SkipSpecial skip = options.skip_special ? SkipSpecial::kYes : SkipSpecial::kNo;
  if (!options.jsonl) {
    const auto text = tokenizer.decode(ids_in_text(read_all_stdin()), skip);
    context.say(std::string_view(text));
    OrderedJson document;
    document["text"] = text;
    context.result(document);
    return 0;
  }
  ThreadPool pool(threads_or_cpus(options.threads));
  answer_lines(context, pool, [&](std::string_view line, const std::string& what) {
    const Json in = parse_json(line, what);
    if (!in.is_object() || !in.contains("ids") || !in["ids"].is_array()) {
      fail(ErrorKind::kInput, what, ": want an object with an array \"ids\"");
    }
    std::vector<std::uint32_t> ids;
    for (const Json& id : in["ids"]) ids.push_back(id_of(id, what));
    OrderedJson out;
    try {
      out["text"] = tokenizer.decode(ids, skip);
    } catch (const Error& error) {
      fail(error.kind(), what, ": ", error.what());
    }
    return out.dump();
  });
  return 0;
}

void add_encode(CLI::App& parent, Context& context) {
  const auto options = std::make_shared<EncodeOptions>();
  CLI::App* command = context.add(parent, "encode", "Text on standard input to token ids",
                                  [&context, options] { return encode(context, *options); });
  command->add_option("--tokenizer", options->tokenizer, "A Hugging Face tokenizer.json")
      ->required();
  command->add_flag("--no-special", options->no_special,
                    "Take the text of special tokens as ordinary text");
  command->add_flag("--jsonl", options->jsonl,
                    "Lines {\"text\": ...} in, lines {\"ids\": [...]} out, in order");
  command->add_option("--threads", options->threads, "Default: as many as CPUs")
      ->check(CLI::NonNegativeNumber);
}

void add_decode(CLI::App& parent, Context& context) {
  const auto options = std::make_shared<DecodeOptions>();
  CLI::App* command = context.add(parent, "decode", "Token ids on standard input to text",
                                  [&context, options] { return decode(context, *options); });
  command->add_option("--tokenizer", options->tokenizer, "A Hugging Face tokenizer.json")
      ->required();
  command->add_flag("--skip-special", options->skip_special, "Leave out special tokens");
  command->add_flag("--jsonl", options->jsonl,
                    "Lines {\"ids\": [...]} in, lines {\"text\": ...} out, in order");
  command->add_option("--threads", options->threads, "Default: as many as CPUs")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace

void add_tokenizer_command(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("tokenizer", "Trains and runs byte-level BPE tokenizers");
  group->require_subcommand(1);
  add_tokenizer_train_command(*group, context);
  add_encode(*group, context);
  add_decode(*group, context);
}

}  // namespace lockstep::cli
