#include "parallel/shm/shm_communicator.h"

#include <fmt/format.h>

#include <numeric>

#include "headway/base/error.h"

namespace headway {
namespace {

DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DType::F32;
    case at::kDouble:
      return DType::F64;
    case at::kHalf:
      return DType::F16;
    case at::kBFloat16:
      return DType::BF16;
    case at::kByte:
      return DType::U8;
    case at::kChar:
      return DType::I8;
    case at::kShort:
      return DType::I16;
    case at::kInt:
      return DType::I32;
    case at::kLong:
      return DType::I64;
    default:
      throw ArgumentError(
          fmt::format("tensors of {} cannot be summed in shared memory", c10::toString(tensor.scalar_type())));
  }
}

const at::Tensor& checked(const at::Tensor& tensor, const char* what) {
  if (!tensor.is_cpu() || !tensor.is_contiguous()) {
    throw ArgumentError(fmt::format("{} must be a contiguous CPU tensor", what));
  }
  return tensor;
}

/// That one side has `times` the other's elements of the same dtype.
void check_ratio(const at::Tensor& whole, const at::Tensor& part, int times, const char* operation) {
  if (whole.scalar_type() == part.scalar_type() && whole.numel() == times * part.numel()) return;
  throw ArgumentError(fmt::format("{} over {} members: {} elements of {} do not match {} of {}", operation, times,
                                  whole.numel(), c10::toString(whole.scalar_type()), part.numel(),
                                  c10::toString(part.scalar_type())));
}

/// The bytes of each member's rows.
std::vector<size_t> bytes_of_rows(const at::Tensor& tensor, const std::vector<int64_t>& rows, int members) {
  const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  if (static_cast<int>(rows.size()) != members || tensor.dim() == 0 || tensor.size(0) != total) {
    throw ArgumentError(fmt::format("all_to_all over {} members: {} sizes with a sum of {} for a tensor of {} rows",
                                    members, rows.size(), total, tensor.dim() == 0 ? 0 : tensor.size(0)));
  }
  const size_t row_bytes = total == 0 ? 0 : tensor.nbytes() / total;
  std::vector<size_t> bytes;
  for (int64_t count : rows) bytes.push_back(count * row_bytes);
  return bytes;
}

}  // namespace

void ShmCommunicator::all_reduce(at::Tensor& tensor) {
  checked(tensor, "the tensor of an all_reduce");
  session_->collectives().all_reduce(tensor.mutable_data_ptr(), tensor.numel(), dtype_of(tensor));
}

void ShmCommunicator::all_gather(at::Tensor& output, const at::Tensor& input) {
  check_ratio(checked(output, "the output of an all_gather"), checked(input, "the input of an all_gather"),
              session_->size(), "all_gather");
  session_->collectives().all_gather(output.mutable_data_ptr(), input.const_data_ptr(), input.nbytes());
}

void ShmCommunicator::reduce_scatter(at::Tensor& output, const at::Tensor& input) {
  check_ratio(checked(input, "the input of a reduce_scatter"), checked(output, "the output of a reduce_scatter"),
              session_->size(), "reduce_scatter");
  session_->collectives().reduce_scatter(output.mutable_data_ptr(), input.const_data_ptr(), output.numel(),
                                         dtype_of(output));
}

void ShmCommunicator::all_to_all(at::Tensor& output, const at::Tensor& input, const std::vector<int64_t>& output_rows,
                                 const std::vector<int64_t>& input_rows) {
  checked(output, "the output of an all_to_all");
  checked(input, "the input of an all_to_all");
  session_->collectives().all_to_all(output.mutable_data_ptr(), input.const_data_ptr(),
                                     bytes_of_rows(output, output_rows, session_->size()),
                                     bytes_of_rows(input, input_rows, session_->size()));
}

void ShmCommunicator::broadcast(at::Tensor& tensor, GroupRank source) {
  checked(tensor, "the tensor of a broadcast");
  session_->collectives().broadcast(tensor.mutable_data_ptr(), tensor.nbytes(), source);
}

void ShmCommunicator::send(const at::Tensor& tensor, GroupRank destination, int tag) {
  checked(tensor, "the tensor of a send");
  session_->mail().send(tensor.const_data_ptr(), tensor.nbytes(), destination, tag);
}

void ShmCommunicator::recv(at::Tensor& tensor, GroupRank source, int tag) {
  checked(tensor, "the tensor of a recv");
  session_->mail().receive(tensor.mutable_data_ptr(), tensor.nbytes(), source, tag);
}

void ShmCommunicator::barrier() {
  session_->collectives().barrier();
}

}  // namespace headway
