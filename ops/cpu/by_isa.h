#pragma once

#include "tensor/isa.h"

// Declares the same thing in the namespace of every instruction set.
#define LOCKSTEP_FOR_EACH_ISA(...) \
  namespace portable {             \
  __VA_ARGS__                      \
  }                                \
  namespace avx2 {                 \
  __VA_ARGS__                      \
  }                                \
  namespace avx512 {               \
  __VA_ARGS__                      \
  }                                \
  namespace avx512_bf16 {          \
  __VA_ARGS__                      \
  }

namespace lockstep::ops {

// The one of four that belongs to an instruction set.
template <class T>
[[nodiscard]] T by_isa(Isa isa, T portable, T avx2, T avx512, T avx512_bf16) {
  switch (isa) {
    case Isa::kPortable:
      return portable;
    case Isa::kAvx2:
      return avx2;
    case Isa::kAvx512:
      return avx512;
    case Isa::kAvx512Bf16:
      return avx512_bf16;
  }
  return portable;
}

}  // namespace lockstep::ops
