#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cmath>

#include "headway/kernels/linear_handover.h"
#include "headway/kernels/threads.h"
#include "unit/kernels/attention_case.h"
#include "unit/kernels/backend.h"
#include "unit/kernels/reference.h"

namespace headway::kernels {
namespace {

/// What the CPU kernels promise: the same bits for any number of threads, and for any company in the batch.
class Determinism : public KernelTest {
 protected:
  void TearDown() override { set_num_threads(1); }

  template <typename Operator>
  void expect_equal_over_threads(const Operator& op) {
    set_num_threads(1);
    const at::Tensor expected = op();
    for (int threads : {2, 3}) {
      set_num_threads(threads);
      for (int repetition = 0; repetition < 3; ++repetition) {
        EXPECT_TRUE(at::equal(op(), expected)) << threads << " threads";
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, Determinism, cpu_backend(), name_of_case);

const std::vector<HeadRun> runs = {{.q_heads = {0, 3}, .kv_head = 0}, {.q_heads = {3, 4}, .kv_head = 1}};

TEST_P(Determinism, LinearOverThreads) {
  for (int64_t tokens : {1, 7, 16}) {
    const at::Tensor x = random({tokens, 611}), weight = random({1030, 611}, 0.05), bias = random({1030});
    expect_equal_over_threads([&] { return linear(x, weight, bias); });
  }
}

TEST_P(Determinism, LinearOverCompanyInTheBatch) {
  const at::Tensor x = random({16, 1500}), weight = random({37, 1500}, 0.05);
  const at::Tensor alone = linear(x.narrow(0, 0, 1), weight);
  for (int64_t tokens = 2; tokens <= x.size(0); ++tokens) {
    const at::Tensor first = linear(x.narrow(0, 0, tokens), weight).narrow(0, 0, 1);
    EXPECT_TRUE(at::equal(first, alone)) << tokens << " tokens";
    const at::Tensor last = linear(x.narrow(0, x.size(0) - tokens, tokens), weight).narrow(0, tokens - 1, 1);
    EXPECT_TRUE(at::equal(last, linear(x.narrow(0, x.size(0) - 1, 1), weight))) << tokens << " tokens";
  }
}

TEST_P(Determinism, ElementwiseOverThreads) {
  const at::Tensor x = random({203, 302}), weight = random({302}), wide = random({203, 4 * 16});
  expect_equal_over_threads([&] { return rms_norm(x, weight, 1e-6); });
  expect_equal_over_threads([&] { return silu_and_mul(x); });
  expect_equal_over_threads([&] {
    at::Tensor residual = x.clone();
    add_rms_norm(x, residual, weight, 1e-6);
    return residual;
  });
}

TEST_P(Determinism, AttentionOverThreadsAndCompany) {
  const auto [batch, blocks] = BatchCase::of({{1, 1100}, {200, 230}, {1, 3}, {7, 90}, {1, 300}}, 16);
  const KVCacheView cache = {random({blocks, 16, 2, 24}), random({blocks, 16, 2, 24})};
  const at::Tensor q = random({batch.num_tokens(), 4, 24});
  for (std::optional<int64_t> window : {std::optional<int64_t>(), std::optional<int64_t>(270)}) {
    const AttentionOptions options = {.scale = 0.2, .sliding_window = window};
    expect_equal_over_threads([&] { return paged_attention(q, cache, batch, runs, options); });
    const at::Tensor together = paged_attention(q, cache, batch, runs, options);
    for (int64_t s = 0; s < batch.num_sequences(); ++s) {
      const int64_t begin = batch.query_starts[s], length = batch.query_length(s);
      AttentionBatch alone;
      alone.positions.assign(batch.positions.begin() + begin, batch.positions.begin() + begin + length);
      alone.slots.assign(batch.slots.begin() + begin, batch.slots.begin() + begin + length);
      alone.query_starts = {0, length};
      alone.context_lengths = {batch.context_lengths[s]};
      alone.block_tables = {batch.block_tables[s]};
      const at::Tensor output = paged_attention(q.narrow(0, begin, length), cache, alone, runs, options);
      EXPECT_TRUE(at::equal(output, together.narrow(0, begin, length))) << "sequence " << s;
    }
  }
}

TEST_P(Determinism, PrefillInChunksEqualsPrefillAtOnce) {
  const auto [batch, blocks] = BatchCase::of({{180, 180}}, 16);
  const KVCacheView cache = {random({blocks, 16, 2, 24}), random({blocks, 16, 2, 24})};
  const at::Tensor q = random({180, 4, 24});
  const at::Tensor whole = paged_attention(q, cache, batch, runs, {.scale = 0.2});
  for (int64_t begin = 0; begin < 180; begin += 60) {
    AttentionBatch chunk = batch;
    chunk.positions.assign(batch.positions.begin() + begin, batch.positions.begin() + begin + 60);
    chunk.slots.assign(batch.slots.begin() + begin, batch.slots.begin() + begin + 60);
    chunk.query_starts = {0, 60};
    chunk.context_lengths = {begin + 60};
    const at::Tensor output = paged_attention(q.narrow(0, begin, 60), cache, chunk, runs, {.scale = 0.2});
    EXPECT_TRUE(at::equal(output, whole.narrow(0, begin, 60))) << "chunk at " << begin;
  }
}

class Handover : public Determinism {
 protected:
  void SetUp() override {
    Determinism::SetUp();
    before_ = linear_handover();
  }
  void TearDown() override {
    set_linear_handover(before_);
    Determinism::TearDown();
  }

 private:
  LinearHandover before_;
};
INSTANTIATE_TEST_SUITE_P(Kernels, Handover, cpu_backend(), name_of_case);

TEST_P(Handover, OwnKernelTakesAnyNumberOfTokens) {
  set_linear_handover({.fp32_tokens = 1000, .bf16_tokens = 1000, .fp16_tokens = 1000});
  const at::Tensor x = random({150, 300}), weight = random({203, 300}, 0.05), bias = random({203});
  const at::Tensor together = linear(x, weight, bias);
  expect_close(together, reference::linear(x, weight, bias), 2.0);
  for (int64_t token : {0, 63, 64, 149}) {
    EXPECT_TRUE(at::equal(together.narrow(0, token, 1), linear(x.narrow(0, token, 1), weight, bias))) << token;
  }
  expect_equal_over_threads([&] { return linear(x, weight, bias); });
}

TEST_P(Handover, AtenTakesAnyNumberOfTokensAndThreads) {
  set_linear_handover({.fp32_tokens = 1, .bf16_tokens = 1, .fp16_tokens = 1});
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    for (int64_t tokens : {1, 40}) {
      const at::Tensor x = random({tokens, 300}), weight = random({203, 300}, 0.05), bias = random({203});
      expect_close(linear(x, weight), reference::linear(x, weight, {}), 2.0);
      expect_close(linear(x, weight, bias), reference::linear(x, weight, bias), 2.0);
    }
  }
}

TEST_P(Handover, MeasuringChangesNothingButTheAnswer) {
  set_linear_handover({.fp32_tokens = 7, .bf16_tokens = 8, .fp16_tokens = 9});
  const LinearHandover before = linear_handover();
  const LinearHandover measured = measure_linear_handover(random({64, 96}));
  EXPECT_EQ(linear_handover(), before);
  const auto expect = [&](at::ScalarType type, int64_t tokens, int64_t unmeasured) {
    if (type != dtype()) {
      EXPECT_EQ(tokens, unmeasured);
    } else {
      EXPECT_THAT(tokens, testing::AnyOf(16, 32, 64, 128, 256, INT64_MAX));
    }
  };
  expect(at::kFloat, measured.fp32_tokens, 7);
  expect(at::kBFloat16, measured.bf16_tokens, 8);
  expect(at::kHalf, measured.fp16_tokens, 9);
}

}  // namespace
}  // namespace headway::kernels
