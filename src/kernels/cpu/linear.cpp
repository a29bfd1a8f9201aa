#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

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
// Weights that stay in the second-level cache while several groups of tokens pass.
constexpr int64_t resident_bytes = 256 * 1024;
// Packed inputs of a group of tokens that stay there meanwhile.
constexpr int64_t group_bytes = 384 * 1024;
// Fewer columns of the output than this are not worth another thread of ATen's.
constexpr int64_t gemm_columns = 32;
// Rows of int8 that are turned into the inputs' type at a time: they stay in the second-level cache.
constexpr int64_t most_scaled_rows = 128;

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

/// The two kernels of Headway's own that a weight takes.
struct OwnKernels {
  decltype(simd::KernelTable::pack_inputs) pack_inputs;
  decltype(simd::KernelTable::linear) linear;
};

OwnKernels own_kernels(at::ScalarType dtype, bool int8) {
  const simd::KernelTable& kernels = kernels_for(dtype);
  return int8 ? OwnKernels{kernels.pack_int8_inputs, kernels.int8_linear}
              : OwnKernels{kernels.pack_inputs, kernels.linear};
}

/// A weight of the inputs' type, or of int8 with the scales of its rows.
struct Weight {
  at::Tensor values;
  at::Tensor scales;

  bool int8() const { return scales.defined(); }
  const float* scale_data() const { return int8() ? scales.const_data_ptr<float>() : nullptr; }
};

/// The tokens in groups that one LinearCall takes, packed.
std::vector<simd::LinearCall> calls_for(const OwnKernels& kernels, const at::Tensor& x, const Weight& weight,
                                        const at::Tensor& bias, const at::Tensor& output) {
  thread_local Scratch scratch;
  const int64_t token_floats = simd::packed_floats(1, x.size(1));
  float* packed = scratch.floats(x.size(0) * token_floats);
  const int64_t fitting = group_bytes / (token_floats * static_cast<int64_t>(sizeof(float))) / 8 * 8;
  const int64_t group_tokens = std::clamp<int64_t>(fitting, 8, simd::most_linear_tokens);
  std::vector<simd::LinearCall> calls;
  for (int64_t token = 0; token < x.size(0); token += group_tokens) {
    const int64_t tokens = std::min(x.size(0) - token, group_tokens);
    float* group = packed + token * token_floats;
    kernels.pack_inputs(element_at(x, token * x.stride(0)), x.stride(0), tokens, x.size(1), group);
    calls.push_back({.weight = weight.values.const_data_ptr(),
                     .in = x.size(1),
                     .packed = group,
                     .tokens = tokens,
                     .scales = weight.scale_data(),
                     .bias = bias.defined() ? bias.const_data_ptr() : nullptr,
                     .output = mutable_element_at(output, token * output.stride(0)),
                     .output_stride = output.stride(0),
                     .prefetch = needs_prefetch()});
  }
  return calls;
}

at::Tensor streamed_linear(const at::Tensor& x, const Weight& weight, const at::Tensor& bias) {
  const OwnKernels kernels = own_kernels(x.scalar_type(), weight.int8());
  at::Tensor output = at::empty({x.size(0), weight.values.size(0)}, x.options());
  const std::vector<simd::LinearCall> calls = calls_for(kernels, x, weight, bias, output);
  const int64_t row_bytes = x.size(1) * static_cast<int64_t>(weight.values.element_size());
  parallel_for(weight.values.size(0), bytes_per_thread / row_bytes + 1, 4, [&](Range rows) {
    const int64_t block = calls.size() == 1 ? rows.size() : std::max<int64_t>(12, resident_bytes / row_bytes);
    for (int64_t begin = rows.begin; begin < rows.end; begin += block) {
      for (const simd::LinearCall& call : calls) kernels.linear(call, begin, std::min(rows.end, begin + block));
    }
  });
  return output;
}

/// Some rows of a weight as ATen takes them: of int8, a copy in the type of the inputs.
at::Tensor gemm_rows(const Weight& weight, Range rows, at::ScalarType dtype) {
  const at::Tensor part = weight.values.narrow(0, rows.begin, rows.size());
  if (!weight.int8()) return part;
  at::Tensor copy = at::empty(part.sizes(), part.options().dtype(dtype));
  const auto scale_row = kernels_for(dtype).scale_int8_row;
  const float* scales = weight.scale_data() + rows.begin;
  for (int64_t row = 0; row < rows.size(); ++row) {
    scale_row(element_at(part, row * part.stride(0)), scales[row], mutable_element_at(copy, row * copy.stride(0)),
              part.size(1));
  }
  return copy;
}

/// ATen's GEMM, by one thread of ours for each part of the columns: its own threads would have to take turns with ours.
at::Tensor gemm_linear(const at::Tensor& x, const Weight& weight, const at::Tensor& bias) {
  at::Tensor output = at::empty({x.size(0), weight.values.size(0)}, x.options());
  parallel_for(weight.values.size(0), gemm_columns, gemm_columns, [&](Range part) {
    const c10::InferenceMode no_autograd;
    at::internal::lazy_init_num_threads();  // OpenMP knows the number of threads for each thread apart
    const int64_t block = weight.int8() ? most_scaled_rows : part.size();
    for (int64_t begin = part.begin; begin < part.end; begin += block) {
      const Range rows{begin, std::min(part.end, begin + block)};
      at::Tensor columns = output.narrow(1, rows.begin, rows.size());
      const at::Tensor transposed = gemm_rows(weight, rows, x.scalar_type()).t();
      if (bias.defined()) {
        at::addmm_out(columns, bias.narrow(0, rows.begin, rows.size()), x, transposed);
      } else {
        at::mm_out(columns, x, transposed);
      }
    }
  });
  return output;
}

at::Tensor linear_with(const at::Tensor& x, const Weight& weight, const at::Tensor& bias) {
  if (x.size(0) >= handover_tokens(x.scalar_type())) return gemm_linear(x, weight, bias);
  return streamed_linear(with_dense_rows(x), {weight.values.contiguous(), weight.scales},
                         bias.defined() ? bias.contiguous() : bias);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return linear_with(x, {weight, {}}, bias);
}

at::Tensor linear(const at::Tensor& x, const Int8Matrix& weight, const at::Tensor& bias) {
  return linear_with(x, {weight.values, weight.scales.contiguous()}, bias);
}

}  // namespace cpu
}  // namespace headway::kernels
