#include <benchmark/benchmark.h>

#include <map>

#include "headway/kernels/linear_handover.h"
#include "kernels/against_reading.h"
#include "kernels/model_shapes.h"
#include "kernels/ops.h"

namespace headway::benchmarks {
namespace {

const std::vector<at::Tensor>& weights_of(at::ScalarType dtype) {
  static std::map<at::ScalarType, std::vector<at::Tensor>> weights;
  auto& result = weights[dtype];
  if (result.empty()) result = model_linears(dtype);
  return result;
}

void run_linears(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& inputs) {
  for (size_t i = 0; i < weights.size(); ++i) benchmark::DoNotOptimize(kernels::linear(inputs[i], weights[i]));
}

std::vector<at::Tensor> inputs_for(const std::vector<at::Tensor>& weights, int64_t tokens) {
  std::map<int64_t, at::Tensor> by_width;
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& weight : weights) {
    at::Tensor& input = by_width[weight.size(1)];
    if (!input.defined()) input = activations({tokens, weight.size(1)}, weight.scalar_type());
    inputs.push_back(input);
  }
  return inputs;
}

/// All linears of one forward for a few tokens. Arguments: dtype, tokens, tokens from which ATen takes over.
void DecodeLinears(benchmark::State& state) {
  const auto dtype = static_cast<at::ScalarType>(state.range(0));
  const auto& weights = weights_of(dtype);
  const auto inputs = inputs_for(weights, state.range(1));
  const kernels::LinearHandover before = kernels::linear_handover();
  kernels::set_linear_handover({state.range(2), state.range(2), state.range(2)});
  run_against_reading(state, static_cast<double>(bytes_of(weights)), [&] { run_linears(weights, inputs); });
  kernels::set_linear_handover(before);
}

void decode_arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"dtype", "tokens", "handover"});
  for (at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kHalf}) {
    for (int64_t tokens : {1, 2, 4, 8, 16, 32, 64}) {
      for (int64_t handover : {1000, 1}) benchmark->Args({static_cast<int64_t>(dtype), tokens, handover});
    }
  }
}
BENCHMARK(DecodeLinears)->Apply(decode_arguments)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(9);

/// One shape for a prefill's tokens. Arguments: tokens, in, out.
void PrefillLinear(benchmark::State& state) {
  const at::Tensor weight = activations({state.range(2), state.range(1)}, at::kBFloat16);
  const at::Tensor x = activations({state.range(0), state.range(1)}, at::kBFloat16);
  for (auto _ : state) benchmark::DoNotOptimize(kernels::linear(x, weight));
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(state.range(0) * state.range(1) * state.range(2)),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(PrefillLinear)
    ->ArgNames({"tokens", "in", "out"})
    ->ArgsProduct({{512}, {896}, {896, 1152, 9728}})
    ->Args({512, 4864, 896})
    ->UseRealTime();

}  // namespace
}  // namespace headway::benchmarks
