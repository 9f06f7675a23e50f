#include "ops/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "ops/packed_weight.h"
#include "ops/ref/matmul.h"
#include "ops/run.h"

namespace lockstep::ops {
namespace {

using Complex = std::complex<double>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Values on a grid of 2^-6 up to 2: exact in bf16, so that references start from equal numbers.
std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(at(count));
  for (float& x : values) x = static_cast<float>(static_cast<int>(random() % 255) - 127) / 64;
  return values;
}

std::vector<double> wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// A matrix in memory of its own, its rows `gap` elements further apart than they are long; the gaps
// hold NaN, which would spread if they were read.
class Matrix {
 public:
  Matrix(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t gap = 0)
      : rows_(rows),
        cols_(cols),
        memory_((rows * (cols + gap)) * static_cast<std::int64_t>(size_of(dtype)), "test"),
        view_(View(memory_.data(), dtype, {rows, cols + gap}).slice(1, 0, cols)) {
    View all(memory_.data(), dtype, {rows * (cols + gap)});
    for (std::int64_t i = 0; i < all.size(); ++i) put(all, i, std::nanf(""));
  }
  Matrix(DType dtype, std::int64_t rows, std::int64_t cols, const std::vector<float>& values,
         std::int64_t gap = 0)
      : Matrix(dtype, rows, cols, gap) {
    fill(values);
  }
  void fill(const std::vector<float>& values) {
    for (std::int64_t n = 0; n < rows_; ++n) {
      for (std::int64_t i = 0; i < cols_; ++i) {
        put(view_, n * view_.stride(0) + i, values[at(n * cols_ + i)]);
      }
    }
  }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> out;
    for (std::int64_t n = 0; n < rows_; ++n) {
      for (std::int64_t i = 0; i < cols_; ++i) {
        const std::int64_t j = n * view_.stride(0) + i;
        out.push_back(view_.dtype() == DType::kBF16 ? to_float(view_.data<bf16>()[j])
                                                    : view_.data<float>()[j]);
      }
    }
    return out;
  }
  // What the gaps hold is still NaN.
  [[nodiscard]] bool gaps_untouched() const {
    for (std::int64_t n = 0; n + 1 < rows_; ++n) {
      for (std::int64_t i = cols_; i < view_.stride(0); ++i) {
        const std::int64_t j = n * view_.stride(0) + i;
        const float x = view_.dtype() == DType::kBF16 ? to_float(view_.data<bf16>()[j])
                                                      : view_.data<float>()[j];
        if (!std::isnan(x)) return false;
      }
    }
    return true;
  }

 private:
  static void put(const View& view, std::int64_t i, float x) {
    if (view.dtype() == DType::kBF16) {
      view.data<bf16>()[i] = to_bf16(x);
    } else {
      view.data<float>()[i] = x;
    }
  }
  std::int64_t rows_;
  std::int64_t cols_;
  Buffer memory_;
  View view_;
};

class Weight {
 public:
  Weight(CpuStream& stream, DType dtype, std::int64_t out, std::int64_t in,
         const std::vector<float>& values,
         PackedWeight::Use use = PackedWeight::Use::kForwardAndBackward) {
    Arena measure;
    static_cast<void>(PackedWeight(out, in, dtype, stream.isa(), use, measure));
    memory_ = Buffer(measure.used(), "test");
    Arena arena(memory_);
    packed_ = PackedWeight(out, in, dtype, stream.isa(), use, arena);
    const Matrix master(DType::kF32, out, in, values);
    run(stream, PackWeight{&packed_, master.view()});
  }
  [[nodiscard]] const PackedWeight* get() const { return &packed_; }

 private:
  Buffer memory_;
  PackedWeight packed_;
};

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kIsas) {
    if (isa <= best_isa()) isas.push_back(isa);
  }
  return isas;
}

// The error of a sum of `terms` products of magnitude up to 4: fp32 rounding at each of the terms'
// partial sums, whose size grows like sqrt(terms); 4 is three times the products' deviation. For a
// bf16 result, half a unit in the last place (2^-9) of a value twice that size.
double tolerance(std::int64_t terms, DType result) {
  const double size = 4 * std::sqrt(static_cast<double>(terms));
  const double sum = size * std::sqrt(static_cast<double>(terms)) * std::ldexp(1.0, -24);
  return sum + (result == DType::kBF16 ? std::ldexp(2 * size, -9) : 0);
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance) << what << " at " << i;
  }
}

struct Shape {
  std::int64_t rows, out, in;
};
// One, odd, around the kernels' tiles (rows 2, 6, 8; columns 16, 48) and, last, more than one block
// of depth in each of the three forms.
const std::vector<Shape> kShapes = {{1, 1, 1},     {2, 3, 5},     {7, 8, 9},    {9, 7, 127},
                                    {13, 127, 31}, {24, 48, 64},  {6, 49, 16},  {127, 97, 33},
                                    {3, 200, 7},   {5, 33, 2051}, {5, 2051, 3}, {2051, 5, 3}};

TEST(Matmul, RefusesShapesAndTypes) {
  CpuStream stream(1);
  const Weight w(stream, DType::kF32, 3, 2, random_values(6, 1), PackedWeight::Use::kForward);
  const Matrix x(DType::kF32, 4, 2);
  const Matrix y(DType::kF32, 4, 3);
  const Matrix half(DType::kBF16, 4, 2);
  EXPECT_NO_THROW((MatmulForward{y.view(), x.view(), w.get()}).check());
  EXPECT_THROW((MatmulForward{x.view(), x.view(), w.get()}).check(), Error);
  EXPECT_THROW((MatmulForward{y.view(), half.view(), w.get()}).check(), Error);
  EXPECT_THROW((MatmulForward{y.view(), x.view(), nullptr}).check(), Error);
  EXPECT_THROW((MatmulBackwardInput{x.view(), y.view(), w.get()}).check(), Error) << "forward only";
  const Weight both(stream, DType::kF32, 3, 2, random_values(6, 1));
  EXPECT_NO_THROW((MatmulBackwardInput{x.view(), y.view(), both.get()}).check());
  EXPECT_THROW((MatmulBackwardInput{half.view(), y.view(), both.get(), Accumulate::kAdd}).check(),
               Error);
  const Matrix dw(DType::kF32, 3, 2);
  EXPECT_NO_THROW((MatmulBackwardWeight{dw.view(), y.view(), x.view()}).check());
  EXPECT_THROW((MatmulBackwardWeight{dw.view(), y.view(), half.view()}).check(), Error);
  EXPECT_THROW((MatmulBackwardWeight{dw.view(), x.view(), y.view()}).check(), Error);
}

TEST(Matmul, RefusesAWeightPackedForAnotherInstructionSet) {
  CpuStream portable(1, Isa::kPortable);
  if (best_isa() == Isa::kPortable) GTEST_SKIP() << "one instruction set here";
  CpuStream best(1);
  const Weight w(portable, DType::kF32, 3, 2, random_values(6, 1));
  const Matrix x(DType::kF32, 4, 2);
  const Matrix y(DType::kF32, 4, 3);
  EXPECT_THROW(run(best, MatmulForward{y.view(), x.view(), w.get()}), Error);
}

TEST(Matmul, TinyCaseByHand) {
  for (const Isa isa : available_isas()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CpuStream stream(1, isa);
      const Weight w(stream, dtype, 2, 3, {1, 2, 3, 4, 5, 6});
      const Matrix x(dtype, 2, 3, {1, 0, -1, 2, 2, 2});
      const Matrix y(DType::kF32, 2, 2);
      run(stream, MatmulForward{y.view(), x.view(), w.get()});
      EXPECT_EQ(y.values(), (std::vector<float>{-2, -2, 12, 30}));
      const Matrix dy(dtype, 2, 2, {1, 2, 3, -1});
      const Matrix dx(DType::kF32, 2, 3);
      run(stream, MatmulBackwardInput{dx.view(), dy.view(), w.get()});
      EXPECT_EQ(dx.values(), (std::vector<float>{9, 12, 15, -1, 1, 3}));
      const Matrix dw(DType::kF32, 2, 3);
      run(stream, MatmulBackwardWeight{dw.view(), dy.view(), x.view()});
      EXPECT_EQ(dw.values(), (std::vector<float>{7, 6, 5, 0, -2, -4}));
      run(stream, MatmulBackwardWeight{dw.view(), dy.view(), x.view(), Accumulate::kAdd});
      EXPECT_EQ(dw.values(), (std::vector<float>{14, 12, 10, 0, -4, -8}));
    }
  }
}

// The derivative of sum(dy * y) along each element, by a complex step of 1e-50 (no cancellation, so
// exact to rounding), equals the reference's gradients.
TEST(Matmul, ReferenceGradientsMatchComplexSteps) {
  const std::int64_t rows = 3, out = 4, in = 5;
  const auto x = wide(random_values(rows * in, 1));
  const auto w = wide(random_values(out * in, 2));
  const auto dy = wide(random_values(rows * out, 3));
  const std::vector<Complex> complex_x(x.begin(), x.end());
  const std::vector<Complex> complex_w(w.begin(), w.end());
  const auto slope = [&](const std::vector<Complex>& xs, const std::vector<Complex>& ws) {
    const auto y = ref::matmul_forward(xs, ws, rows, out, in);
    double sum = 0;
    for (std::size_t j = 0; j < y.size(); ++j) sum += dy[j] * y[j].imag() / 1e-50;
    return sum;
  };
  const auto dx = ref::matmul_backward_input(dy, w, rows, out, in);
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto stepped = complex_x;
    stepped[i] += Complex(0, 1e-50);
    EXPECT_NEAR(dx[i], slope(stepped, complex_w), 1e-12);
  }
  const auto dw = ref::matmul_backward_weight(dy, x, rows, out, in);
  for (std::size_t i = 0; i < w.size(); ++i) {
    auto stepped = complex_w;
    stepped[i] += Complex(0, 1e-50);
    EXPECT_NEAR(dw[i], slope(complex_x, stepped), 1e-12);
  }
}

struct Results {
  std::vector<float> y, dx, dw;
};

Results all_forms(CpuStream& stream, DType dtype, DType result, const Shape& s, std::int64_t gap) {
  const Weight w(stream, dtype, s.out, s.in, random_values(s.out * s.in, 2));
  const Matrix x(dtype, s.rows, s.in, random_values(s.rows * s.in, 1), gap);
  const Matrix dy(dtype, s.rows, s.out, random_values(s.rows * s.out, 3), gap);
  const Matrix y(result, s.rows, s.out, gap);
  const Matrix dx(result, s.rows, s.in, gap);
  const Matrix dw(DType::kF32, s.out, s.in);
  run(stream, MatmulForward{y.view(), x.view(), w.get()});
  run(stream, MatmulBackwardInput{dx.view(), dy.view(), w.get()});
  run(stream, MatmulBackwardWeight{dw.view(), dy.view(), x.view()});
  EXPECT_TRUE(y.gaps_untouched());
  EXPECT_TRUE(dx.gaps_untouched());
  return {y.values(), dx.values(), dw.values()};
}

TEST(Matmul, MatchesTheReferenceOnEveryInstructionSet) {
  for (const Shape& s : kShapes) {
    const auto x = wide(random_values(s.rows * s.in, 1));
    const auto w = wide(random_values(s.out * s.in, 2));
    const auto dy = wide(random_values(s.rows * s.out, 3));
    const auto y = ref::matmul_forward(x, w, s.rows, s.out, s.in);
    const auto dx = ref::matmul_backward_input(dy, w, s.rows, s.out, s.in);
    const auto dw = ref::matmul_backward_weight(dy, x, s.rows, s.out, s.in);
    for (const Isa isa : available_isas()) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        CpuStream stream(1, isa);
        const DType result = s.rows % 2 == 0 ? DType::kF32 : dtype;
        const Results got = all_forms(stream, dtype, result, s, s.rows % 3);
        const std::string what =
            concat(name_of(isa), " ", name_of(dtype), " ", s.rows, "x", s.out, "x", s.in);
        expect_near(got.y, y, tolerance(s.in, result), what + " y");
        expect_near(got.dx, dx, tolerance(s.out, result), what + " dx");
        expect_near(got.dw, dw, tolerance(s.rows, DType::kF32), what + " dw");
      }
    }
  }
}

TEST(Matmul, BitsDoNotDependOnThreads) {
  for (const Isa isa : available_isas()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const Shape s{101, 97, 1301};
      CpuStream one(1, isa);
      const Results want = all_forms(one, dtype, dtype, s, 0);
      for (const int threads : {2, 3}) {
        CpuStream stream(threads, isa);
        const Results got = all_forms(stream, dtype, dtype, s, 0);
        EXPECT_EQ(got.y, want.y);
        EXPECT_EQ(got.dx, want.dx);
        EXPECT_EQ(got.dw, want.dw);
      }
    }
  }
}

TEST(Matmul, ARowsBitsDoNotDependOnTheOtherRows) {
  const std::int64_t out = 131, in = 1100;
  const auto values = random_values(200 * in, 7);
  const auto gradients = random_values(200 * out, 8);
  for (const Isa isa : available_isas()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CpuStream stream(1, isa);
      const Weight w(stream, dtype, out, in, random_values(out * in, 2));
      const auto rows = [&](std::int64_t count) {
        const Matrix x(dtype, count, in, values);
        const Matrix dy(dtype, count, out, gradients);
        const Matrix y(DType::kF32, count, out);
        const Matrix dx(DType::kF32, count, in);
        run(stream, MatmulForward{y.view(), x.view(), w.get()});
        run(stream, MatmulBackwardInput{dx.view(), dy.view(), w.get()});
        auto both = y.values();
        both.resize(at(6 * out));
        const auto more = dx.values();
        both.insert(both.end(), more.begin(), more.begin() + 6 * in);
        return both;
      };
      EXPECT_EQ(rows(6), rows(200));
    }
  }
}

// The sum is finished before it is added: fl(dw + sum), on every block of depth.
TEST(Matmul, AddsTheWholeSumOnce) {
  for (const Isa isa : available_isas()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CpuStream stream(2, isa);
      const Shape s{1500, 50, 9};
      const Matrix x(dtype, s.rows, s.in, random_values(s.rows * s.in, 1));
      const Matrix dy(dtype, s.rows, s.out, random_values(s.rows * s.out, 3));
      const auto before = random_values(s.out * s.in, 4);
      const Matrix sum(DType::kF32, s.out, s.in);
      const Matrix dw(DType::kF32, s.out, s.in, before);
      run(stream, MatmulBackwardWeight{sum.view(), dy.view(), x.view()});
      run(stream, MatmulBackwardWeight{dw.view(), dy.view(), x.view(), Accumulate::kAdd});
      auto want = sum.values();
      for (std::size_t i = 0; i < want.size(); ++i) want[i] = before[i] + want[i];
      EXPECT_EQ(dw.values(), want);

      const Weight w(stream, dtype, s.out, s.in, random_values(s.out * s.in, 2));
      const auto residual = random_values(s.rows * s.in, 5);
      const Matrix plain(DType::kF32, s.rows, s.in);
      const Matrix dx(DType::kF32, s.rows, s.in, residual);
      run(stream, MatmulBackwardInput{plain.view(), dy.view(), w.get()});
      run(stream, MatmulBackwardInput{dx.view(), dy.view(), w.get(), Accumulate::kAdd});
      want = plain.values();
      for (std::size_t i = 0; i < want.size(); ++i) want[i] = residual[i] + want[i];
      EXPECT_EQ(dx.values(), want);
    }
  }
}

TEST(Matmul, RoundsTheMasterWeightToNearestEven) {
  for (const Isa isa : available_isas()) {
    CpuStream stream(1, isa);
    const float half_way = 1 + std::ldexp(1.0F, -8);  // between 1 and 1 + 2^-7: to the even 1
    const float above = half_way + std::ldexp(1.0F, -20);
    const Weight w(stream, DType::kBF16, 1, 2, {half_way, above});
    const Matrix x(DType::kBF16, 2, 2, {1, 0, 0, 1});
    const Matrix y(DType::kF32, 2, 1);
    run(stream, MatmulForward{y.view(), x.view(), w.get()});
    EXPECT_EQ(y.values(), (std::vector<float>{1, 1 + std::ldexp(1.0F, -7)}));
    const Matrix dy(DType::kBF16, 1, 1, std::vector<float>{1});
    const Matrix dx(DType::kF32, 1, 2);
    run(stream, MatmulBackwardInput{dx.view(), dy.view(), w.get()});
    EXPECT_EQ(dx.values(), (std::vector<float>{1, 1 + std::ldexp(1.0F, -7)}));
  }
}

TEST(Matmul, AllocatesNothingTheSecondTime) {
  CpuStream stream(2);
  const Shape s{100, 97, 1301};
  static_cast<void>(all_forms(stream, DType::kBF16, DType::kBF16, s, 0));
  const std::int64_t after = stream.scratch_bytes();
  static_cast<void>(all_forms(stream, DType::kBF16, DType::kBF16, s, 0));
  EXPECT_EQ(stream.scratch_bytes(), after);
}

}  // namespace
}  // namespace lockstep::ops
