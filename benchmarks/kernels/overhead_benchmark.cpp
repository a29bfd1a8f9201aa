#include <ATen/ops/empty.h>
#include <benchmark/benchmark.h>

#include "kernels/model_shapes.h"
#include "kernels/ops.h"
#include "kernels/thread_pool.h"

namespace headway::benchmarks {
namespace {

void ParallelRegion(benchmark::State& state) {
  kernels::ThreadPool& pool = kernels::thread_pool();
  for (auto _ : state) pool.run(pool.threads(), [](int64_t part) { benchmark::DoNotOptimize(part); });
}
BENCHMARK(ParallelRegion)->UseRealTime();

void RmsNorm(benchmark::State& state) {
  const at::Tensor x = activations({state.range(0), 896}, at::kBFloat16), weight = activations({896}, at::kBFloat16);
  for (auto _ : state) benchmark::DoNotOptimize(kernels::rms_norm(x, weight, 1e-6));
}
BENCHMARK(RmsNorm)->ArgName("tokens")->Arg(1)->Arg(8)->Arg(512)->UseRealTime();

void AddRmsNorm(benchmark::State& state) {
  const at::Tensor x = activations({state.range(0), 896}, at::kBFloat16), weight = activations({896}, at::kBFloat16);
  at::Tensor residual = activations({state.range(0), 896}, at::kBFloat16);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernels::add_rms_norm(x, residual, weight, 1e-6));
  }
}
BENCHMARK(AddRmsNorm)->ArgName("tokens")->Arg(1)->Arg(8)->Arg(512)->UseRealTime();

void SiluAndMul(benchmark::State& state) {
  const at::Tensor gate_up = activations({state.range(0), 9728}, at::kBFloat16);
  for (auto _ : state) benchmark::DoNotOptimize(kernels::silu_and_mul(gate_up));
}
BENCHMARK(SiluAndMul)->ArgName("tokens")->Arg(1)->Arg(8)->Arg(512)->UseRealTime();

void RotaryEmbedding(benchmark::State& state) {
  at::Tensor heads = activations({state.range(0), q_heads + kv_heads, head_dim}, at::kBFloat16);
  const at::Tensor cos_sin = activations({1024, head_dim}, at::kFloat);
  const std::vector<int64_t> positions(state.range(0), 1000);
  for (auto _ : state) kernels::rotary_embedding(heads, cos_sin, positions);
}
BENCHMARK(RotaryEmbedding)->ArgName("tokens")->Arg(1)->Arg(8)->Arg(512)->UseRealTime();

}  // namespace
}  // namespace headway::benchmarks
