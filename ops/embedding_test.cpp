#include "ops/embedding.h"

#include <gtest/gtest.h>

#include "ops/ref/embedding.h"
#include "ops/run.h"
#include "ops/test_tensor.h"

namespace lockstep::ops {
namespace {

TEST(Embedding, RefusesWrongShapes) {
  const TestTensor y(DType::kF32, {3, 4});
  const TestTensor tokens(DType::kI32, {3});
  const TestTensor short_tokens(DType::kI32, {2});
  const TestTensor weight(DType::kF32, {5, 4});
  EmbeddingForward op{
      .y = y.view(), .y_rounded = View(), .tokens = tokens.view(), .weight = weight.view()};
  op.check();
  op.tokens = short_tokens.view();
  EXPECT_THROW(op.check(), Error);
  op.tokens = tokens.view();
  op.y_rounded = y.view();
  EXPECT_THROW(op.check(), Error);
  const EmbeddingBackward back{
      .dweight = weight.view(), .tokens = short_tokens.view(), .dy = y.view()};
  EXPECT_THROW(back.check(), Error);
}

TEST(Embedding, NamesATokenOutsideTheVocabulary) {
  const TestTensor y(DType::kF32, {3, 4});
  const TestTensor weight(DType::kF32, {5, 4}, random_values(20, "w"));
  CpuStream stream(1);
  for (const double bad : {-1.0, 5.0}) {
    const TestTensor tokens(DType::kI32, {3}, {4, 0, bad});
    const auto message = [&](const auto& op) -> std::string {
      try {
        run(stream, op);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kData);
        return error.what();
      }
      return "no error";
    };
    const std::string text = concat("tokens[2] = ", bad, ": want 0 to 4;");
    EXPECT_NE(message(EmbeddingForward{.y = y.view(),
                                       .y_rounded = View(),
                                       .tokens = tokens.view(),
                                       .weight = weight.view()})
                  .find("[embedding_forward] " + text),
              std::string::npos);
    EXPECT_NE(message(EmbeddingBackward{
                          .dweight = weight.view(), .tokens = tokens.view(), .dy = y.view()})
                  .find("[embedding_backward] " + text),
              std::string::npos);
  }
}

TEST(Embedding, RefBackwardIsTheComplexStepDerivative) {
  const std::vector<std::int32_t> tokens = {2, 0, 2};
  const auto weight = to_complex(random_values(4 * 3, "w"));
  const auto dy = to_complex(random_values(3 * 3, "dy"));
  const auto grads = ref::embedding_backward(tokens, dy, 4, 3);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const double want = complex_step(
        [&](const std::vector<Complex>& at) {
          const auto y = ref::embedding_forward(tokens, at, 3);
          Complex sum = 0;
          for (std::size_t j = 0; j < y.size(); ++j) sum += dy[j] * y[j];
          return sum;
        },
        weight, i);
    EXPECT_NEAR(grads[i].real(), want, 1e-12);
  }
}

// Exact: the forward copies, the backward adds fp32 in order of n, as the reference in float does.
void compare_with_ref(std::int64_t n, std::int64_t vocab, std::int64_t width) {
  std::vector<double> ids;
  const CounterRng rng(5, "tokens");
  for (std::int64_t i = 0; i < n; ++i) {
    const double u = rng.uniform(static_cast<std::uint64_t>(i));
    ids.push_back(
        static_cast<double>(static_cast<std::int64_t>(u * u * static_cast<double>(vocab))));
  }
  const TestTensor tokens(DType::kI32, {n}, ids);
  const TestTensor weight(DType::kF32, {vocab, width}, random_values(vocab * width, "w"));
  const TestTensor dy(DType::kF32, {n, width}, random_values(n * width, "dy"));
  const auto list = tokens.values<std::int32_t>();
  const auto want =
      ref::embedding_forward(list, weight.values<float>(), static_cast<std::size_t>(width));
  const auto want_grads = ref::embedding_backward(
      list, dy.values<float>(), static_cast<std::size_t>(vocab), static_cast<std::size_t>(width));
  for_each_stream([&](CpuStream& stream) {
    const TestTensor y(DType::kF32, {n, width});
    const TestTensor rounded(DType::kBF16, {n, width});
    const TestTensor alone(DType::kF32, {n, width});
    const TestTensor dweight(DType::kF32, {vocab, width});
    EmbeddingForward op{.y = y.view(),
                        .y_rounded = rounded.view(),
                        .tokens = tokens.view(),
                        .weight = weight.view()};
    run(stream, op);
    op.y = alone.view();
    op.y_rounded = View();
    run(stream, op);
    run(stream,
        EmbeddingBackward{.dweight = dweight.view(), .tokens = tokens.view(), .dy = dy.view()});
    // The sums, complete, are added to what is there.
    const TestTensor sum(DType::kF32, {vocab, width}, random_values(vocab * width, "before"));
    auto want_sum = sum.values<float>();
    for (std::size_t i = 0; i < want_sum.size(); ++i) want_sum[i] += want_grads[i];
    run(stream, EmbeddingBackward{.dweight = sum.view(),
                                  .tokens = tokens.view(),
                                  .dy = dy.view(),
                                  .accumulate = Accumulate::kAdd});
    EXPECT_EQ(sum.values<float>(), want_sum);
    EXPECT_EQ(y.values<float>(), want);
    EXPECT_EQ(alone.values<float>(), want);
    EXPECT_EQ(dweight.values<float>(), want_grads);
    const auto got = rounded.values<float>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], to_float(to_bf16(want[i])));
    }
  });
}

TEST(Embedding, MatchesRefExactlyOnEveryInstructionSetAndAnyThreads) {
  compare_with_ref(1, 1, 1);
  compare_with_ref(7, 3, 9);
  compare_with_ref(127, 50, 8);
  compare_with_ref(500, 4096, 127);
}

}  // namespace
}  // namespace lockstep::ops
