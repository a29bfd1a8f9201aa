#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include <atomic>

#include "headway/kernels/linear_handover.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tensors.h"
#include "kernels/thread_pool.h"

namespace headway::kernels {
namespace {

LinearHandover current_handover;

}  // namespace

void set_linear_handover(const LinearHandover& handover) {
  current_handover = handover;
}
LinearHandover linear_handover() {
  return current_handover;
}

namespace cpu {
namespace {

// Reading less than this of the weights is not worth another thread.
constexpr int64_t bytes_per_thread = 16 * 1024;

int64_t handover_tokens(at::ScalarType dtype) {
  if (dtype == at::kFloat) return current_handover.fp32_tokens;
  return dtype == at::kBFloat16 ? current_handover.bf16_tokens : current_handover.fp16_tokens;
}

struct Inputs {
  const void* data;
  int64_t stride;
};

/// The rows of x as the kernels want them: themselves, or converted to fp32 in a buffer of this thread.
Inputs inputs_for(const simd::KernelTable& kernels, const at::Tensor& x) {
  if (kernels.linear_takes_elements) return {x.const_data_ptr(), x.stride(0)};
  thread_local Scratch scratch;
  const int64_t in = x.size(1);
  float* converted = scratch.floats(x.size(0) * in);
  for (int64_t token = 0; token < x.size(0); ++token) {
    kernels.to_float(element_at(x, token * x.stride(0)), converted + token * in, in);
  }
  return {converted, in};
}

at::Tensor streamed_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const simd::KernelTable& kernels = kernels_for(x.scalar_type());
  const Inputs inputs = inputs_for(kernels, x);
  const int64_t out = weight.size(0);
  at::Tensor output = at::empty({x.size(0), out}, x.options());
  const simd::LinearCall call = {.weight = weight.const_data_ptr(),
                                 .in = x.size(1),
                                 .inputs = inputs.data,
                                 .input_stride = inputs.stride,
                                 .tokens = x.size(0),
                                 .bias = bias.defined() ? bias.const_data_ptr() : nullptr,
                                 .output = output.mutable_data_ptr(),
                                 .output_stride = out};
  const int64_t row_bytes = x.size(1) * static_cast<int64_t>(x.element_size());
  parallel_for(out, bytes_per_thread / row_bytes + 1, 4,
               [&](Range rows) { kernels.linear(call, rows.begin, rows.end); });
  return output;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (x.size(0) < handover_tokens(x.scalar_type())) {
    return streamed_linear(with_dense_rows(x), weight.contiguous(), bias.defined() ? bias.contiguous() : bias);
  }
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

}  // namespace cpu
}  // namespace headway::kernels
