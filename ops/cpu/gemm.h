#pragma once

#include <cstdint>

#include "ops/cpu/gemm_kernel.h"
#include "tensor/stream.h"

namespace lockstep::ops {

// C (m, n) = A (m, k) B (k, n), B in panels (gemm_kernel.h). Sums over k run in blocks of a fixed
// depth, each from zero, the blocks added in order: an element's bits are a function of its row of
// A, its column of B and k alone, so any division of C into blocks, by any number of threads, gives
// the same C.
//
// Why our own kernels and not oneDNN's: oneDNN chooses its blocking by the number of rows, so a
// row's bits would depend on how many rows there are, and it leaves the epilogues to passes of
// their own. Nothing is lost for it: on one core of a Xeon with avx512_bf16, forward products of
// the 190M preset ran at 87-95% of the peak in bf16 (oneDNN 2.6.3 with its blocked weights at
// 89-93% in the same rounds) and at 82-83% in fp32 (74-80%); on one whose vdpbf16ps runs at half
// speed, by multiply-adds, at best 91% of the fp32 peak in both dtypes (oneDNN at 47% in bf16); on
// two of Zen 4, 90-94% in bf16 (oneDNN 92-95%) and 88-93% in fp32 (93-97%).
// bench/bench_matmul.cpp measures both.
struct Gemm {
  enum class Layout { kRows, kTransposed };  // A stored (m, k) or (k, m)

  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType type = DType::kF32;    // of A: kF32 or kBF16
  DType b_type = DType::kF32;  // as B was packed: A's, or kF32 from pack_columns
  const void* a = nullptr;
  std::int64_t a_stride = 0;
  Layout a_layout = Layout::kRows;
  const void* b = nullptr;
  std::int64_t b_depth = 0;  // the k and n that B was packed with, >= these
  std::int64_t b_cols = 0;
  void* c = nullptr;
  std::int64_t c_stride = 0;
  GemmStore store = GemmStore::kF32;
};

// The whole product, on all threads of the stream. scratch: gemm_scratch_bytes, aligned to 64.
void gemm(CpuStream& stream, const Gemm& g, void* scratch);
[[nodiscard]] std::int64_t gemm_scratch_bytes(Isa isa, int threads, const Gemm& g);

// The product by the calling thread alone, for those who want C in cache, in small pieces.
// workspace: gemm_workspace_bytes for this m and n, aligned to 64.
void gemm_on_one_thread(const GemmKernels& kernels, const Gemm& g, void* workspace);
[[nodiscard]] std::int64_t gemm_workspace_bytes(const GemmKernels& kernels, const Gemm& g);

// The depth that a packed operand of this depth has.
[[nodiscard]] inline std::int64_t packed_depth(DType type, std::int64_t k) {
  return type == DType::kBF16 ? (k + 1) / 2 * 2 : k;
}
// The elements of all panels of B together.
[[nodiscard]] inline std::int64_t packed_size(DType type, std::int64_t k, std::int64_t cols) {
  return packed_depth(type, k) * ((cols + 15) / 16 * 16);
}

// B for one product, from a matrix (k, cols) of elements of a type, on all threads: packed as
// columns_type, which is f32 where bf16 would be widened for every product. out: packed_size
// elements of it.
void pack_columns(CpuStream& stream, void* out, DType type, const void* x, std::int64_t stride,
                  std::int64_t k, std::int64_t cols);
[[nodiscard]] DType columns_type(Isa isa, DType type);

}  // namespace lockstep::ops
