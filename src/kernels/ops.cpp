#include "kernels/ops.h"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "base/trace.h"
#include "headway/base/error.h"
#include "kernels/checks.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cuda/cuda_ops.h"

namespace headway::kernels {
namespace {

void check_norm(const char* op, const at::Tensor& x, const at::Tensor& weight) {
  check_tensor(op, "x", x, 2);
  check_tensor(op, "weight", weight, 1);
  check_same_kind(op, "weight", weight, x);
  check_size(op, "weight", weight, 0, x.size(1));
}

void check_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  check_size("linear", "weight", weight, 1, x.size(1));
  if (!bias.defined()) return;
  check_tensor("linear", "bias", bias, 1);
  check_same_kind("linear", "bias", bias, x);
  check_size("linear", "bias", bias, 0, weight.size(0));
}

/// `on` is a tensor of the device where the operator runs.
void check_int8(const char* op, const Int8Matrix& weight, const at::Tensor& on) {
  const bool dense = weight.values.defined() && weight.values.dim() == 2 && weight.values.scalar_type() == at::kChar;
  const bool scaled = weight.scales.defined() && weight.scales.dim() == 1 && weight.scales.scalar_type() == at::kFloat;
  if (!dense || !scaled || weight.scales.size(0) != weight.values.size(0)) {
    throw ArgumentError(fmt::format("{}: an int8 weight is a matrix of int8 and a vector of one fp32 scale a row", op));
  }
  if (!on.is_cpu() || !weight.values.is_cpu() || !weight.scales.is_cpu()) {
    throw ArgumentError(fmt::format("{}: int8 weights are for the CPU", op));
  }
}

void check_ids(const char* op, const at::Tensor& ids) {
  if (ids.defined() && ids.dim() == 1 && ids.scalar_type() == at::kLong) return;
  throw ArgumentError(fmt::format("{}: ids must be int64 of one dimension", op));
}

bool has_no_products(const at::Tensor& x, const at::Tensor& weight) {
  return x.size(0) == 0 || weight.size(0) == 0 || x.size(1) == 0;
}

at::Tensor without_products(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (bias.defined()) return bias.expand({x.size(0), weight.size(0)}).contiguous();
  return at::zeros({x.size(0), weight.size(0)}, x.options());
}

void check_cache(const char* op, const KVCacheView& cache, const at::Tensor& like) {
  check_tensor(op, "keys", cache.keys, 4);
  check_tensor(op, "values", cache.values, 4);
  check_same_kind(op, "keys", cache.keys, like);
  check_same_kind(op, "values", cache.values, like);
  for (int64_t dim = 0; dim < 4; ++dim) check_size(op, "values", cache.values, dim, cache.keys.size(dim));
  if (!cache.keys.is_contiguous() || !cache.values.is_contiguous()) {
    throw ArgumentError(fmt::format("{}: the KV cache must be contiguous", op));
  }
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  check_tensor("linear", "x", x, 2);
  check_tensor("linear", "weight", weight, 2);
  check_same_kind("linear", "weight", weight, x);
  check_linear(x, weight, bias);
  const TraceSpan span([&] { return fmt::format("linear {} -> {}", x.size(1), weight.size(0)); });
  if (has_no_products(x, weight)) return without_products(x, weight, bias);
  return x.is_cuda() ? cuda::linear(x, weight, bias) : cpu::linear(x, weight, bias);
}

at::Tensor linear(const at::Tensor& x, const Int8Matrix& weight, const at::Tensor& bias) {
  check_tensor("linear", "x", x, 2);
  check_int8("linear", weight, x);
  check_linear(x, weight.values, bias);
  const TraceSpan span([&] { return fmt::format("linear {} -> {} int8", x.size(1), weight.values.size(0)); });
  if (has_no_products(x, weight.values)) return without_products(x, weight.values, bias);
  return cpu::linear(x, weight, bias);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const TraceSpan span([] { return "rms_norm"; });
  check_norm("rms_norm", x, weight);
  return x.is_cuda() ? cuda::rms_norm(x, weight, eps) : cpu::rms_norm(x, weight, eps);
}

at::Tensor add_rms_norm(const at::Tensor& x, at::Tensor& residual, const at::Tensor& weight, double eps) {
  const TraceSpan span([] { return "add_rms_norm"; });
  check_norm("add_rms_norm", x, weight);
  check_tensor("add_rms_norm", "residual", residual, 2);
  check_same_kind("add_rms_norm", "residual", residual, x);
  check_size("add_rms_norm", "residual", residual, 0, x.size(0));
  check_size("add_rms_norm", "residual", residual, 1, x.size(1));
  return x.is_cuda() ? cuda::add_rms_norm(x, residual, weight, eps) : cpu::add_rms_norm(x, residual, weight, eps);
}

at::Tensor silu_and_mul(const at::Tensor& gate_up) {
  const TraceSpan span([] { return "silu_and_mul"; });
  check_tensor("silu_and_mul", "gate_up", gate_up, 2);
  if (gate_up.size(1) % 2 != 0) {
    throw ArgumentError(fmt::format("silu_and_mul: {} columns are not a gate and an up half", gate_up.size(1)));
  }
  return gate_up.is_cuda() ? cuda::silu_and_mul(gate_up) : cpu::silu_and_mul(gate_up);
}

void rotary_embedding(at::Tensor heads, const at::Tensor& cos_sin, const std::vector<int64_t>& positions) {
  const TraceSpan span([] { return "rotary_embedding"; });
  check_tensor("rotary_embedding", "heads", heads, 3);
  check_tensor("rotary_embedding", "cos_sin", cos_sin, 2);
  check_size("rotary_embedding", "cos_sin", cos_sin, 1, heads.size(2));
  check_size("rotary_embedding", "heads", heads, 0, static_cast<int64_t>(positions.size()));
  if (cos_sin.scalar_type() != at::kFloat || !cos_sin.is_contiguous() || heads.size(2) % 2 != 0) {
    throw ArgumentError(
        fmt::format("rotary_embedding: cos_sin must be contiguous fp32 and head_dim {} even", heads.size(2)));
  }
  for (int64_t position : positions) {
    if (position < 0 || position >= cos_sin.size(0)) {
      throw ArgumentError(
          fmt::format("rotary_embedding: position {} is outside the table of {}", position, cos_sin.size(0)));
    }
  }
  heads.is_cuda() ? cuda::rotary_embedding(heads, cos_sin, positions)
                  : cpu::rotary_embedding(heads, cos_sin, positions);
}

void write_kv_cache(const at::Tensor& k, const at::Tensor& v, const KVCacheView& cache, const AttentionBatch& batch) {
  const TraceSpan span([] { return "write_kv_cache"; });
  constexpr const char* op = "write_kv_cache";
  check_tensor(op, "k", k, 3);
  check_tensor(op, "v", v, 3);
  check_same_kind(op, "v", v, k);
  check_cache(op, cache, k);
  for (const at::Tensor* tensor : {&k, &v}) {
    const char* name = tensor == &k ? "k" : "v";
    check_size(op, name, *tensor, 0, static_cast<int64_t>(batch.slots.size()));
    check_size(op, name, *tensor, 1, cache.keys.size(2));
    check_size(op, name, *tensor, 2, cache.keys.size(3));
  }
  const int64_t slots = cache.keys.size(0) * cache.block_size();
  for (int64_t slot : batch.slots) {
    if (slot < 0 || slot >= slots) throw ArgumentError(fmt::format("{}: slot {} of {}", op, slot, slots));
  }
  k.is_cuda() ? cuda::write_kv_cache(k, v, cache, batch) : cpu::write_kv_cache(k, v, cache, batch);
}

at::Tensor paged_attention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                           const std::vector<HeadRun>& runs, const AttentionOptions& options) {
  const TraceSpan span([] { return "paged_attention"; });
  constexpr const char* op = "paged_attention";
  check_tensor(op, "q", q, 3);
  check_cache(op, cache, q);
  check_size(op, "q", q, 0, batch.num_tokens());
  check_size(op, "q", q, 2, cache.keys.size(3));
  check_batch(op, batch, cache);
  check_runs(op, runs, q.size(1), cache);
  if (options.sliding_window && *options.sliding_window < 1) {
    throw ArgumentError(fmt::format("{}: a sliding window of {}", op, *options.sliding_window));
  }
  return q.is_cuda() ? cuda::paged_attention(q, cache, batch, runs, options)
                     : cpu::paged_attention(q, cache, batch, runs, options);
}

at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight, Range rows) {
  const TraceSpan span([] { return "embedding"; });
  check_tensor("embedding", "weight", weight, 2);
  check_size("embedding", "weight", weight, 0, rows.size());
  check_ids("embedding", ids);
  if (ids.device() != weight.device()) throw ArgumentError("embedding: ids must be on the device of the weight");
  return weight.is_cuda() ? cuda::embedding(ids, weight, rows) : cpu::embedding(ids, weight, rows);
}

at::Tensor embedding(const at::Tensor& ids, const Int8Matrix& weight, Range rows, at::ScalarType dtype) {
  const TraceSpan span([] { return "embedding int8"; });
  check_ids("embedding", ids);
  check_int8("embedding", weight, ids);
  check_size("embedding", "weight", weight.values, 0, rows.size());
  return cpu::embedding(ids, weight, rows, dtype);
}

}  // namespace headway::kernels
