#include "model/parameters.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/dims.h"

namespace lockstep {
namespace {

// The order of the tensors of a block; in_block() takes these.
enum BlockPosition : std::size_t {
  kQProj,
  kKProj,
  kVProj,
  kQNorm,
  kKNorm,
  kOProj,
  kAttentionNorm,
  kGateProj,
  kUpProj,
  kDownProj,
  kFeedForwardNorm,
  kBlockTensors
};

constexpr std::int64_t kAlignment = 64 / sizeof(float);

// `rows` x `columns` elements from `offset` on: one tensor, or several that lie on top of another.
View matrix(const View& flat, std::int64_t offset, std::int64_t rows, std::int64_t columns) {
  return flat.slice(0, offset, rows * columns).reshape({rows, columns});
}

}  // namespace

ParameterTable::ParameterTable(const ModelConfig& config) {
  const auto [D, H, G, K, F, V, L] = dims_of(config);
  add("model.embed_tokens.weight", {V, D}, false);
  align();
  decay_begin_ = size_;
  for (std::int64_t layer = 0; layer < L; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "self_attn.q_proj.weight", {H * K, D}, true);
    add(prefix + "self_attn.k_proj.weight", {G * K, D}, true);
    add(prefix + "self_attn.v_proj.weight", {G * K, D}, true);
    align();
    add(prefix + "self_attn.q_norm.weight", {H * K}, true);
    align();
    add(prefix + "self_attn.k_norm.weight", {G * K}, true);
    align();
    add(prefix + "self_attn.o_proj.weight", {D, H * K}, true);
    align();
    add(prefix + "post_attention_layernorm.weight", {D}, true);
    align();
    add(prefix + "mlp.gate_proj.weight", {F, D}, true);
    add(prefix + "mlp.up_proj.weight", {F, D}, true);
    align();
    add(prefix + "mlp.down_proj.weight", {D, F}, true);
    align();
    add(prefix + "post_feedforward_layernorm.weight", {D}, true);
    align();
  }
  add("model.norm.weight", {D}, true);
  align();
  add("lm_head.weight", {V, D}, true);
  align();
  by_name_.resize(parameters_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(), [this](std::size_t a, std::size_t b) {
    return parameters_[a].name < parameters_[b].name;
  });
}

void ParameterTable::add(std::string name, std::vector<std::int64_t> shape, bool decay) {
  std::int64_t size = 1;
  for (const std::int64_t dim : shape) size *= dim;
  parameters_.push_back({std::move(name), std::move(shape), size_, size, decay});
  size_ += size;
  count_ += size;
}

void ParameterTable::align() { size_ = (size_ + kAlignment - 1) / kAlignment * kAlignment; }

const Parameter* ParameterTable::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](std::size_t index, std::string_view key) { return parameters_[index].name < key; });
  if (found == by_name_.end() || parameters_[*found].name != name) return nullptr;
  return &parameters_[*found];
}

const Parameter& ParameterTable::at(std::string_view name) const {
  const Parameter* parameter = find(name);
  LOCKSTEP_CHECK(parameter != nullptr, "no parameter ", name);
  return *parameter;
}

View ParameterTable::tensor(const View& flat, const Parameter& parameter) const {
  const View elements = flat.slice(0, parameter.offset, parameter.size);
  if (parameter.is_gain()) return elements;
  return elements.reshape({parameter.shape[0], parameter.shape[1]});
}

const Parameter& ParameterTable::in_block(std::int64_t layer, std::size_t position) const {
  return parameters_[1 + static_cast<std::size_t>(layer) * kBlockTensors + position];
}

BlockTensors ParameterTable::block(const View& flat, std::int64_t layer) const {
  const auto at = [&](std::size_t position) -> const Parameter& {
    return in_block(layer, position);
  };
  const auto stacked = [&](std::size_t first, std::size_t last) {
    std::int64_t rows = 0;
    for (std::size_t i = first; i <= last; ++i) rows += at(i).shape[0];
    return matrix(flat, at(first).offset, rows, at(first).shape[1]);
  };
  return {.qkv = stacked(kQProj, kVProj),
          .q_norm = tensor(flat, at(kQNorm)),
          .k_norm = tensor(flat, at(kKNorm)),
          .attention_out = tensor(flat, at(kOProj)),
          .attention_norm = tensor(flat, at(kAttentionNorm)),
          .gate_up = stacked(kGateProj, kUpProj),
          .down = tensor(flat, at(kDownProj)),
          .feed_forward_norm = tensor(flat, at(kFeedForwardNorm))};
}

OuterTensors ParameterTable::outer(const View& flat) const {
  const std::size_t n = parameters_.size();
  return {.embedding = tensor(flat, parameters_[0]),
          .final_norm = tensor(flat, parameters_[n - 2]),
          .head = tensor(flat, parameters_[n - 1])};
}

}  // namespace lockstep
