#include "parallel/shm/rank_order_sum.h"

namespace headway {

bool is_short_float(at::ScalarType dtype) {
  return dtype == at::kBFloat16 || dtype == at::kHalf;
}

at::Tensor sum_in_rank_order(const at::Tensor& rows) {
  const at::ScalarType dtype = rows.scalar_type();
  at::Tensor sum = rows.select(0, 0).to(is_short_float(dtype) ? at::kFloat : dtype, /*non_blocking=*/false,
                                        /*copy=*/true);
  for (int64_t r = 1; r < rows.size(0); ++r) sum.add_(rows.select(0, r));
  return sum.to(dtype);
}

}  // namespace headway
