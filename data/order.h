#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/file.h"

namespace lockstep {

// How an epoch walks through the instances.
enum class OrderKind : std::uint8_t {
  kFeistel,   // keyed permutation, O(1) memory, any position at once
  kOlmoCore,  // the original run's: NumPy Generator(PCG64(seed + epoch)).shuffle of a uint32 arange
  kSequential,  // 0, 1, 2, ...
};
[[nodiscard]] const char* name_of(OrderKind kind);  // "feistel", "olmo-core", "sequential"
// kConfig naming the choices when there is no such kind.
[[nodiscard]] OrderKind order_kind_of_name(std::string_view name);

struct OrderSpec {
  OrderKind kind = OrderKind::kFeistel;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 1;      // from 1
  std::uint64_t instances = 0;  // n
  // Where the olmo-core kind keeps its shuffled indices (data/order_cache.h); empty: in memory
  // only.
  std::string cache_directory;
};

// One epoch's permutation of [0, instances). Immutable after construction, thread-safe.
class Order {
 public:
  virtual ~Order() = default;
  // The instance at `position` of the epoch; position < instances (kBug otherwise).
  [[nodiscard]] virtual std::uint64_t instance(std::uint64_t position) const = 0;
};

// kConfig when instances is 0, epoch is 0, or olmo-core is asked for 2^32 instances or more (its
// indices are uint32). olmo-core takes 4 bytes an instance and seconds for hundreds of millions.
[[nodiscard]] std::unique_ptr<const Order> make_order(FileSystem& fs, const OrderSpec& spec);

}  // namespace lockstep
