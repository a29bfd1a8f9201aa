#include <ATen/ops/empty.h>
#include <benchmark/benchmark.h>

#include "kernels/against_reading.h"
#include "kernels/model_shapes.h"
#include "kernels/ops.h"

namespace headway::benchmarks {
namespace {

constexpr int64_t block_size = 16;

AttentionBatch batch_of(int64_t sequences, int64_t query, int64_t context) {
  AttentionBatch batch;
  const int64_t blocks = (context + block_size - 1) / block_size;
  batch.query_starts = {0};
  for (int64_t s = 0; s < sequences; ++s) {
    auto& table = batch.block_tables.emplace_back();
    for (int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<int32_t>(s * blocks + b));
    batch.query_starts.push_back(batch.query_starts.back() + query);
    batch.context_lengths.push_back(context);
    for (int64_t t = 0; t < query; ++t) {
      const int64_t position = context - query + t;
      batch.positions.push_back(position);
      batch.slots.push_back(table[position / block_size] * block_size + position % block_size);
    }
  }
  return batch;
}

std::vector<HeadRun> even_runs() {
  std::vector<HeadRun> runs;
  for (int64_t kv = 0; kv < kv_heads; ++kv) {
    runs.push_back({.q_heads = {kv * q_heads / kv_heads, (kv + 1) * q_heads / kv_heads}, .kv_head = kv});
  }
  return runs;
}

struct Layers {
  AttentionBatch batch;
  std::vector<KVCacheView> caches;
  at::Tensor q;

  Layers(int64_t sequences, int64_t query, int64_t context, int64_t count)
      : batch(batch_of(sequences, query, context)) {
    const int64_t blocks = sequences * static_cast<int64_t>(batch.block_tables[0].size());
    for (int64_t layer = 0; layer < count; ++layer) {
      caches.push_back({activations({blocks, block_size, kv_heads, head_dim}, at::kBFloat16),
                        activations({blocks, block_size, kv_heads, head_dim}, at::kBFloat16)});
    }
    q = activations({sequences * query, q_heads, head_dim}, at::kBFloat16);
  }

  void run(const std::vector<HeadRun>& runs) const {
    for (const KVCacheView& cache : caches) {
      benchmark::DoNotOptimize(kernels::paged_attention(q, cache, batch, runs, {.scale = 0.125}));
    }
  }
};

/// One token of each sequence through as many layers as outgrow the caches. Arguments: sequences, context.
void DecodeAttention(benchmark::State& state) {
  const int64_t kv_bytes = state.range(0) * state.range(1) * kv_heads * head_dim * 2 * 2;
  const int64_t count = std::max(layers, (int64_t{256} << 20) / kv_bytes);
  const Layers model(state.range(0), 1, state.range(1), count);
  const auto runs = even_runs();
  run_against_reading(state, static_cast<double>(kv_bytes * count), [&] { model.run(runs); });
  state.counters["us/layer"] = state.counters["us"] / static_cast<double>(count);
}
BENCHMARK(DecodeAttention)
    ->ArgNames({"sequences", "context"})
    ->ArgsProduct({{1, 8}, {128, 512, 4096}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(15);

/// A whole prompt through one layer. Arguments: tokens.
void PrefillAttention(benchmark::State& state) {
  const Layers model(1, state.range(0), state.range(0), 1);
  const auto runs = even_runs();
  for (auto _ : state) model.run(runs);
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(state.range(0) * state.range(0) * q_heads * head_dim),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(PrefillAttention)->ArgName("tokens")->Arg(128)->Arg(512)->Arg(2048)->UseRealTime();

}  // namespace
}  // namespace headway::benchmarks
