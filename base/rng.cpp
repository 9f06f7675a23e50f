#include "base/rng.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace lockstep {
namespace {

// Philox4x32's constants (Salmon et al. 2011, table 2).
constexpr int kRounds = 10;
constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;

// normal_quantile where |q| = |p - 0.5| <= kCentral.
constexpr double kCentral = 0.425;
inline double central_quantile(double q) {
  const double r = 0.180625 - q * q;
  return q *
         (((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r +
               6.7265770927008700853e4) *
                  r +
              4.5921953931549871457e4) *
                 r +
             1.3731693765509461125e4) *
                r +
            1.9715909503065514427e3) *
               r +
           1.3314166789178437745e2) *
              r +
          3.3871328727963666080e0) /
         (((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r +
               3.9307895800092710610e4) *
                  r +
              2.1213794301586595867e4) *
                 r +
             5.3941960214247511077e3) *
                r +
            6.8718700749205790830e2) *
               r +
           4.2313330701600911252e1) *
              r +
          1.0);
}

// The probability below which a normal lies with the mass under -cut and over cut cut off.
double mass_below(double cut) { return 0.5 * std::erfc(cut / std::sqrt(2.0)); }

// The first two words of `lanes` consecutive counters' Philox blocks, as uniform numbers: loops
// over lanes that the compiler turns into vector code.
constexpr std::size_t kLanes = 64;
void uniform_lanes(std::array<std::uint32_t, 2> key, std::uint32_t third, std::uint64_t first,
                   std::array<double, kLanes>& out) {
  std::array<std::uint32_t, kLanes> c0;
  std::array<std::uint32_t, kLanes> c1;
  std::array<std::uint32_t, kLanes> c2;
  std::array<std::uint32_t, kLanes> c3;
  for (std::size_t i = 0; i < kLanes; ++i) {
    c0[i] = static_cast<std::uint32_t>(first + i);
    c1[i] = static_cast<std::uint32_t>((first + i) >> 32U);
    c2[i] = third;
    c3[i] = 0;
  }
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t p0 = kMultiplier0 * c0[i];
      const std::uint64_t p1 = kMultiplier1 * c2[i];
      c0[i] = static_cast<std::uint32_t>(p1 >> 32U) ^ c1[i] ^ key[0];
      c1[i] = static_cast<std::uint32_t>(p1);
      c2[i] = static_cast<std::uint32_t>(p0 >> 32U) ^ c3[i] ^ key[1];
      c3[i] = static_cast<std::uint32_t>(p0);
    }
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    const std::uint64_t word = (static_cast<std::uint64_t>(c1[i]) << 32U) | c0[i];
    out[i] = (static_cast<double>(word >> 11U) + 0.5) * 0x1p-53;
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 2> key,
                                        std::array<std::uint32_t, 4> counter) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = kMultiplier0 * counter[0];
    const std::uint64_t p1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32U) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32U) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

CounterRng::CounterRng(std::uint64_t seed, std::string_view name) {
  const std::uint64_t key = hash64(name, seed);
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32U)};
  name_high_ = static_cast<std::uint32_t>(hash64(name, ~seed));
}

std::uint64_t CounterRng::u64(std::uint64_t index) const {
  const auto block = philox4x32(key_, {static_cast<std::uint32_t>(index),
                                       static_cast<std::uint32_t>(index >> 32U), name_high_, 0});
  return (static_cast<std::uint64_t>(block[1]) << 32U) | block[0];
}

double CounterRng::uniform(std::uint64_t index) const {
  return (static_cast<double>(u64(index) >> 11U) + 0.5) * 0x1p-53;
}

double CounterRng::truncated_normal(std::uint64_t index, double cut) const {
  const double below = mass_below(cut);
  return normal_quantile(below + uniform(index) * (1.0 - 2.0 * below));
}

void CounterRng::truncated_normals(std::uint64_t first, double cut, std::span<double> out) const {
  const double below = mass_below(cut);
  const double width = 1.0 - 2.0 * below;
  std::array<double, kLanes> p;
  std::array<double, kLanes> value;
  for (std::size_t done = 0; done < out.size(); done += kLanes) {
    uniform_lanes(key_, name_high_, first + done, p);
    for (std::size_t i = 0; i < kLanes; ++i) {
      p[i] = below + p[i] * width;
      value[i] = central_quantile(p[i] - 0.5);  // replaced below where it does not hold
    }
    const std::size_t count = std::min(kLanes, out.size() - done);
    for (std::size_t i = 0; i < count; ++i) {
      const bool central = std::abs(p[i] - 0.5) <= kCentral;
      out[done + i] = central ? value[i] : normal_quantile(p[i]);
    }
  }
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= kCentral) return central_quantile(q);
  double r = std::sqrt(-std::log(q < 0 ? p : 1.0 - p));
  double value = 0;
  if (r <= 5.0) {
    r -= 1.6;
    value = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r +
                  2.41780725177450611770e-1) *
                     r +
                 1.27045825245236838258e0) *
                    r +
                3.64784832476320460504e0) *
                   r +
               5.76949722146069140550e0) *
                  r +
              4.63033784615654529590e0) *
                 r +
             1.42343711074968357734e0) /
            (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r +
                  1.51986665636164571966e-2) *
                     r +
                 1.48103976427480074590e-1) *
                    r +
                6.89767334985100004550e-1) *
                   r +
               1.67638483018380384940e0) *
                  r +
              2.05319162663775882187e0) *
                 r +
             1.0);
  } else {
    r -= 5.0;
    value = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r +
                  1.24266094738807843860e-3) *
                     r +
                 2.65321895265761230930e-2) *
                    r +
                2.96560571828504891230e-1) *
                   r +
               1.78482653991729133580e0) *
                  r +
              5.46378491116411436990e0) *
                 r +
             6.65790464350110377720e0) /
            (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r +
                  1.84631831751005468180e-5) *
                     r +
                 7.86869131145613259100e-4) *
                    r +
                1.48753612908506148525e-2) *
                   r +
               1.36929880922735805310e-1) *
                  r +
              5.99832206555887937690e-1) *
                 r +
             1.0);
  }
  return q < 0 ? -value : value;
}

}  // namespace lockstep
