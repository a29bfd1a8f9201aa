#include "cli/bench_machine.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <numeric>

#include "cli/spread.h"
#include "engine/kv_cache_size.h"

namespace headway {
namespace {

constexpr int64_t kReadBytes = int64_t{1} << 30;  // by all ranks: far more than any cache
constexpr int kReadings = 3;

bool is_linear(const NamedParameter& named) {
  return named.full_name.ends_with("_proj.weight");
}

bool is_table(const NamedParameter& named) {
  return named.full_name.ends_with("embed_tokens.weight");
}

bool is_lm_head(const NamedParameter& named) {
  return named.full_name.ends_with("lm_head.weight");
}

kernels::LinearReach::Use use_of(const Parameter& weight, int64_t tokens) {
  const bool int8 = weight.scales.defined();
  return {weight.tensor, weight.scales, tokens, int8 ? weight.int8_computes_in : weight.tensor.scalar_type()};
}

/// The LM head, whose weight is the embedding's where the two are tied.
kernels::LinearReach::Use lm_head_use(const CausalLM& model, int64_t tokens) {
  const auto parameters = model.named_parameters();
  auto found = std::find_if(parameters.begin(), parameters.end(), is_lm_head);
  if (found == parameters.end()) found = std::find_if(parameters.begin(), parameters.end(), is_table);
  return use_of(*found->parameter, tokens);
}

std::vector<kernels::LinearReach::Use> layer_uses(const CausalLM& model, int64_t tokens) {
  std::vector<kernels::LinearReach::Use> uses;
  for (const NamedParameter& named : model.named_parameters()) {
    if (is_linear(named)) uses.push_back(use_of(*named.parameter, tokens));
  }
  return uses;
}

}  // namespace

std::vector<double> gather_numbers(double own, const ParallelState& state) {
  const at::Tensor row = at::full({1}, own, at::TensorOptions(at::kDouble).device(state.device()));
  const at::Tensor all = state.world().all_gather(row, 0).to(at::kCPU).contiguous();
  const double* numbers = all.const_data_ptr<double>();
  return {numbers, numbers + all.numel()};
}

RankBytes rank_bytes(const CausalLM& model) {
  const auto parameters = model.named_parameters();
  const bool own_head = std::any_of(parameters.begin(), parameters.end(), is_lm_head);
  RankBytes bytes;
  for (const NamedParameter& named : parameters) {
    if (own_head && is_table(named)) continue;  // a step reads no more than a row of it for each sequence
    bytes.weights += named.parameter->nbytes();
  }
  bytes.kv_per_token = kv_block_bytes(model, 1);
  return bytes;
}

BenchMachine::BenchMachine(const CausalLM& model, const ParallelState& state, const BenchWork& work,
                           int64_t step_tokens)
    : state_(state),
      reading_(kReadBytes / state.world().size()),
      layers_(layer_uses(model, std::min(step_tokens, work.sequences * work.prompt_tokens))),
      lm_head_({lm_head_use(model, work.sequences)}) {
  const auto tokens = static_cast<double>(work.sequences * work.prompt_tokens);
  const double tokens_of_pass = std::min(static_cast<double>(step_tokens), tokens);
  passes_ = tokens / tokens_of_pass;
  layer_ops_ = sum(layers_.operations());
  ops_per_token_ = layer_ops_ / tokens_of_pass + sum(lm_head_.operations()) / static_cast<double>(work.sequences);
}

MachineReach BenchMachine::measure() {
  MachineReach reach;
  reach.read_bytes_per_s = read_bytes_per_s();
  state_.world().barrier();
  const double layers_s = layers_.measure();
  const double lm_head_s = lm_head_.measure();
  reach.linear_ops_per_s = layer_ops_ / slowest(layers_s);
  reach.prefill_linears_s = slowest(passes_ * layers_s + lm_head_s);
  return reach;
}

double BenchMachine::read_bytes_per_s() {
  std::vector<double> readings;
  for (int i = 0; i < kReadings; ++i) {
    state_.world().barrier();
    const std::vector<double> rates = gather_numbers(reading_.measure(), state_);
    readings.push_back(*std::min_element(rates.begin(), rates.end()) * static_cast<double>(rates.size()));
  }
  return spread_of(readings).median;
}

double BenchMachine::slowest(double seconds) const {
  const std::vector<double> all = gather_numbers(seconds, state_);
  return *std::max_element(all.begin(), all.end());
}

double BenchMachine::sum(double value) const {
  const std::vector<double> all = gather_numbers(value, state_);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace headway
