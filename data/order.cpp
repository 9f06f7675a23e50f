#include "data/order.h"

#include <array>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/feistel.h"
#include "data/order_cache.h"

namespace lockstep {

namespace {

constexpr std::array kKinds = {OrderKind::kFeistel, OrderKind::kOlmoCore, OrderKind::kSequential};

class FeistelOrder final : public Order {
 public:
  explicit FeistelOrder(const OrderSpec& spec)
      : permutation_(spec.instances, spec.seed, spec.epoch) {}
  std::uint64_t instance(std::uint64_t position) const override { return permutation_(position); }

 private:
  FeistelPermutation permutation_;
};

class SequentialOrder final : public Order {
 public:
  explicit SequentialOrder(std::uint64_t n) : n_(n) {}
  std::uint64_t instance(std::uint64_t position) const override {
    LOCKSTEP_CHECK(position < n_, "position ", position, " of ", n_);
    return position;
  }

 private:
  std::uint64_t n_;
};

class OlmoCoreOrder final : public Order {
 public:
  explicit OlmoCoreOrder(ShuffledIndices indices) : indices_(std::move(indices)) {}
  std::uint64_t instance(std::uint64_t position) const override {
    const auto values = indices_.values();
    LOCKSTEP_CHECK(position < values.size(), "position ", position, " of ", values.size());
    return values[position];
  }

 private:
  ShuffledIndices indices_;
};

}  // namespace

const char* name_of(OrderKind kind) {
  switch (kind) {
    case OrderKind::kFeistel:
      return "feistel";
    case OrderKind::kOlmoCore:
      return "olmo-core";
    case OrderKind::kSequential:
      return "sequential";
  }
  return "?";
}

OrderKind order_kind_of_name(std::string_view name) {
  for (const OrderKind kind : kKinds) {
    if (name == name_of(kind)) return kind;
  }
  fail(ErrorKind::kConfig, "there is no data order '", printable(name),
       "'; the orders are feistel, olmo-core and sequential");
}

std::unique_ptr<const Order> make_order(FileSystem& fs, const OrderSpec& spec) {
  if (spec.instances == 0) fail(ErrorKind::kConfig, "data order: 0 instances to put in order");
  if (spec.epoch == 0) fail(ErrorKind::kConfig, "data order: epoch 0; epochs count from 1");
  switch (spec.kind) {
    case OrderKind::kFeistel:
      return std::make_unique<FeistelOrder>(spec);
    case OrderKind::kOlmoCore:
      return std::make_unique<OlmoCoreOrder>(ShuffledIndices::make(fs, spec));
    case OrderKind::kSequential:
      return std::make_unique<SequentialOrder>(spec.instances);
  }
  fail(ErrorKind::kBug, "order kind ", static_cast<int>(spec.kind));
}

}  // namespace lockstep
