#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// A numbered set of training instances of one length. Immutable, thread-safe.
class InstanceSource {
 public:
  virtual ~InstanceSource() = default;

  [[nodiscard]] virtual std::uint64_t instances() const = 0;
  [[nodiscard]] virtual std::uint64_t sequence_length() const = 0;
  // Fills `tokens` (sequence_length of them) with instance `id`; returns how many of them are real,
  // the rest being padding behind them. kData and kIo as TokenFile::read.
  [[nodiscard]] virtual std::size_t read(std::uint64_t id,
                                         std::span<std::uint32_t> tokens) const = 0;
  // Labels of the mix, each once, in order of first appearance; and which one an instance has.
  [[nodiscard]] virtual const std::vector<std::string>& labels() const = 0;
  [[nodiscard]] virtual std::size_t label_of(std::uint64_t id) const = 0;
  // 32 hexadecimal digits: equal sources give equal instances for every id.
  [[nodiscard]] virtual const std::string& fingerprint() const = 0;
};

}  // namespace lockstep
