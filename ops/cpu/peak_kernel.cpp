#include "ops/cpu/peak_kernel.h"

#include "ops/cpu/simd.h"

namespace lockstep::ops::LOCKSTEP_ISA {
namespace {

// Twelve accumulators hide the latency of a multiply-add (6 cycles at most) at two a cycle. They
// are variables, not an array, which the compiler would keep in memory.
constexpr int kChains = 12;

// The asm makes the compiler believe that the accumulator changed, so that it neither drops nor
// reorders the multiply-adds.
#if defined(__AVX512F__)
#define LOCKSTEP_FMA(s) asm volatile("vfmadd231ps %1, %2, %0" : "+v"(s) : "v"(a), "v"(a))
#elif defined(__FMA__)
#define LOCKSTEP_FMA(s) asm volatile("vfmadd231ps %1, %2, %0" : "+x"(s) : "x"(a), "x"(a))
#else
#define LOCKSTEP_FMA(s) \
  s += a * a;           \
  asm volatile("" : "+x"(s))
#endif
#define LOCKSTEP_TWELVE(f) \
  f(s0);                   \
  f(s1);                   \
  f(s2);                   \
  f(s3);                   \
  f(s4);                   \
  f(s5);                   \
  f(s6);                   \
  f(s7);                   \
  f(s8);                   \
  f(s9);                   \
  f(s10);                  \
  f(s11)

float fp32_rounds(std::int64_t rounds) {
  NativeF32 a{};
  NativeF32 s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{}, s8{}, s9{}, s10{}, s11{};
  asm volatile("" : "+x"(a));  // not known to be zero
  for (std::int64_t r = 0; r < rounds; ++r) {
    LOCKSTEP_TWELVE(LOCKSTEP_FMA);
  }
  return (s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11)[0];
}

#if defined(__AVX512BF16__)
#define LOCKSTEP_DOT(s) asm volatile("vdpbf16ps %1, %1, %0" : "+v"(s) : "v"(a))
float bf16_rounds(std::int64_t rounds) {
  NativeF32 a{};
  NativeF32 s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{}, s8{}, s9{}, s10{}, s11{};
  for (std::int64_t r = 0; r < rounds; ++r) {
    LOCKSTEP_TWELVE(LOCKSTEP_DOT);
  }
  return (s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11)[0];
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
