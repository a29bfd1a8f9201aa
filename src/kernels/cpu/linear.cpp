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

/// Whether to ask for weights ahead even when one or two tokens leave the processor's prefetchers time to do so. They
/// read 97% of what the bus gives on Zen 5, and asking costs 4%; Intel's stop at the end of a page of 4 KB.
bool needs_prefetch() {
#if defined(__x86_64__)
  static const bool needed = __builtin_cpu_is("intel");
  return needed;
#else
  return true;
#endif
}

int64_t handover_tokens(at::ScalarType dtype) {
  if (dtype == at::kFloat) return current_handover.fp32_tokens;
  return dtype == at::kBFloat16 ? current_handover.bf16_tokens : current_handover.fp16_tokens;
}

at::Tensor streamed_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const simd::KernelTable& kernels = kernels_for(x.scalar_type());
  thread_local Scratch scratch;
  float* packed = scratch.floats(simd::packed_floats(x.size(0), x.size(1)));
  kernels.pack_inputs(x.const_data_ptr(), x.stride(0), x.size(0), x.size(1), packed);
  const int64_t out = weight.size(0);
  at::Tensor output = at::empty({x.size(0), out}, x.options());
  const simd::LinearCall call = {.weight = weight.const_data_ptr(),
                                 .in = x.size(1),
                                 .packed = packed,
                                 .tokens = x.size(0),
                                 .bias = bias.defined() ? bias.const_data_ptr() : nullptr,
                                 .output = output.mutable_data_ptr(),
                                 .output_stride = out,
                                 .prefetch = needs_prefetch()};
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
