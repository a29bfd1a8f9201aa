#include "parallel/verify_communicator.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr float kScales[] = {1, 100, 0.25};

}  // namespace

void verify_communicator(Communicator& communicator, int group_size, GroupRank rank) {
  at::Tensor host = at::empty({std::size(kScales)}, at::kFloat);
  float* values = host.data_ptr<float>();
  for (size_t i = 0; i < std::size(kScales); ++i) values[i] = kScales[i] * static_cast<float>(rank.value + 1);
  at::Tensor sum = host.to(communicator.device());
  communicator.all_reduce(sum);
  host.copy_(sum);
  const float ranks = static_cast<float>(group_size) * static_cast<float>(group_size + 1) / 2;
  for (size_t i = 0; i < std::size(kScales); ++i) {
    if (values[i] != kScales[i] * ranks) {
      throw CommunicationError(fmt::format("{} summed {} over {} ranks to {}", communicator.backend_name(),
                                           kScales[i] * ranks, group_size, values[i]));
    }
  }
}

}  // namespace headway
