#include "ops/cpu/peak_kernel.h"

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

// Enough accumulators to hide the latency of a multiply-add (6 cycles at most) at two a cycle.
constexpr int kChains = 12;

// The empty asm makes the compiler believe that each accumulator changed, so that it neither drops
// nor reorders the multiply-adds.
float fp32_rounds(std::int64_t rounds) {
  NativeF32 sum[kChains];
  NativeF32 a{};
  NativeF32 b{};
  for (int lane = 0; lane < kNative; ++lane) {
    a[lane] = 1.0F;
    b[lane] = 1e-9F;
  }
  for (auto& s : sum) s = a;
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) {
#if defined(__AVX512F__)
      asm volatile("vfmadd231ps %1, %2, %0" : "+v"(sum[i]) : "v"(a), "v"(b));
#elif defined(__FMA__)
      asm volatile("vfmadd231ps %1, %2, %0" : "+x"(sum[i]) : "x"(a), "x"(b));
#else
      sum[i] += a * b;
      asm volatile("" : "+x"(sum[i]));
#endif
    }
  }
  float total = 0;
  for (const auto& s : sum) total += s[0];
  return total;
}

#if defined(__AVX512BF16__)
float bf16_rounds(std::int64_t rounds) {
  __m512 sum[kChains];
  const __m512 ones = _mm512_castsi512_ps(_mm512_set1_epi32(0x3f803f80));
  for (auto& s : sum) s = _mm512_setzero_ps();
  for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) {
      asm volatile("vdpbf16ps %1, %2, %0" : "+v"(sum[i]) : "v"(ones), "v"(ones));
    }
  }
  float total = 0;
  for (const auto& s : sum) total += s[0];
  return total;
}
constexpr double kBf16Flops = kChains * 64.0;
#else
float bf16_rounds(std::int64_t rounds) { return fp32_rounds(rounds); }
constexpr double kBf16Flops = kChains * 2.0 * kNative;
#endif

float read_all(const float* x, std::int64_t n) {
  NativeF32 sum[8] = {};
  for (std::int64_t i = 0; i < n; i += 8 * kNative) {
    for (int j = 0; j < 8; ++j) {
      NativeF32 value;
      __builtin_memcpy(&value, x + i + j * kNative, sizeof value);
      sum[j] += value;
    }
  }
  float total = 0;
  for (const auto& s : sum) total += s[0] + s[kNative - 1];
  return total;
}

}  // namespace

extern const PeakKernel peak_kernel = {.bf16_flops_per_round = kBf16Flops,
                                       .fp32_flops_per_round = kChains * 2.0 * kNative,
                                       .bf16 = bf16_rounds,
                                       .fp32 = fp32_rounds,
                                       .read = read_all};

}  // namespace lockstep::ops::LOCKSTEP_ISA
