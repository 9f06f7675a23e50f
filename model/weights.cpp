#include "model/weights.h"

#include "model/dims.h"
#include "ops/run.h"

namespace lockstep {
namespace {

struct Packed {
  std::vector<BlockWeights> blocks;
  ops::PackedWeight head;
};

Packed pack(const ModelConfig& config, Precision precision, Weights::Use use, Isa isa,
            Arena& arena) {
  const Dims d = dims_of(config);
  const DType dtype = product_dtype(precision);
  Packed packed;
  for (std::int64_t layer = 0; layer < d.L; ++layer) {
    packed.blocks.push_back({.qkv = {d.qkv_width(), d.D, dtype, isa, use, arena},
                             .attention_out = {d.D, d.q_width(), dtype, isa, use, arena},
                             .gate_up = {2 * d.F, d.D, dtype, isa, use, arena},
                             .down = {d.D, d.F, dtype, isa, use, arena},
                             .master = {}});
  }
  packed.head = {d.V, d.D, dtype, isa, use, arena};
  return packed;
}

}  // namespace

Weights::Weights(const ModelConfig& config, Precision precision, Use use, Isa isa)
    : table_(config),
      master_memory_(table_.size() * static_cast<std::int64_t>(sizeof(float)), "weights"),
      packed_memory_(packed_bytes(config, precision, use, isa), "packed weights"),
      master_(master_memory_.data(), DType::kF32, {table_.size()}),
      outer_(table_.outer(master_)) {
  Arena arena(packed_memory_);
  Packed packed = pack(config, precision, use, isa, arena);
  blocks_ = std::move(packed.blocks);
  head_ = packed.head;
  for (std::int64_t layer = 0; layer < config.n_layers; ++layer) {
    BlockWeights& block = blocks_[static_cast<std::size_t>(layer)];
    block.master = table_.block(master_, layer);
    linears_.insert(linears_.end(), {{block.qkv, block.master.qkv},
                                     {block.attention_out, block.master.attention_out},
                                     {block.gate_up, block.master.gate_up},
                                     {block.down, block.master.down}});
  }
  linears_.push_back({head_, outer_.head});
}

void Weights::refresh(CpuStream& stream) {
  for (const LinearWeight& linear : linears_) {
    ops::run(stream, ops::PackWeight{.packed = &linear.packed, .weight = linear.master});
  }
}

std::int64_t Weights::packed_bytes(const ModelConfig& config, Precision precision, Use use,
                                   Isa isa) {
  Arena arena;
  static_cast<void>(pack(config, precision, use, isa, arena));
  return arena.peak();
}

}  // namespace lockstep
