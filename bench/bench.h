#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <vector>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

// What the benchmarks of this folder share: operands, times, medians, and how a program ends.
namespace lockstep {

// Seconds since some moment.
inline double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The upper one of the middle two. x must not be empty.
inline double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

// Holds operands for as long as it lives.
class Memory {
 public:
  // Zeros.
  View take(DType dtype, std::initializer_list<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t dim : shape) count *= dim;
    buffers_.emplace_back(count * static_cast<std::int64_t>(size_of(dtype)), "bench");
    return {buffers_.back().data(), dtype, shape};
  }
  // f32 or bf16, of both signs, |x| <= scale.
  View random(DType dtype, std::initializer_list<std::int64_t> shape, float scale = 1) {
    const View view = take(dtype, shape);
    fill(view, [scale](std::uint32_t bits) {
      return (static_cast<float>(bits >> 8U) / 8388608.0F - 1) * scale;
    });
    return view;
  }
  // i32 in [0, bound).
  View random_ids(std::initializer_list<std::int64_t> shape, std::uint32_t bound) {
    const View view = take(DType::kI32, shape);
    fill(view, [bound](std::uint32_t bits) { return (bits >> 8U) % bound; });
    return view;
  }

 private:
  template <class Make>
  static void fill(const View& view, Make make) {
    std::uint32_t state = 1;
    for (std::int64_t i = 0; i < view.size(); ++i) {
      state = state * 1664525U + 1013904223U;
      const auto value = make(state);
      if (view.dtype() == DType::kBF16) view.data<bf16>()[i] = to_bf16(static_cast<float>(value));
      if (view.dtype() == DType::kF32) view.data<float>()[i] = static_cast<float>(value);
      if (view.dtype() == DType::kI32) {
        view.data<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      }
    }
  }

  std::vector<Buffer> buffers_;
};

// Runs `body(argc, argv)` as a program: an Error becomes a line and its exit code.
template <class Body>
int bench_main(const char* name, int argc, char** argv, Body body) {
  try {
    return body(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return exit_code(error.kind());
  }
}

}  // namespace lockstep
