#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "headway/base/error.h"
#include "unit/kernels/attention_case.h"
#include "unit/kernels/backend.h"
#include "unit/kernels/reference.h"

namespace headway::kernels {
namespace {

std::vector<HeadRun> runs_of(const std::vector<int64_t>& lengths) {
  std::vector<HeadRun> runs;
  int64_t begin = 0;
  for (int64_t length : lengths) {
    runs.push_back({.q_heads = {begin, begin + length}, .kv_head = static_cast<int64_t>(runs.size())});
    begin += length;
  }
  return runs;
}

class Attention : public KernelTest {
 protected:
  /// The operator over a scattered cache against the definition over each sequence alone.
  void expect_definition(const std::vector<SequenceLengths>& sequences, const std::vector<HeadRun>& runs,
                         int64_t head_dim, int64_t block_size, const AttentionOptions& attention) {
    const auto [batch, blocks] = BatchCase::of(sequences, block_size);
    const int64_t kv_heads = static_cast<int64_t>(runs.size());
    const KVCacheView cache = {random({blocks, block_size, kv_heads, head_dim}),
                               random({blocks, block_size, kv_heads, head_dim})};
    // Query heads are columns of a wider projection, as they are in a model: rows are strided.
    const at::Tensor wide = random({batch.num_tokens(), (runs.back().q_heads.end + 2 * kv_heads) * head_dim});
    const at::Tensor q = wide.narrow(1, 0, runs.back().q_heads.end * head_dim).view({batch.num_tokens(), -1, head_dim});
    const at::Tensor output = backend().paged_attention(q, cache, batch, runs, attention);
    ASSERT_EQ(output.sizes(), q.sizes());
    for (int64_t s = 0; s < batch.num_sequences(); ++s) {
      SCOPED_TRACE(testing::Message() << "sequence " << s << ": " << batch.query_length(s) << " of "
                                      << batch.context_lengths[s]);
      const auto part = [&](const at::Tensor& t) { return t.narrow(0, batch.query_starts[s], batch.query_length(s)); };
      expect_close(part(output), reference::attention(part(q), context(cache.keys, batch, s),
                                                      context(cache.values, batch, s), runs, attention));
    }
  }

  static at::Tensor context(const at::Tensor& cache, const AttentionBatch& batch, int64_t sequence) {
    const int64_t length = batch.context_lengths[sequence];
    at::Tensor result = at::empty({length, cache.size(2), cache.size(3)}, cache.options());
    for (int64_t t = 0; t < length; ++t) {
      result.select(0, t).copy_(cache[batch.block_tables[sequence][t / cache.size(1)]][t % cache.size(1)]);
    }
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, Attention, all_backends(), name_of_case);

TEST_P(Attention, DecodeOverUnequalContexts) {
  for (int64_t head_dim : {4, 16, 64, 80}) {
    SCOPED_TRACE(testing::Message() << "head_dim " << head_dim);
    expect_definition({{1, 1}, {1, 17}, {1, 40}}, runs_of({2, 2}), head_dim, 8, {.scale = 1 / std::sqrt(head_dim)});
  }
}

TEST_P(Attention, UnevenRunsOfQueryHeads) {
  for (const std::vector<int64_t>& lengths : std::vector<std::vector<int64_t>>{{3, 1}, {2, 3}, {1}, {7}, {9, 0, 2}}) {
    expect_definition({{1, 23}, {5, 9}}, runs_of(lengths), 16, 4, {.scale = 0.25});
  }
}

TEST_P(Attention, PrefillWholeAndInChunks) {
  expect_definition({{13, 13}, {5, 31}, {1, 18}, {30, 33}}, runs_of({3, 1}), 16, 16, {.scale = 0.25});
}

TEST_P(Attention, LongContexts) {
  expect_definition({{1, 1300}, {3, 700}}, runs_of({7, 7}), 64, 16, {.scale = 0.125});
  expect_definition({{150, 200}}, runs_of({3, 2}), 64, 16, {.scale = 0.125});
}

TEST_P(Attention, SlidingWindow) {
  for (int64_t window : {1, 3, 8, 100}) {
    SCOPED_TRACE(testing::Message() << "window " << window);
    expect_definition({{1, 40}, {9, 9}, {6, 25}}, runs_of({2, 1}), 8, 4, {.scale = 0.3, .sliding_window = window});
  }
  expect_definition({{1, 1300}, {70, 900}}, runs_of({2, 1}), 8, 16, {.scale = 0.3, .sliding_window = 530});
}

// Fault case D01.
TEST_P(Attention, LargeScoresDoNotOverflow) {
  const auto [batch, blocks] = BatchCase::of({{1, 5}, {3, 3}}, 4);
  const KVCacheView cache = {at::full({blocks, 4, 1, 16}, 400, options()), random({blocks, 4, 1, 16})};
  const at::Tensor q = at::full({4, 2, 16}, 400, options());
  const at::Tensor output = backend().paged_attention(q, cache, batch, runs_of({2}), {.scale = 0.25});
  const at::Tensor expected = reference::attention(q.narrow(0, 0, 1), context(cache.keys, batch, 0),
                                                   context(cache.values, batch, 0), runs_of({2}), {.scale = 0.25});
  expect_close(output.narrow(0, 0, 1), expected);
  EXPECT_LT((output.narrow(0, 0, 1).to(at::kCPU, at::kDouble).sub(expected)).abs().max().item<double>(), 1e-2);
  EXPECT_TRUE(output.isfinite().all().item<bool>());
}

TEST_P(Attention, SequencesWithoutNewTokens) {
  expect_definition({{0, 5}, {2, 6}, {0, 3}}, runs_of({2}), 8, 4, {.scale = 0.3});
  const auto [batch, blocks] = BatchCase::of({}, 4);
  const KVCacheView cache = {random({1, 4, 1, 8}), random({1, 4, 1, 8})};
  EXPECT_EQ(backend().paged_attention(random({0, 2, 8}), cache, batch, runs_of({2}), {}).sizes(),
            at::IntArrayRef({0, 2, 8}));
}

TEST_P(Attention, WritesTokensToTheirSlots) {
  const auto [batch, blocks] = BatchCase::of({{2, 6}, {1, 9}}, 4);
  const KVCacheView cache = {random({blocks, 4, 2, 5}), random({blocks, 4, 2, 5})};
  at::Tensor keys = cache.keys.clone(), values = cache.values.clone();
  const at::Tensor projected = random({3, 20});  // K and V beside each other: rows are strided
  const at::Tensor k = projected.narrow(1, 0, 10).view({3, 2, 5}), v = projected.narrow(1, 10, 10).view({3, 2, 5});
  for (int64_t token = 0; token < 3; ++token) {
    keys.view({-1, 2, 5}).select(0, batch.slots[token]).copy_(k[token]);
    values.view({-1, 2, 5}).select(0, batch.slots[token]).copy_(v[token]);
  }
  backend().write_kv_cache(k, v, cache, batch);
  EXPECT_TRUE(at::equal(cache.keys, keys));
  EXPECT_TRUE(at::equal(cache.values, values));
}

TEST_P(Attention, RefusesIndicesOutsideTheCache) {
  auto [batch, blocks] = BatchCase::of({{1, 6}}, 4);
  const KVCacheView cache = {random({blocks, 4, 1, 8}), random({blocks, 4, 1, 8})};
  const at::Tensor q = random({1, 2, 8});
  EXPECT_THROW(kernels::paged_attention(q, cache, batch, runs_of({1}), {}), ArgumentError);
  EXPECT_THROW(kernels::paged_attention(q, cache, batch, runs_of({1, 1}), {}), ArgumentError);
  EXPECT_THROW(kernels::paged_attention(q, cache, batch, runs_of({2}), {.sliding_window = 0}), ArgumentError);
  batch.block_tables[0][1] = static_cast<int32_t>(blocks);
  EXPECT_THROW(kernels::paged_attention(q, cache, batch, runs_of({2}), {}), ArgumentError);
  batch.slots[0] = blocks * 4;
  EXPECT_THROW(kernels::write_kv_cache(random({1, 1, 8}), random({1, 1, 8}), cache, batch), ArgumentError);
}

}  // namespace
}  // namespace headway::kernels
