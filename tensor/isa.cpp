#include "tensor/isa.h"

#include "base/error.h"

namespace lockstep {

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "?";
}

Isa isa_from_name(std::string_view name) {
  for (const Isa isa : kIsas) {
    if (name == name_of(isa)) return isa;
  }
  fail(ErrorKind::kConfig, "cpu.isa = ", name, ": must be portable, avx2, avx512 or avx512_bf16");
}

Isa best_isa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("avx512bf16")) return Isa::kAvx512Bf16;
  if (avx512) return Isa::kAvx512;
  return avx2 ? Isa::kAvx2 : Isa::kPortable;
}

Isa default_isa() {
  __builtin_cpu_init();
  const Isa best = best_isa();
  return best == Isa::kAvx512Bf16 && __builtin_cpu_is("intel") ? Isa::kAvx512 : best;
}

}  // namespace lockstep
