#include "ops/embedding.h"

#include <algorithm>

#include "ops/cpu/elementwise_kernels.h"
#include "ops/cpu/rows.h"

namespace lockstep::ops {
namespace {

void check_tokens(const char* op, const std::int32_t* tokens, std::int64_t n, std::int64_t vocab) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab) {
      fail(ErrorKind::kData, "[", op, "] tokens[", i, "] = ", tokens[i], ": want 0 to ", vocab - 1,
           "; the data was made with another vocabulary, or is damaged");
    }
  }
}

}  // namespace

void enqueue(CpuStream& stream, const EmbeddingForward& op) {
  const std::int64_t n = op.y.dim(0);
  const std::int64_t width = op.y.dim(1);
  const auto* tokens = op.tokens.data<std::int32_t>();
  check_tokens(EmbeddingForward::kName, tokens, n, op.weight.dim(0));
  const ElementwiseKernels& kernels = elementwise_kernels(stream.isa());
  const auto* weight = op.weight.data<float>();
  auto* y = op.y.data<float>();
  auto* rounded = op.y_rounded.empty() ? nullptr : op.y_rounded.data<bf16>();
  for_row_pieces(stream, n, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* from = weight + tokens[row] * width;
      if (rounded == nullptr) {
        std::copy_n(from, width, y + row * width);
      } else {
        kernels.copy_and_round(y + row * width, rounded + row * width, from, width);
      }
    }
  });
}

// Each piece of the vocabulary is given its tokens' rows, which a counting sort by pieces and then
// a sort within the piece have put in order of the token, and of n for each token.
void enqueue(CpuStream& stream, const EmbeddingBackward& op) {
  const std::int64_t n = op.dy.dim(0);
  const std::int64_t width = op.dy.dim(1);
  const std::int64_t vocab = op.dweight.dim(0);
  const auto* tokens = op.tokens.data<std::int32_t>();
  check_tokens(EmbeddingBackward::kName, tokens, n, vocab);

  const std::int64_t piece = std::max<std::int64_t>(1, 4 * kPieceElements / width);
  const std::int64_t pieces = (vocab + piece - 1) / piece;
  const std::int64_t row_bytes = (width * 4 + 63) / 64 * 64;
  auto* sums = static_cast<char*>(
      stream.scratch(stream.pool().threads() * row_bytes + (pieces + 1 + n) * 8));
  auto* ends = reinterpret_cast<std::int64_t*>(sums + stream.pool().threads() * row_bytes);
  std::int64_t* order = ends + pieces + 1;
  std::fill_n(ends, pieces + 1, 0);
  for (std::int64_t i = 0; i < n; ++i) ++ends[tokens[i] / piece + 1];
  for (std::int64_t i = 0; i < pieces; ++i) ends[i + 1] += ends[i];
  for (std::int64_t i = 0; i < n; ++i) order[ends[tokens[i] / piece]++] = i;

  const ElementwiseKernels& kernels = elementwise_kernels(stream.isa());
  auto* dweight = op.dweight.data<float>();
  const auto* dy = op.dy.data<float>();
  const bool adds = op.accumulate == Accumulate::kAdd;
  stream.pool().parallel_for(pieces, [&](std::int64_t index, int thread) {
    const std::int64_t begin = index * piece;
    if (!adds) std::fill_n(dweight + begin * width, std::min(piece, vocab - begin) * width, 0.0F);
    std::int64_t* i = order + (index == 0 ? 0 : ends[index - 1]);
    std::int64_t* const end = order + ends[index];
    std::sort(i, end, [&](std::int64_t a, std::int64_t b) {
      return tokens[a] != tokens[b] ? tokens[a] < tokens[b] : a < b;
    });
    auto* sum = reinterpret_cast<float*>(sums + thread * row_bytes);
    while (i != end) {
      const std::int32_t token = tokens[*i];
      float* row = dweight + token * width;
      float* to = adds ? sum : row;
      if (adds) std::fill_n(sum, width, 0.0F);
      for (; i != end && tokens[*i] == token; ++i) kernels.add(to, to, dy + *i * width, width);
      if (adds) kernels.add(row, row, sum, width);
    }
  });
}

}  // namespace lockstep::ops
