#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace headway::benchmarks {

/// The weights of every linear of a model of the Qwen2-0.5B shape, in one huge-page arena: QKV, attention output,
/// gate-up and down of each layer, then the LM head.
std::vector<at::Tensor> model_linears(at::ScalarType dtype);

inline constexpr int64_t layers = 24;
inline constexpr int64_t q_heads = 14;
inline constexpr int64_t kv_heads = 2;
inline constexpr int64_t head_dim = 64;

int64_t bytes_of(const std::vector<at::Tensor>& tensors);

/// Values of about the size that activations have.
at::Tensor activations(at::IntArrayRef shape, at::ScalarType dtype);

}  // namespace headway::benchmarks
