#include "model/init.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/rng.h"

namespace lockstep {
namespace {

constexpr double kCut = 3.0;

}  // namespace

void initial_values(const Parameter& parameter, const InitConfig& init, std::int64_t first,
                    std::span<float> out) {
  if (parameter.is_gain()) {
    std::fill(out.begin(), out.end(), 1.0F);
    return;
  }
  const CounterRng rng(init.seed, parameter.name);
  std::array<double, 1024> normals;
  for (std::size_t done = 0; done < out.size(); done += normals.size()) {
    const std::size_t count = std::min(normals.size(), out.size() - done);
    rng.truncated_normals(static_cast<std::uint64_t>(first) + done, kCut,
                          std::span(normals).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      out[done + i] = static_cast<float>(init.std * normals[i]);
    }
  }
}

void initialise(const ParameterTable& table, const InitConfig& init, const View& flat,
                ThreadPool& pool) {
  constexpr std::int64_t kPiece = 1 << 18;
  struct Piece {
    const Parameter* parameter;
    std::int64_t first;
  };
  std::vector<Piece> pieces;
  for (const Parameter& parameter : table.parameters()) {
    for (std::int64_t first = 0; first < parameter.size; first += kPiece) {
      pieces.push_back({&parameter, first});
    }
  }
  float* values = flat.data<float>();
  pool.parallel_for(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t index, int) {
    const auto [parameter, first] = pieces[static_cast<std::size_t>(index)];
    const auto count = static_cast<std::size_t>(std::min(kPiece, parameter->size - first));
    initial_values(*parameter, init, first, {values + parameter->offset + first, count});
  });
}

}  // namespace lockstep
