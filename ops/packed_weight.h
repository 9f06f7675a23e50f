#pragma once

#include <cstdint>

#include "tensor/buffer.h"
#include "tensor/stream.h"
#include "tensor/view.h"

namespace lockstep::ops {

// One linear weight [out, in] in the layouts that the product kernels want, made from the fp32
// master whenever that changes (once an optimiser step) and never in between. The layouts depend on
// the dtype and the instruction set alone, not on the number of threads.
class PackedWeight {
 public:
  // Which products the weight will serve: inference needs no layout for the input's gradient.
  enum class Use { kForward, kForwardAndBackward };

  PackedWeight() = default;
  // dtype kF32 or kBF16: the mode of the products. Memory comes from the arena (which may only
  // measure).
  PackedWeight(std::int64_t out, std::int64_t in, DType dtype, Isa isa, Use use, Arena& arena);

  [[nodiscard]] std::int64_t out() const { return out_; }
  [[nodiscard]] std::int64_t in() const { return in_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] Isa isa() const { return isa_; }
  [[nodiscard]] Use use() const { return use_; }
  // Opaque to all but the product kernels.
  [[nodiscard]] const View& forward() const { return forward_; }
  [[nodiscard]] const View& backward() const { return backward_; }
  // Of both layouts.
  [[nodiscard]] double bytes() const;

 private:
  std::int64_t out_ = 0;
  std::int64_t in_ = 0;
  DType dtype_ = DType::kF32;
  Isa isa_ = Isa::kPortable;
  Use use_ = Use::kForward;
  View forward_;
  View backward_;
};

// Writes both layouts from the master weight, rounding to nearest even in bf16 mode.
struct PackWeight {
  static constexpr const char* kName = "pack_weight";
  const PackedWeight* packed;  // out
  View weight;                 // in (out, in) f32
  void check() const;
  [[nodiscard]] double flops() const;
  [[nodiscard]] double bytes() const;
};

void enqueue(CpuStream& stream, const PackWeight& op);

}  // namespace lockstep::ops
