#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headway/parallel/collective.h"
#include "headway/parallel/communicator.h"
#include "headway/parallel/ranks.h"

namespace headway {

class FailureBoard;

/// One process group as its members see it: collectives on tensors with typed ranks, a limit in time, and errors that
/// name the operation, the group and the rank. On a group of one every collective is the identity, so callers need
/// no branch. Dimensions may be negative, as in PyTorch.
class GroupCoordinator {
 public:
  /// `communicator` may be null only for a group of one. Throws ArgumentError if `self` is not in `ranks`. With a
  /// `failures` board the error of a failed collective says which ranks did not arrive at it.
  GroupCoordinator(std::string name, RankList ranks, GlobalRank self, std::shared_ptr<Communicator> communicator,
                   std::shared_ptr<FailureBoard> failures = nullptr);

  const std::string& name() const { return name_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  GroupRank rank() const { return rank_; }                        ///< this process in the group
  GlobalRank global_rank() const { return ranks_[rank_.value]; }  ///< this process in the world
  const RankList& ranks() const { return ranks_; }
  GlobalRank global_rank_of(GroupRank rank) const;  ///< throws ArgumentError out of range
  GroupRank group_rank_of(GlobalRank rank) const;   ///< throws ArgumentError if not a member
  bool is_first() const { return rank_.value == 0; }
  const char* backend_name() const;  ///< "self", "gloo", "nccl", "shm"

  /// The sum over all members, the same bits on each. May reuse `input`'s memory: do not read `input` afterwards.
  at::Tensor all_reduce(at::Tensor input) const;

  /// The members' tensors joined along `dim` in group order. `sizes` gives each member's extent of `dim` (zero is
  /// allowed); absent, all are equal to this one's.
  at::Tensor all_gather(const at::Tensor& input, int64_t dim, const std::vector<int64_t>& sizes = {}) const;

  /// The sum over all members, of which this one keeps its cut along `dim`; `sizes` as in all_gather, absent: equal.
  at::Tensor reduce_scatter(const at::Tensor& input, int64_t dim, const std::vector<int64_t>& sizes = {}) const;

  /// Sends `input_sizes[r]` rows of dimension 0 to member r and returns the rows received, in group order.
  at::Tensor all_to_all(const at::Tensor& input, const std::vector<int64_t>& output_sizes,
                        const std::vector<int64_t>& input_sizes) const;

  /// As all_gather, but only `destination` receives; the others get an undefined tensor.
  at::Tensor gather(const at::Tensor& input, int64_t dim, GroupRank destination,
                    const std::vector<int64_t>& sizes = {}) const;

  /// Returns `source`'s tensor on every member; the others pass one of the same shape and dtype, which is overwritten.
  at::Tensor broadcast(at::Tensor tensor, GroupRank source) const;

  /// Returns `source`'s bytes on every member, of any length.
  std::string broadcast_object(const std::string& bytes, GroupRank source) const;

  /// Returns `source`'s named tensors on every member; shapes and dtypes travel along.
  std::map<std::string, at::Tensor> broadcast_tensor_dict(const std::map<std::string, at::Tensor>& tensors,
                                                          GroupRank source) const;

  void send(const at::Tensor& tensor, GroupRank destination, int tag = 0) const;
  at::Tensor recv(at::Tensor tensor, GroupRank source, int tag = 0) const;  ///< fills and returns `tensor`
  void barrier() const;

  /// What this rank has put into collectives of one kind here since the group was made. A group of one, and what has
  /// no elements to exchange, is not counted.
  CollectiveCount count(Collective kind) const { return counts_[static_cast<size_t>(kind)]; }

 private:
  std::string name_;
  RankList ranks_;
  GroupRank rank_;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<FailureBoard> failures_;
  mutable int64_t operations_ = 0;  ///< collectives called so far; equal on all members that are in step
  mutable std::array<CollectiveCount, kCollectives> counts_{};

  /// Calls `body` on the communicator, counts `bytes` of input, and turns a failure into a CommunicationError that says
  /// where it happened. `tensor` is undefined where the members' shapes may differ.
  template <typename Body>
  void run(Collective kind, int64_t bytes, const at::Tensor& tensor, const Body& body) const;
  [[noreturn]] void fail(Collective kind, const at::Tensor& tensor, const char* cause) const;
};

}  // namespace headway
