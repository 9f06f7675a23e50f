#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// XXH3 of the bytes. Digests that are logged or stored use the 128-bit form.
[[nodiscard]] std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);
// 32 lower-case hexadecimal digits.
[[nodiscard]] std::string hash128_hex(std::string_view bytes);

// The same over pieces. Move-only; not thread-safe.
class Hasher128 {
 public:
  Hasher128();
  ~Hasher128();
  Hasher128(Hasher128&&) noexcept;
  Hasher128& operator=(Hasher128&&) noexcept;

  void add(const void* data, std::size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add_value(T value) { add(&value, sizeof value); }
  // The digest of all that was added so far, as hash128_hex of it all would give.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
