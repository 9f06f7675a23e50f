#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class FileSystem;

// What the text of an added token ("<|endoftext|>") means inside a text.
enum class Special {
  kParse,  // the token, for every entry of added_tokens: what Hugging Face's encoder does
  kText,   // ordinary text, so that a document cannot inject one: what corpora are encoded with
};

enum class SkipSpecial { kNo, kYes };

// A byte-level BPE tokenizer, read from a Hugging Face tokenizer.json and equal to it id for id.
// Immutable: all members are const and may be called from many threads at once.
class Tokenizer {
 public:
  // Reads a tokenizer.json. Throws kInput naming the file and the field when it is malformed or
  // uses what is not supported (an unknown component is never replaced by a default), kIo as
  // io/file.h.
  [[nodiscard]] static Tokenizer load(FileSystem& fs, const std::string& path);
  // The same from text; `name` stands for the file in errors.
  [[nodiscard]] static Tokenizer from_json(std::string_view json, std::string_view name);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Appends the ids of the text; nothing is put before or behind (see template_prefix). Text that
  // is not well-formed UTF-8 is refused with the byte offset (kInput): repair_utf8() of
  // tokenizer/unicode.h first, to have U+FFFD instead. Throws kInput, too, when the file's own
  // pattern gives up on the text, or when the vocabulary lacks a byte of it; `ids` may then hold a
  // part.
  void encode(std::string_view text, Special special, std::vector<std::uint32_t>& ids) const;
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text, Special special) const;

  // The bytes that the ids stand for, one behind the other. What was encoded comes back exactly,
  // unless the file normalizes, adds a space, strips or drops text. Throws kInput for an id that is
  // no token. kYes leaves out tokens flagged special.
  [[nodiscard]] std::string decode_bytes(std::span<const std::uint32_t> ids,
                                         SkipSpecial skip = SkipSpecial::kNo) const;
  // decode_bytes as text: each maximal part that is not well-formed UTF-8 becomes U+FFFD.
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids,
                                   SkipSpecial skip = SkipSpecial::kNo) const;

  // One more than the largest id: the rows that a model needs.
  [[nodiscard]] std::uint32_t vocab_size() const;
  [[nodiscard]] bool has_token(std::uint32_t id) const;
  [[nodiscard]] bool is_special(std::uint32_t id) const;
  // The id of an added token by its content, or of an ordinary token by its bytes.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view token) const;
  // By the names in use, since the file does not say: <|endoftext|>, <|end_of_text|>, </s>, <eos>,
  // <|eos|>; and <|pad|>, <pad>, [PAD], <|padding|>, <|finetune_right_pad_id|>. Added tokens only.
  [[nodiscard]] std::optional<std::uint32_t> eos_id() const;
  [[nodiscard]] std::optional<std::uint32_t> pad_id() const;

  // What the file's TemplateProcessing puts around a text when special tokens are asked for.
  [[nodiscard]] std::span<const std::uint32_t> template_prefix() const;
  [[nodiscard]] std::span<const std::uint32_t> template_suffix() const;

  // 32 hexadecimal digits over all that bears on ids: equal for files that differ in layout or in
  // the notation of merges only.
  [[nodiscard]] const std::string& fingerprint() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);

  std::unique_ptr<const State> state_;
};

}  // namespace lockstep
