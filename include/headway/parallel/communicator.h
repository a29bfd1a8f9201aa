#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "headway/parallel/ranks.h"

namespace headway {

/// The transport under a group: what Gloo, NCCL or shared memory must be able to do. All tensors are contiguous and
/// every call is made by all members in the same order. A call returns when its result may be read by the caller's
/// next operation on the same device. Failures and expired limits throw CommunicationError; the GroupCoordinator adds
/// the group, the ranks and the operation to the message.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual const char* backend_name() const = 0;
  /// Where tensors must lie.
  virtual at::Device device() const { return at::kCPU; }

  /// Sums in place.
  virtual void all_reduce(at::Tensor& tensor) = 0;
  /// `output` holds size() times `input`'s elements, by group rank.
  virtual void all_gather(at::Tensor& output, const at::Tensor& input) = 0;
  /// `input` holds size() times `output`'s elements; rank r receives the sum of the r-th parts.
  virtual void reduce_scatter(at::Tensor& output, const at::Tensor& input) = 0;
  /// Part r of `input` (input_rows[r] rows of dimension 0) goes to rank r; `output` is filled in rank order.
  virtual void all_to_all(at::Tensor& output, const at::Tensor& input, const std::vector<int64_t>& output_rows,
                          const std::vector<int64_t>& input_rows) = 0;
  virtual void broadcast(at::Tensor& tensor, GroupRank source) = 0;
  virtual void send(const at::Tensor& tensor, GroupRank destination, int tag) = 0;
  virtual void recv(at::Tensor& tensor, GroupRank source, int tag) = 0;
  virtual void barrier() = 0;
};

}  // namespace headway
