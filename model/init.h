#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "model/parameters.h"
#include "tensor/view.h"

namespace lockstep {

// OLMo-core's InitMethod "normal": every linear and embedding weight from a normal distribution
// with mean 0 and standard deviation `std` (0.02), cut at 3 std; gains 1. Element i of a tensor is
// a pure function of (seed, the tensor's Hugging Face name, i), so any rank makes any slice.
struct InitConfig {
  std::uint64_t seed = 0;
  double std = 0.02;
};

// Elements [first, first + out.size()) of one tensor. Thread-safe.
void initial_values(const Parameter& parameter, const InitConfig& init, std::int64_t first,
                    std::span<float> out);

// All of a flat array (table.size()) f32; gaps between tensors are left alone.
void initialise(const ParameterTable& table, const InitConfig& init, const View& flat,
                ThreadPool& pool);

}  // namespace lockstep
