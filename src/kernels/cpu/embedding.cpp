#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstring>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tensors.h"

namespace headway::kernels::cpu {

at::Tensor embedding(const at::Tensor& ids, const at::Tensor& weight, Range rows) {
  const at::Tensor table = weight.contiguous();
  const at::Tensor tokens = ids.contiguous();
  const int64_t row_bytes = weight.size(1) * static_cast<int64_t>(weight.element_size());
  at::Tensor output = at::empty({ids.size(0), weight.size(1)}, weight.options());
  const auto* from = static_cast<const std::byte*>(table.const_data_ptr());
  auto* to = static_cast<std::byte*>(output.mutable_data_ptr());
  const int64_t* id = tokens.const_data_ptr<int64_t>();
  for (int64_t token = 0; token < ids.size(0); ++token, to += row_bytes) {
    if (rows.contains(id[token])) {
      std::memcpy(to, from + (id[token] - rows.begin) * row_bytes, row_bytes);
    } else {
      std::memset(to, 0, row_bytes);
    }
  }
  return output;
}

at::Tensor embedding(const at::Tensor& ids, const Int8Matrix& weight, Range rows, at::ScalarType dtype) {
  const at::Tensor table = weight.values.contiguous();
  const at::Tensor scales = weight.scales.contiguous();
  const at::Tensor tokens = ids.contiguous();
  const auto scale_row = kernels_for(dtype).scale_int8_row;
  at::Tensor output = at::zeros({ids.size(0), table.size(1)}, table.options().dtype(dtype));
  const int64_t* id = tokens.const_data_ptr<int64_t>();
  for (int64_t token = 0; token < ids.size(0); ++token) {
    if (!rows.contains(id[token])) continue;
    const int64_t row = id[token] - rows.begin;
    scale_row(element_at(table, row * table.size(1)), scales.const_data_ptr<float>()[row],
              mutable_element_at(output, token * table.size(1)), table.size(1));
  }
  return output;
}

}  // namespace headway::kernels::cpu
