#include "ops/attention.h"

#include <algorithm>

#include "base/error.h"
#include "ops/contract.h"

namespace lockstep::ops {
namespace {

// Kernels keep positions in 32 bits.
constexpr std::int64_t kMaxKeys = std::int64_t{1} << 30;

void require_options(const char* op, std::int64_t heads, std::int64_t kv_heads, std::int64_t window,
                     float scale) {
  if (kv_heads <= 0 || heads % kv_heads != 0) {
    fail(ErrorKind::kBug, "[", op, "] ", heads, " query heads, want a multiple of the ", kv_heads,
         " kv heads");
  }
  if (window < 0) fail(ErrorKind::kBug, "[", op, "] window ", window, ", want 0 (none) or more");
  if (!(scale > 0)) fail(ErrorKind::kBug, "[", op, "] scale ", scale, ", want it positive");
}

// Pairs of all sequences: with segments, a document is a run of equal ids.
double visible_pairs(const View& segments, std::int64_t batches, std::int64_t queries,
                     std::int64_t first_query, std::int64_t window) {
  if (segments.empty()) {
    return static_cast<double>(batches) * attention_pairs(queries, first_query, window);
  }
  std::int64_t pairs = 0;
  const std::int64_t widest = window == 0 ? kMaxKeys : window;
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto* ids = segments.data<std::int32_t>() + b * segments.stride(0);
    std::int64_t run = 0;
    for (std::int64_t j = 0; j < first_query + queries; ++j) {
      run = j > 0 && ids[j] == ids[j - 1] ? run + 1 : 1;
      if (j >= first_query) pairs += std::min(run, widest);
    }
  }
  return static_cast<double>(pairs);
}

}  // namespace

double attention_pairs(std::int64_t queries, std::int64_t first_query, std::int64_t window) {
  // Sum over positions p in [first, last) of min(p + 1, window).
  const auto upto = [window](std::int64_t positions) {
    const auto n = static_cast<double>(positions);
    const auto w = static_cast<double>(window);
    if (window == 0 || positions <= window) return n * (n + 1) / 2;
    return w * (w + 1) / 2 + (n - w) * w;
  };
  return upto(first_query + queries) - upto(first_query);
}

void AttentionForward::check() const {
  require_rank(kName, "q", q, 4);
  require_rank(kName, "k", k, 4);
  const std::int64_t batches = q.dim(0), queries = q.dim(1), heads = q.dim(2), dim = q.dim(3);
  const std::int64_t keys = k.dim(1), kv_heads = k.dim(2);
  require(kName, "q", q, Types::kF32OrBF16, {batches, queries, heads, dim}, Rows::kStrided);
  require(kName, "k", k, Types::kF32OrBF16, {batches, keys, kv_heads, dim}, Rows::kStrided);
  require(kName, "v", v, Types::kF32OrBF16, {batches, keys, kv_heads, dim}, Rows::kStrided);
  require(kName, "out", out, Types::kF32OrBF16, {batches, queries, heads, dim}, Rows::kStrided);
  require(kName, "lse", lse, Types::kF32, {batches, heads, queries});
  for (const View* view : {&k, &v, &out}) require_same_type(kName, "k, v, out", *view, "q", q);
  if (!segments.empty()) require(kName, "segments", segments, Types::kI32, {batches, keys});
  require_options(kName, heads, kv_heads, window, scale);
  if (first_query < 0 || first_query + queries > keys || keys > kMaxKeys) {
    fail(ErrorKind::kBug, "[", kName, "] queries ", first_query, " to ", first_query + queries,
         " of ", keys, " keys, want them inside and at most ", kMaxKeys, " keys");
  }
  for (const View* in : {&q, &k, &v}) {
    require_apart(kName, "out", out, "q, k, v", *in);
    require_apart(kName, "lse", lse, "q, k, v", *in);
  }
}

double AttentionForward::flops() const {
  // Two products of K multiply-adds a pair.
  return 4 * static_cast<double>(q.dim(2) * q.dim(3)) *
         visible_pairs(segments, q.dim(0), q.dim(1), first_query, window);
}

double AttentionForward::bytes() const {
  return static_cast<double>(q.bytes() + k.bytes() + v.bytes() + out.bytes() + lse.bytes());
}

void AttentionBackward::check() const {
  require_rank(kName, "q", q, 4);
  require_rank(kName, "k", k, 4);
  const std::int64_t batches = q.dim(0), length = q.dim(1), heads = q.dim(2), dim = q.dim(3);
  const std::int64_t kv_heads = k.dim(2);
  struct Named {
    const char* name;
    const View* view;
    std::int64_t heads;
  };
  const Named all[] = {{"q", &q, heads},      {"k", &k, kv_heads},    {"v", &v, kv_heads},
                       {"out", &out, heads},  {"dout", &dout, heads}, {"dq", &dq, heads},
                       {"dk", &dk, kv_heads}, {"dv", &dv, kv_heads}};
  for (const Named& one : all) {
    require(kName, one.name, *one.view, Types::kF32OrBF16, {batches, length, one.heads, dim},
            Rows::kStrided);
    require_same_type(kName, one.name, *one.view, "q", q);
  }
  require(kName, "lse", lse, Types::kF32, {batches, heads, length});
  if (!segments.empty()) require(kName, "segments", segments, Types::kI32, {batches, length});
  require_options(kName, heads, kv_heads, window, scale);
  if (length > kMaxKeys) {
    fail(ErrorKind::kBug, "[", kName, "] ", length, " positions, want at most ", kMaxKeys);
  }
  for (const View* in : {&q, &k, &v, &out, &dout, &lse}) {
    require_apart(kName, "dq", dq, "an input", *in);
    require_apart(kName, "dk", dk, "an input", *in);
    require_apart(kName, "dv", dv, "an input", *in);
  }
}

double AttentionBackward::flops() const {
  // Five products of K multiply-adds a pair, the recomputed scores included.
  return 10 * static_cast<double>(q.dim(2) * q.dim(3)) *
         visible_pairs(segments, q.dim(0), q.dim(1), 0, window);
}

double AttentionBackward::bytes() const {
  return static_cast<double>(q.bytes() + k.bytes() + v.bytes() + out.bytes() + dout.bytes() +
                             lse.bytes() + dq.bytes() + dk.bytes() + dv.bytes());
}

}  // namespace lockstep::ops
