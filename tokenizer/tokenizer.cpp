#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "io/file.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/tokenizer_file.h"
#include "tokenizer/unicode.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kMaxFileBytes = 256U << 20U;

// What one running encode() needs to itself.
struct Workspace {
  PieceCache cache;
  BytePairEncoder::Scratch scratch;
};

// Workspaces that no call uses at the moment, so that a thread gets back a warm one.
class WorkspacePool {
 public:
  [[nodiscard]] std::unique_ptr<Workspace> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Workspace>();
    auto workspace = std::move(idle_.back());
    idle_.pop_back();
    return workspace;
  }
  void give_back(std::unique_ptr<Workspace> workspace) {
    constexpr std::size_t kKeptTokens = 1U << 20U;  // one huge piece must not hold memory for ever
    if (workspace->scratch.tokens.capacity() > kKeptTokens) workspace->scratch = {};
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

std::string fingerprint_of(const TokenizerFile& file) {
  Hasher128 hasher;
  const auto add = [&](std::string_view text) {
    hasher.add_value(std::uint64_t{text.size()});
    hasher.add(text);
  };
  add(file.settings);
  hasher.add_value(std::uint64_t{file.tokens.size()});
  for (const std::string& token : file.tokens) add(token);
  hasher.add_value(std::uint64_t{file.model_ids.size()});
  for (const std::uint32_t id : file.model_ids) hasher.add_value(id);
  hasher.add_value(std::uint64_t{file.merges.size()});
  for (const BpeMerge& merge : file.merges) {
    hasher.add_value(merge.left);
    hasher.add_value(merge.right);
  }
  for (const AddedToken& token : file.added) {
    add(token.content);
    hasher.add_value(token.id);
    for (const bool flag :
         {token.single_word, token.lstrip, token.rstrip, token.normalized, token.special}) {
      hasher.add_value(static_cast<std::uint8_t>(flag));
    }
  }
  return hasher.hex();
}

std::vector<AddedToken> added_tokens(const TokenizerFile& file, bool normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedToken& token : file.added) {
    if (token.normalized != normalized) continue;
    tokens.push_back(token);
    if (normalized && file.nfc) tokens.back().content = to_nfc(token.content);
  }
  return tokens;
}

}  // namespace

struct Tokenizer::State {
  explicit State(TokenizerFile file);

  void encode_ordinary(std::string_view text, Special special, Workspace& workspace,
                       std::vector<std::uint32_t>& ids) const;
  void encode_pieces(std::string_view text, Workspace& workspace,
                     std::vector<std::uint32_t>& ids) const;
  void encode_piece(std::string_view piece, Workspace& workspace,
                    std::vector<std::uint32_t>& ids) const;
  [[nodiscard]] std::optional<std::uint32_t> first_added(
      std::span<const std::string_view> names) const;
  void fill_whole_pieces(const TokenizerFile& file);

  AddedTokenMatcher raw_added;         // matched in the text as it is,
  AddedTokenMatcher normalized_added;  // matched after normalization
  bool nfc;
  PreTokenizer pre_tokenizer;
  BytePairEncoder bpe;
  PieceTable whole_pieces;
  std::vector<std::string> tokens;  // bytes by id
  std::vector<bool> special;        // by id
  std::vector<std::uint32_t> prefix;
  std::vector<std::uint32_t> suffix;
  std::unordered_map<std::string, std::uint32_t> ids_of_added;
  std::string fingerprint;
  mutable WorkspacePool workspaces;  // caches only: no result depends on them
};

Tokenizer::State::State(TokenizerFile file)
    : raw_added(added_tokens(file, false)),
      normalized_added(added_tokens(file, true)),
      nfc(file.nfc),
      pre_tokenizer(std::move(file.splits_before), std::move(file.byte_level),
                    std::move(file.splits_after)),
      bpe(file.bpe, file.merges),
      whole_pieces(file.model_ids.size()),
      special(file.tokens.size(), false),
      prefix(std::move(file.prefix)),
      suffix(std::move(file.suffix)),
      fingerprint(fingerprint_of(file)) {
  for (const AddedToken& token : file.added) {
    special[token.id] = token.special;
    ids_of_added.emplace(token.content, token.id);
  }
  fill_whole_pieces(file);
  tokens = std::move(file.tokens);
}

// A token stands for its own bytes as a whole piece when merging them ends in it, or when the file
// says that merges do not matter then.
void Tokenizer::State::fill_whole_pieces(const TokenizerFile& file) {
  BytePairEncoder::Scratch scratch;
  std::vector<std::uint32_t> merged;
  for (const std::uint32_t id : file.model_ids) {
    const std::string& bytes = file.tokens[id];
    const auto known_byte = [&](char c) {
      return file.bpe.byte_tokens[static_cast<unsigned char>(c)] != kNoToken;
    };
    // An added token's text that is ordinary text must not become the token after all.
    bool whole = file.ignore_merges && !ids_of_added.contains(bytes);
    if (!whole && std::all_of(bytes.begin(), bytes.end(), known_byte)) {
      merged.clear();
      bpe.merge(bytes, scratch, merged);
      whole = merged.size() == 1 && merged[0] == id;
    }
    // Two spellings of a token in the vocabulary may mean the same bytes.
    if (whole && whole_pieces.find(bytes, hash_piece(bytes)) == kNoToken)
      whole_pieces.add(bytes, id);
  }
}

void Tokenizer::State::encode_ordinary(std::string_view text, Special parse, Workspace& workspace,
                                       std::vector<std::uint32_t>& ids) const {
  std::string normalized;
  if (nfc) {
    normalized = to_nfc(text);
    text = normalized;
  }
  if (parse == Special::kText || normalized_added.empty())
    return encode_pieces(text, workspace, ids);
  for (const TokenSpan& span : normalized_added.find(text)) {
    if (span.id) {
      ids.push_back(*span.id);
    } else {
      encode_pieces(text.substr(span.begin, span.end - span.begin), workspace, ids);
    }
  }
}

void Tokenizer::State::encode_pieces(std::string_view text, Workspace& workspace,
                                     std::vector<std::uint32_t>& ids) const {
  pre_tokenizer.for_each_piece(
      text, [&](std::string_view piece) { encode_piece(piece, workspace, ids); });
}

void Tokenizer::State::encode_piece(std::string_view piece, Workspace& workspace,
                                    std::vector<std::uint32_t>& ids) const {
  const std::uint64_t hash = hash_piece(piece);
  if (const auto cached = workspace.cache.find(piece, hash); !cached.empty()) {
    if (cached.size() == 1) {
      ids.push_back(cached[0]);
    } else {
      ids.insert(ids.end(), cached.begin(), cached.end());
    }
    return;
  }
  const std::size_t before = ids.size();
  const std::uint32_t whole = whole_pieces.find(piece, hash);
  if (whole != kNoToken) {
    ids.push_back(whole);
  } else {
    bpe.merge(piece, workspace.scratch, ids);
  }
  workspace.cache.put(piece, hash, std::span(ids).subspan(before));
}

std::optional<std::uint32_t> Tokenizer::State::first_added(
    std::span<const std::string_view> names) const {
  for (const std::string_view name : names) {
    const auto found = ids_of_added.find(std::string(name));
    if (found != ids_of_added.end()) return found->second;
  }
  return std::nullopt;
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(FileSystem& fs, const std::string& path) {
  return from_json(read_file(fs, path, kMaxFileBytes), path);
}

Tokenizer Tokenizer::from_json(std::string_view json, std::string_view name) {
  return Tokenizer(std::make_unique<const State>(parse_tokenizer_file(json, name)));
}

void Tokenizer::encode(std::string_view text, Special special,
                       std::vector<std::uint32_t>& ids) const {
  if (const auto offset = find_invalid_utf8(text)) {
    fail(ErrorKind::kInput, "text to encode: not valid UTF-8 at byte ", *offset, " of ",
         text.size());
  }
  auto workspace = state_->workspaces.take();
  if (special == Special::kText || state_->raw_added.empty()) {
    state_->encode_ordinary(text, special, *workspace, ids);
  } else {
    for (const TokenSpan& span : state_->raw_added.find(text)) {
      if (span.id) {
        ids.push_back(*span.id);
      } else {
        state_->encode_ordinary(text.substr(span.begin, span.end - span.begin), special, *workspace,
                                ids);
      }
    }
  }
  state_->workspaces.give_back(std::move(workspace));
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text, Special special) const {
  std::vector<std::uint32_t> ids;
  encode(text, special, ids);
  return ids;
}

std::string Tokenizer::decode_bytes(std::span<const std::uint32_t> ids, SkipSpecial skip) const {
  std::string bytes;
  bytes.reserve(ids.size() * 4);
  for (const std::uint32_t id : ids) {
    if (!has_token(id)) {
      fail(ErrorKind::kInput, "id ", id, " at position ", &id - ids.data(),
           " is no token of this tokenizer (", state_->tokens.size(), " ids)");
    }
    if (skip == SkipSpecial::kYes && state_->special[id]) continue;
    bytes += state_->tokens[id];
  }
  return bytes;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, SkipSpecial skip) const {
  return repair_utf8(decode_bytes(ids, skip));
}

std::uint32_t Tokenizer::vocab_size() const {
  return static_cast<std::uint32_t>(state_->tokens.size());
}

bool Tokenizer::has_token(std::uint32_t id) const {
  return id < state_->tokens.size() && !state_->tokens[id].empty();
}

bool Tokenizer::is_special(std::uint32_t id) const {
  return id < state_->special.size() && state_->special[id];
}

std::optional<std::uint32_t> Tokenizer::find(std::string_view token) const {
  const auto added = state_->ids_of_added.find(std::string(token));
  if (added != state_->ids_of_added.end()) return added->second;
  const auto found = std::find(state_->tokens.begin(), state_->tokens.end(), token);
  if (token.empty() || found == state_->tokens.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - state_->tokens.begin());
}

std::optional<std::uint32_t> Tokenizer::eos_id() const {
  static constexpr std::string_view kNames[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                                "<|eos|>"};
  return state_->first_added(kNames);
}

std::optional<std::uint32_t> Tokenizer::pad_id() const {
  static constexpr std::string_view kNames[] = {"<|pad|>", "<pad>", "[PAD]", "<|padding|>",
                                                "<|finetune_right_pad_id|>"};
  return state_->first_added(kNames);
}

std::span<const std::uint32_t> Tokenizer::template_prefix() const { return state_->prefix; }
std::span<const std::uint32_t> Tokenizer::template_suffix() const { return state_->suffix; }
const std::string& Tokenizer::fingerprint() const { return state_->fingerprint; }

}  // namespace lockstep
