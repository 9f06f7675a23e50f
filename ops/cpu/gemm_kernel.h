#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "ops/cpu/by_isa.h"

// The inner kernels of every matrix product, C = A B, once per instruction set.
//
// B lies in panels of `panel` columns (the last one as narrow as whole vectors of 16 allow), zeros
// beside the columns: f32 panels are [k][width]; bf16 panels hold two steps of k side by side,
// [k/2][width][2], the layout of vdpbf16ps, k rounded up to even with zeros. Panel p begins at
// element p * panel * k.
//
// A is read as it lies, row-major ("rows"), or from panels of `rows` rows that pack_a made of a
// transposed matrix ("panels": [k][rows], or [k/2][rows][2]; zeros below the last row). An element
// of C is one chain of multiply-adds over k from zero, whatever tile it falls into: its bits depend
// on its row of A and its column of B alone.
//
// bf16 products use vdpbf16ps where there is one, which flushes subnormal operands and results to
// zero; elsewhere bf16 operands are widened and multiplied in f32, A beforehand and B by the first
// rows' tile, which leaves it to the other tiles in `wide`: widening takes the ports of
// multiply-adds. Where B is packed for one product alone, it is widened then (pack_b_widening), and
// the f32 kernels take it.
namespace lockstep::ops {

enum class GemmStore { kF32, kAddF32, kBF16 };

// C[0:rows, 0:cols] from one panel of B and one stretch of k: one or several blocks, of which each
// is summed from zero and added to the sums of those before it.
struct PanelProduct {
  const void* a = nullptr;
  std::int64_t a_stride = 0;  // elements from row to row ("rows") or from panel to panel ("panels")
  const void* b = nullptr;    // the panel at this stretch's first k
  float* wide = nullptr;      // memory for k (made even) x width, if A is f32 and B is bf16
  const void* next = nullptr;  // what comes after this part of the panel, to fetch ahead, or null
  std::int64_t next_bytes = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;   // 1..width
  std::int64_t width = 0;  // of the panel of B
  std::int64_t k = 0;      // of this stretch; odd only in the last one
  std::int64_t block = 0;  // k of a block, even; the last one of a stretch may be smaller
  // Sums of the stretches before: read unless first, written unless last. May be null if both.
  float* partial = nullptr;  // rows x partial_stride
  std::int64_t partial_stride = 0;
  bool first = true;
  bool last = true;
  void* c = nullptr;  // written if last
  std::int64_t c_stride = 0;
  GemmStore store = GemmStore::kF32;
};

struct GemmKernels {
  int panel;     // columns of a panel of B
  int rows;      // rows of a register tile and of a panel of A
  DType a_bf16;  // what A must be when B is bf16: kBF16, or kF32 (widened)
  void (*f32_rows)(const PanelProduct&);
  void (*f32_panels)(const PanelProduct&);
  void (*bf16_rows)(const PanelProduct&);
  void (*bf16_panels)(const PanelProduct&);

  // One panel of B, its columns [0, cols), from a matrix (k, cols) with rows `stride` apart.
  void (*pack_b_f32)(float* out, const float* x, std::int64_t stride, std::int64_t k,
                     std::int64_t cols);
  void (*pack_b_bf16)(bf16* out, const bf16* x, std::int64_t stride, std::int64_t k,
                      std::int64_t cols);
  void (*pack_b_widening)(float* out, const bf16* x, std::int64_t stride, std::int64_t k,
                          std::int64_t cols);
  void (*pack_b_rounding)(bf16* out, const float* x, std::int64_t stride, std::int64_t k,
                          std::int64_t cols);
  // One panel of B from its transpose, a matrix (cols, k). What is made here and by pack_b_rounding
  // is weights, read after all others were made: streamed to memory, `out` aligned to 64 bytes;
  // call _mm_sfence() after the last.
  void (*pack_bt_f32)(float* out, const float* x, std::int64_t stride, std::int64_t k,
                      std::int64_t cols);
  void (*pack_bt_rounding)(bf16* out, const float* x, std::int64_t stride, std::int64_t k,
                           std::int64_t cols);
  // Panels of A, `panel` words of 32 bits apart, from its transpose, a matrix (k, rows). The bf16
  // one writes elements of type a_bf16.
  void (*pack_a_f32)(float* out, std::int64_t panel, const float* x, std::int64_t stride,
                     std::int64_t k, std::int64_t rows);
  void (*pack_a_bf16)(void* out, std::int64_t panel, const bf16* x, std::int64_t stride,
                      std::int64_t k, std::int64_t rows);
  // x (rows, k) as f32, rows out_stride apart; an odd k gets one zero more.
  void (*widen_rows)(float* out, std::int64_t out_stride, const bf16* x, std::int64_t stride,
                     std::int64_t rows, std::int64_t k);
};

LOCKSTEP_FOR_EACH_ISA(extern const GemmKernels gemm_kernels;)

[[nodiscard]] inline const GemmKernels& gemm_kernels_of(Isa isa) {
  return *by_isa(isa, &portable::gemm_kernels, &avx2::gemm_kernels, &avx512::gemm_kernels,
                 &avx512_bf16::gemm_kernels);
}

}  // namespace lockstep::ops
