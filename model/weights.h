#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/numerics.h"
#include "model/parameters.h"
#include "ops/packed_weight.h"
#include "tensor/buffer.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep {

// The products of one block, and its gains (views of the master).
struct BlockWeights {
  ops::PackedWeight qkv;
  ops::PackedWeight attention_out;
  ops::PackedWeight gate_up;
  ops::PackedWeight down;
  BlockTensors master;
};

// A linear weight in the layouts of its products, and its master (out, in), a view of the flat
// array.
struct LinearWeight {
  ops::PackedWeight packed;
  View master;
};

// A model's weights: one flat fp32 master array, and the copies of its linear weights in the
// layouts and dtype of the products. Not copyable; the views stay valid when it moves.
class Weights {
 public:
  using Use = ops::PackedWeight::Use;

  // Zeroed master; refresh() before the first product.
  Weights(const ModelConfig& config, Precision precision, Use use, Isa isa);

  [[nodiscard]] const ParameterTable& table() const { return table_; }
  [[nodiscard]] const View& master() const { return master_; }  // (table().size()) f32
  // All weights of products, in the order of the flat array.
  [[nodiscard]] const std::vector<LinearWeight>& linears() const { return linears_; }
  // Makes the products' copies anew; after every change of the master that did not write them.
  void refresh(CpuStream& stream);

  [[nodiscard]] const BlockWeights& block(std::int64_t layer) const {
    return blocks_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] const OuterTensors& outer() const { return outer_; }
  [[nodiscard]] const ops::PackedWeight& head() const { return head_; }

  // Memory of the packed copies.
  [[nodiscard]] static std::int64_t packed_bytes(const ModelConfig& config, Precision precision,
                                                 Use use, Isa isa);

 private:
  ParameterTable table_;
  Buffer master_memory_;
  Buffer packed_memory_;
  View master_;
  std::vector<BlockWeights> blocks_;
  OuterTensors outer_;
  ops::PackedWeight head_;
  std::vector<LinearWeight> linears_;
};

}  // namespace lockstep
