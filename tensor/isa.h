#pragma once

#include <array>
#include <string>
#include <string_view>

namespace lockstep {

// The instruction sets that CPU kernels are compiled for; each includes the ones before it.
enum class Isa { kPortable, kAvx2, kAvx512, kAvx512Bf16 };

inline constexpr std::array kIsas = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16};

// "portable", "avx2", "avx512", "avx512_bf16".
[[nodiscard]] const char* name_of(Isa isa);
// Throws kConfig for another name, listing these.
[[nodiscard]] Isa isa_from_name(std::string_view name);
// The best that this CPU and operating system support.
[[nodiscard]] Isa best_isa();

}  // namespace lockstep
