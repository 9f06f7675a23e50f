#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "tensor/view.h"

namespace lockstep {

// One trained tensor: its Hugging Face name and its place in a flat fp32 array.
struct Parameter {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t>
      shape;                // [out, in] of a linear, [rows, D] of the embedding, [n] of a gain
  std::int64_t offset = 0;  // elements from the start of the array
  std::int64_t size = 0;    // elements
  bool decay = true;        // weight decay applies: to all but the embedding

  [[nodiscard]] bool is_gain() const { return shape.size() == 1; }
};

// The tensors of one block inside a flat array, as the products want them. Weights and gradients
// have the same layout.
struct BlockTensors {
  View qkv;             // (Q + 2 P, D), Q = H K, P = G K: q_proj, k_proj, v_proj on top of another
  View q_norm;          // (Q)
  View k_norm;          // (P)
  View attention_out;   // (D, Q)
  View attention_norm;  // (D)  post_attention_layernorm
  View gate_up;         // (2 F, D): gate_proj over up_proj
  View down;            // (D, F)
  View feed_forward_norm;  // (D)  post_feedforward_layernorm
};

struct OuterTensors {
  View embedding;   // (V, D)
  View final_norm;  // (D)
  View head;        // (V, D)
};

// Which tensors a model has and where each lies in a flat array. Tensors come in the order of the
// Hugging Face checkpoint (embedding, blocks, norm, head), each group that is one product at a
// multiple of 64 bytes and without a gap inside; gaps between groups hold zeros in every array of
// this layout and are never written. V counts the padded rows. Immutable; thread-safe.
class ParameterTable {
 public:
  explicit ParameterTable(const ModelConfig& config);

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  // Elements of a flat array, gaps included: a multiple of 16.
  [[nodiscard]] std::int64_t size() const { return size_; }
  // Elements that are weights: the parameter count.
  [[nodiscard]] std::int64_t count() const { return count_; }
  // Weight decay applies to [decay_begin, size): the embedding comes first.
  [[nodiscard]] std::int64_t decay_begin() const { return decay_begin_; }

  // Null when there is no such tensor.
  [[nodiscard]] const Parameter* find(std::string_view name) const;
  // kBug when there is no such tensor.
  [[nodiscard]] const Parameter& at(std::string_view name) const;

  // A tensor of the flat array (size) f32, in its shape.
  [[nodiscard]] View tensor(const View& flat, const Parameter& parameter) const;
  [[nodiscard]] View tensor(const View& flat, std::string_view name) const {
    return tensor(flat, at(name));
  }
  [[nodiscard]] BlockTensors block(const View& flat, std::int64_t layer) const;
  [[nodiscard]] OuterTensors outer(const View& flat) const;

 private:
  void add(std::string name, std::vector<std::int64_t> shape, bool decay);
  void align();
  [[nodiscard]] const Parameter& in_block(std::int64_t layer, std::size_t position) const;

  std::vector<Parameter> parameters_;
  std::vector<std::size_t> by_name_;  // indexes, sorted by name
  std::int64_t size_ = 0;
  std::int64_t count_ = 0;
  std::int64_t decay_begin_ = 0;
};

}  // namespace lockstep
