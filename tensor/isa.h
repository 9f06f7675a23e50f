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
// The last of the list that this CPU and operating system support.
[[nodiscard]] Isa best_isa();
// The supported one whose bf16 products are fastest, by the maker of the CPU: a pure function of
// the machine, so that a run's bits do not depend on a measurement. Intel's vdpbf16ps runs at half
// the rate of its two fp32 multiply-add units (88 against 177 GFLOP/s a core on Emerald Rapids), so
// that widened operands win there; AMD's runs at twice that rate (232 against 116 on Zen 4).
[[nodiscard]] Isa default_isa();

}  // namespace lockstep
