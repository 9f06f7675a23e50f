#include "eval/token_bytes.h"

#include <array>

namespace lockstep {

std::vector<std::int32_t> bytes_of_tokens(const Tokenizer& tokenizer, std::int64_t size) {
  std::vector<std::int32_t> bytes(static_cast<std::size_t>(size), 0);
  for (std::uint32_t id = 0; id < bytes.size(); ++id) {
    if (!tokenizer.has_token(id) || tokenizer.is_special(id)) continue;
    bytes[id] = static_cast<std::int32_t>(tokenizer.decode_bytes(std::array{id}).size());
  }
  return bytes;
}

}  // namespace lockstep
