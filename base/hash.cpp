#include "base/hash.h"

#include <xxhash.h>

#include "base/error.h"

namespace lockstep {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[i] = kDigits[(hash.high64 >> (60 - 4 * i)) & 15U];
    text[16 + i] = kDigits[(hash.low64 >> (60 - 4 * i)) & 15U];
  }
  return text;
}

}  // namespace

struct Hasher128::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    LOCKSTEP_CHECK(xxh != nullptr, "out of memory");
    XXH3_128bits_reset(xxh);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }
};

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string hash128_hex(std::string_view bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

Hasher128::Hasher128() : state_(std::make_unique<State>()) {}
Hasher128::~Hasher128() = default;
Hasher128::Hasher128(Hasher128&&) noexcept = default;
Hasher128& Hasher128::operator=(Hasher128&&) noexcept = default;

void Hasher128::add(const void* data, std::size_t bytes) {
  XXH3_128bits_update(state_->xxh, data, bytes);
}

std::string Hasher128::hex() const { return to_hex(XXH3_128bits_digest(state_->xxh)); }

}  // namespace lockstep
