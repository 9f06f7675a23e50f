#pragma once

// Inputs, references and error bounds that the attention tests share.

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ops/attention.h"
#include "ops/ref/attention.h"
#include "ops/run.h"

namespace lockstep::ops {

inline std::vector<Isa> isas_here() {
  std::vector<Isa> isas;
  for (const Isa isa : kIsas) {
    if (isa <= best_isa()) isas.push_back(isa);
  }
  return isas;
}

// Uniform in (-1, 1), representable in bf16, so that both dtypes see the same numbers.
inline std::vector<double> random_values(std::int64_t n, const std::string& name) {
  const CounterRng rng(7, name);
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = to_float(to_bf16(static_cast<float>(2 * rng.uniform(i) - 1)));
  }
  return values;
}

template <class T>
std::vector<T> as(const std::vector<double>& values) {
  std::vector<T> out(values.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_same_v<T, bf16>) {
      out[i] = to_bf16(static_cast<float>(values[i]));
    } else {
      out[i] = static_cast<T>(values[i]);
    }
  }
  return out;
}

template <class T>
View view_of(std::vector<T>& values, std::initializer_list<std::int64_t> shape) {
  return View(values.data(), kDTypeOf<T>, shape);
}

// One problem in double precision.
struct AttentionCase {
  ref::AttentionShape s;
  std::vector<double> q, k, v, dout;
  std::vector<std::int32_t> segments;

  explicit AttentionCase(const ref::AttentionShape& shape) : s(shape) {
    if (s.scale == 1) s.scale = 1 / std::sqrt(static_cast<double>(s.dim));
    q = random_values(s.batches * s.queries * s.heads * s.dim, "q");
    k = random_values(s.batches * s.keys * s.kv_heads * s.dim, "k");
    v = random_values(s.batches * s.keys * s.kv_heads * s.dim, "v");
    dout = random_values(s.batches * s.queries * s.heads * s.dim, "dout");
  }
  // Documents of uneven lengths; sequence b starts with another id.
  void split_documents() {
    segments.clear();
    for (std::int64_t b = 0; b < s.batches; ++b) {
      std::int32_t id = static_cast<std::int32_t>(b) - 1;
      for (std::int64_t j = 0; j < s.keys; ++j) {
        if (j % 37 == 5 || j == 70) ++id;
        segments.push_back(id);
      }
    }
  }
  // Ids that come back, in no order.
  void scatter_documents() {
    segments.clear();
    for (std::int64_t i = 0; i < s.batches * s.keys; ++i) {
      segments.push_back(static_cast<std::int32_t>((i * 7919) % 3 * 1000 - 1000));
    }
  }
};

template <class T>
struct ForwardResult {
  std::vector<T> out;
  std::vector<float> lse;
};

template <class T>
ForwardResult<T> run_forward(CpuStream& stream, const AttentionCase& c) {
  const ref::AttentionShape& s = c.s;
  std::vector<T> q = as<T>(c.q), k = as<T>(c.k), v = as<T>(c.v);
  std::vector<std::int32_t> segments = c.segments;
  ForwardResult<T> r{std::vector<T>(q.size()),
                     std::vector<float>(static_cast<std::size_t>(s.batches * s.heads * s.queries))};
  run(stream, AttentionForward{
                  .out = view_of(r.out, {s.batches, s.queries, s.heads, s.dim}),
                  .lse = view_of(r.lse, {s.batches, s.heads, s.queries}),
                  .q = view_of(q, {s.batches, s.queries, s.heads, s.dim}),
                  .k = view_of(k, {s.batches, s.keys, s.kv_heads, s.dim}),
                  .v = view_of(v, {s.batches, s.keys, s.kv_heads, s.dim}),
                  .segments = segments.empty() ? View() : view_of(segments, {s.batches, s.keys}),
                  .first_query = s.first_query,
                  .window = s.window,
                  .scale = static_cast<float>(s.scale)});
  return r;
}

template <class T>
struct BackwardResult {
  std::vector<T> dq, dk, dv;
};

template <class T>
BackwardResult<T> run_backward(CpuStream& stream, const AttentionCase& c,
                               const std::vector<double>& out, const std::vector<double>& lse) {
  const ref::AttentionShape& s = c.s;
  std::vector<T> q = as<T>(c.q), k = as<T>(c.k), v = as<T>(c.v), dout = as<T>(c.dout);
  std::vector<T> o = as<T>(out);
  std::vector<float> l = as<float>(lse);
  std::vector<std::int32_t> segments = c.segments;
  BackwardResult<T> r{std::vector<T>(q.size()), std::vector<T>(k.size()), std::vector<T>(v.size())};
  run(stream, AttentionBackward{
                  .dq = view_of(r.dq, {s.batches, s.queries, s.heads, s.dim}),
                  .dk = view_of(r.dk, {s.batches, s.keys, s.kv_heads, s.dim}),
                  .dv = view_of(r.dv, {s.batches, s.keys, s.kv_heads, s.dim}),
                  .dout = view_of(dout, {s.batches, s.queries, s.heads, s.dim}),
                  .out = view_of(o, {s.batches, s.queries, s.heads, s.dim}),
                  .lse = view_of(l, {s.batches, s.heads, s.queries}),
                  .q = view_of(q, {s.batches, s.queries, s.heads, s.dim}),
                  .k = view_of(k, {s.batches, s.keys, s.kv_heads, s.dim}),
                  .v = view_of(v, {s.batches, s.keys, s.kv_heads, s.dim}),
                  .segments = segments.empty() ? View() : view_of(segments, {s.batches, s.keys}),
                  .window = s.window,
                  .scale = static_cast<float>(s.scale)});
  return r;
}

// What the reference says, and for each number how far a kernel may be off per unit of relative
// error e of a probability, of a dS, and of the number itself:
//   out: e (sum p |v| + |out|)     dv: e (sum p |dout| + |dv|)
//   dS:  e (|dS| + p (sum |dout v| + sum |dout out|)), the last two for dP and delta
//   dq:  scale sum (bound of dS) |k| + e |dq|; dk alike.
struct AttentionReference {
  std::vector<double> out, lse, dq, dk, dv;
  std::vector<double> out_bound, dq_bound, dk_bound, dv_bound;

  explicit AttentionReference(const AttentionCase& c) {
    const ref::AttentionShape& s = c.s;
    out.resize(c.q.size());
    lse.resize(static_cast<std::size_t>(s.batches * s.heads * s.queries));
    ref::attention_forward<double>(out, lse, s, c.q, c.k, c.v, c.segments);
    if (s.first_query == 0 && s.keys == s.queries) {
      dq.resize(c.q.size());
      dk.resize(c.k.size());
      dv.resize(c.v.size());
      ref::attention_backward<double>(dq, dk, dv, s, c.dout, c.q, c.k, c.v, c.segments);
    }
    dq_bound.resize(dq.size());
    dk_bound.resize(dk.size());
    dv_bound.resize(dv.size());
    out_bound.resize(out.size());
    for (std::int64_t b = 0; b < s.batches; ++b) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        for (std::int64_t i = 0; i < s.queries; ++i) bound_row(c, b, h, i);
      }
    }
    add_size(out_bound, out);
    add_size(dq_bound, dq);
    add_size(dk_bound, dk);
    add_size(dv_bound, dv);
  }

 private:
  static void add_size(std::vector<double>& bound, const std::vector<double>& x) {
    for (std::size_t i = 0; i < x.size(); ++i) bound[i] += std::abs(x[i]);
  }
  void bound_row(const AttentionCase& c, std::int64_t b, std::int64_t h, std::int64_t i) {
    const ref::AttentionShape& s = c.s;
    const auto dim = static_cast<std::size_t>(s.dim);
    const std::size_t row = s.query_row(b, i, h);
    std::vector<double> p;
    ref::softmax_row<double>(p, s, c.q, c.k, c.segments, b, i, h);
    double delta = 0, delta_size = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      delta += c.dout[row + d] * out[row + d];
      delta_size += std::abs(c.dout[row + d] * out[row + d]);
    }
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const double pj = p[static_cast<std::size_t>(j)];
      const std::size_t key = s.key_row(b, j, h);
      double dp = 0, dp_size = 0;
      for (std::size_t d = 0; d < dim; ++d) {
        out_bound[row + d] += pj * std::abs(c.v[key + d]);
        dp += c.dout[row + d] * c.v[key + d];
        dp_size += std::abs(c.dout[row + d] * c.v[key + d]);
      }
      if (dq.empty()) continue;
      const double ds = std::abs(pj * (dp - delta)) + pj * (dp_size + delta_size);
      for (std::size_t d = 0; d < dim; ++d) {
        dv_bound[key + d] += pj * std::abs(c.dout[row + d]);
        dq_bound[row + d] += s.scale * ds * std::abs(c.k[key + d]);
        dk_bound[key + d] += s.scale * ds * std::abs(c.q[row + d]);
      }
    }
  }
};

// Products and sums round in fp32, u = 2^-24: after n terms of random sign the error is about
// u sqrt(n) (Higham 2002, 2.8), 4 times that is allowed for; 8 stands for the exponential and the
// handful of other roundings.
inline double f32_error(const ref::AttentionShape& s) {
  const auto terms = [](std::int64_t n) { return std::sqrt(static_cast<double>(n)); };
  return 4 * std::ldexp(1.0, -24) * (terms(s.dim) + terms(s.keys * s.heads / s.kv_heads) + 8);
}
// bf16 has 8 significant bits: rounding is off by at most 2^-8 of the number.
template <class T>
double relative_error(const ref::AttentionShape& s) {
  return f32_error(s) + (std::is_same_v<T, bf16> ? std::ldexp(1.0, -8) : 0);
}

// The first place where got is further from want than error * bound (or not finite); -1: none.
template <class T>
std::int64_t first_difference(const std::vector<T>& got, const std::vector<double>& want,
                              const std::vector<double>& bound, double error) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double x = to_float(got[i]);
    if (!(std::abs(x - want[i]) <= error * bound[i])) return static_cast<std::int64_t>(i);
  }
  return -1;
}

}  // namespace lockstep::ops
