#include "headway/parallel/group_coordinator.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/trace.h"
#include "headway/base/error.h"
#include "parallel/group_checks.h"
#include "parallel/shm/rank_order_sum.h"
#include "parallel/store/failure_board.h"

namespace headway {
namespace {

bool all_equal(const std::vector<int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

int64_t sum_of(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

std::vector<int64_t> with_extent(at::IntArrayRef shape, int64_t dim, int64_t extent) {
  std::vector<int64_t> sizes = shape.vec();
  sizes[dim] = extent;
  return sizes;
}

int64_t elements_of(at::IntArrayRef shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.nbytes());
}

/// `input` grown at the end of `dim` to `extent`, its own memory if that is long enough already.
at::Tensor padded(const at::Tensor& input, int64_t dim, int64_t extent) {
  if (input.size(dim) == extent) return input.contiguous();
  at::Tensor output = at::zeros(with_extent(input.sizes(), dim, extent), input.options());
  output.narrow(dim, 0, input.size(dim)).copy_(input);
  return output;
}

/// The parts of `input` along `dim`, each contiguous, one after the other in a vector.
at::Tensor packed_parts(const at::Tensor& input, int64_t dim, const std::vector<int64_t>& sizes) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    parts.push_back(input.narrow(dim, begin, size).reshape({-1}));
    begin += size;
  }
  return at::cat(parts);
}

/// Undoes packed_parts.
at::Tensor unpacked_parts(const at::Tensor& packed, at::IntArrayRef shape, int64_t dim,
                          const std::vector<int64_t>& sizes) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (int64_t size : sizes) {
    const std::vector<int64_t> part_shape = with_extent(shape, dim, size);
    const int64_t elements = elements_of(part_shape);
    parts.push_back(packed.narrow(0, begin, elements).view(part_shape));
    begin += elements;
  }
  return at::cat(parts, dim);
}

/// A communicator that has failed is of no more use: its members no longer agree on what has been sent.
void refuse_after_failure(const GroupCoordinator& group, const FailureBoard* failures, std::string_view operation) {
  if (failures == nullptr || failures->first_failure().empty()) return;
  throw CommunicationError(fmt::format("{} on {}: its connections are of no use since an earlier failure: {}",
                                       operation, place_of(group), failures->first_failure()));
}

/// Which members were not in the operation that this rank was in, for the end of an error.
std::string others_text(const GroupCoordinator& group, FailureBoard& failures, const std::string& doing) {
  std::string text;
  try {
    const auto others = failures.exchange(group.ranks(), group.global_rank(), doing);
    for (int r = 0; r < group.size(); ++r) {
      if (others[r] == doing) continue;
      text += fmt::format("; global rank {} {}", group.ranks()[r].value,
                          others[r] ? "was in " + *others[r] : std::string("did not arrive"));
    }
  } catch (const LaunchError& error) {
    text = fmt::format("; the other members cannot be asked what they were doing: {}", error.what());
  }
  return text;
}

[[noreturn]] void remember_and_throw(FailureBoard* failures, const std::string& failure) {
  if (failures != nullptr) failures->record(failure);
  throw CommunicationError(failure);
}

}  // namespace

GroupCoordinator::GroupCoordinator(std::string name, RankList ranks, GlobalRank self,
                                   std::shared_ptr<Communicator> communicator, std::shared_ptr<FailureBoard> failures)
    : name_(std::move(name)),
      ranks_(std::move(ranks)),
      communicator_(std::move(communicator)),
      failures_(std::move(failures)) {
  rank_ = group_rank_of(self);
  if (!communicator_ && size() > 1) {
    throw ArgumentError(fmt::format("group {} of {} ranks has no communicator", name_, size()));
  }
}

GlobalRank GroupCoordinator::global_rank_of(GroupRank rank) const {
  if (rank.value < 0 || rank.value >= size()) {
    throw ArgumentError(fmt::format("group rank {} is not in group {} of {}", rank.value, name_, size()));
  }
  return ranks_[rank.value];
}

GroupRank GroupCoordinator::group_rank_of(GlobalRank rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end()) {
    std::vector<int> members;
    for (GlobalRank member : ranks_) members.push_back(member.value);
    throw ArgumentError(
        fmt::format("global rank {} is not in group {} of ranks [{}]", rank.value, name_, fmt::join(members, ", ")));
  }
  return {static_cast<int>(found - ranks_.begin())};
}

const char* GroupCoordinator::backend_name() const {
  return communicator_ ? communicator_->backend_name() : "self";
}

template <typename Body>
void GroupCoordinator::run(Collective kind, int64_t bytes, const at::Tensor& tensor, const Body& body) const {
  refuse_after_failure(*this, failures_.get(), name_of(kind));
  const TraceSpan span([&] { return fmt::format("{} on {}", name_of(kind), name_); });
  ++operations_;
  CollectiveCount& count = counts_[static_cast<size_t>(kind)];
  ++count.calls;
  count.bytes += bytes;
  try {
    body(*communicator_);
  } catch (const CommunicationError& error) {
    fail(kind, tensor, error.what());
  }
}

void GroupCoordinator::fail(Collective kind, const at::Tensor& tensor, const char* cause) const {
  const std::string operation = fmt::format("{}{} (operation {})", name_of(kind), shape_text(tensor), operations_);
  std::string message = fmt::format("{} on {} failed: {}", operation, place_of(*this), cause);
  if (failures_) message += others_text(*this, *failures_, fmt::format("{} on {}", operation, name_));
  remember_and_throw(failures_.get(), message);
}

at::Tensor GroupCoordinator::all_reduce(at::Tensor input) const {
  if (size() == 1 || input.numel() == 0) return input;
  at::Tensor tensor = input.contiguous();
  run(Collective::all_reduce, bytes_of(tensor), tensor,
      [&](Communicator& communicator) { communicator.all_reduce(tensor); });
  return tensor;
}

at::Tensor GroupCoordinator::all_gather(const at::Tensor& input, int64_t dim, const std::vector<int64_t>& sizes) const {
  dim = checked_dim(*this, "all_gather", input, dim);
  const std::vector<int64_t> extents = gather_sizes(*this, "all_gather", sizes, input.size(dim));
  if (size() == 1) return input;
  const at::Tensor own = padded(input, dim, *std::max_element(extents.begin(), extents.end()));
  std::vector<int64_t> shape = own.sizes().vec();
  shape.insert(shape.begin(), size());
  at::Tensor output = at::empty(shape, own.options());
  if (output.numel() > 0) {
    run(Collective::all_gather, bytes_of(input), own,
        [&](Communicator& communicator) { communicator.all_gather(output, own); });
  }
  if (all_equal(extents)) return output.movedim(0, dim).flatten(dim, dim + 1);
  std::vector<at::Tensor> parts;
  for (int r = 0; r < size(); ++r) parts.push_back(output.select(0, r).narrow(dim, 0, extents[r]));
  return at::cat(parts, dim);
}

at::Tensor GroupCoordinator::reduce_scatter(const at::Tensor& input, int64_t dim,
                                            const std::vector<int64_t>& sizes) const {
  dim = checked_dim(*this, "reduce_scatter", input, dim);
  const std::vector<int64_t> extents = scatter_sizes(*this, sizes, input.size(dim));
  if (size() == 1) return input;
  const std::vector<int64_t> shape = with_extent(input.sizes(), dim, extents[rank_.value]);
  if (input.numel() == 0) return at::empty(shape, input.options());
  const at::Tensor packed = packed_parts(input, dim, extents);
  if (all_equal(extents)) {
    at::Tensor output = at::empty(shape, input.options());
    run(Collective::reduce_scatter, bytes_of(input), input,
        [&](Communicator& communicator) { communicator.reduce_scatter(output, packed); });
    return output;
  }
  const int64_t row = input.numel() / input.size(dim);
  std::vector<int64_t> sent;
  for (int64_t extent : extents) sent.push_back(extent * row);
  const std::vector<int64_t> received(size(), sent[rank_.value]);
  at::Tensor rows = at::empty({size(), sent[rank_.value]}, input.options());
  run(Collective::reduce_scatter, bytes_of(input), input, [&](Communicator& communicator) {
    at::Tensor flat = rows.view({-1});
    communicator.all_to_all(flat, packed, received, sent);
  });
  return sum_in_rank_order(rows).view(shape);
}

at::Tensor GroupCoordinator::all_to_all(const at::Tensor& input, const std::vector<int64_t>& output_sizes,
                                        const std::vector<int64_t>& input_sizes) const {
  checked_dim(*this, "all_to_all", input, 0);
  check_counts(*this, "all_to_all", "output_sizes", output_sizes);
  check_counts(*this, "all_to_all", "input_sizes", input_sizes);
  if (sum_of(input_sizes) != input.size(0) || output_sizes[rank_.value] != input_sizes[rank_.value]) {
    throw ArgumentError(fmt::format("all_to_all on {}: input_sizes [{}] and output_sizes [{}] do not fit {} rows",
                                    place_of(*this), fmt::join(input_sizes, ", "), fmt::join(output_sizes, ", "),
                                    input.size(0)));
  }
  if (size() == 1) return input;
  const at::Tensor own = input.contiguous();
  at::Tensor output = at::empty(with_extent(own.sizes(), 0, sum_of(output_sizes)), own.options());
  run(Collective::all_to_all, bytes_of(own), at::Tensor(),
      [&](Communicator& communicator) { communicator.all_to_all(output, own, output_sizes, input_sizes); });
  return output;
}

at::Tensor GroupCoordinator::gather(const at::Tensor& input, int64_t dim, GroupRank destination,
                                    const std::vector<int64_t>& sizes) const {
  check_member(*this, "gather", destination);
  dim = checked_dim(*this, "gather", input, dim);
  const std::vector<int64_t> extents = gather_sizes(*this, "gather", sizes, input.size(dim));
  if (size() == 1) return input;
  const at::Tensor own = input.contiguous();
  const int64_t row = elements_of(with_extent(own.sizes(), dim, 1));
  std::vector<int64_t> sent(size(), 0);
  std::vector<int64_t> received(size(), 0);
  sent[destination.value] = own.numel();
  if (rank_ == destination) {
    for (int r = 0; r < size(); ++r) received[r] = extents[r] * row;
  }
  at::Tensor output = at::empty({sum_of(received)}, own.options());
  run(Collective::gather, bytes_of(own), at::Tensor(),
      [&](Communicator& communicator) { communicator.all_to_all(output, own.view({-1}), received, sent); });
  return rank_ == destination ? unpacked_parts(output, own.sizes(), dim, extents) : at::Tensor();
}

at::Tensor GroupCoordinator::broadcast(at::Tensor tensor, GroupRank source) const {
  check_member(*this, "broadcast", source);
  if (size() == 1 || tensor.numel() == 0) return tensor;
  at::Tensor dense = tensor.contiguous();
  run(Collective::broadcast, bytes_of(dense), dense,
      [&](Communicator& communicator) { communicator.broadcast(dense, source); });
  if (!dense.is_same(tensor) && rank_ != source) tensor.copy_(dense);
  return tensor;
}

void GroupCoordinator::send(const at::Tensor& tensor, GroupRank destination, int tag) const {
  check_peer(*this, "send", destination);
  refuse_after_failure(*this, failures_.get(), "send");
  try {
    communicator_->send(tensor.contiguous(), destination, tag);
  } catch (const CommunicationError& error) {
    remember_and_throw(failures_.get(), fmt::format("send{} to global rank {} on {} failed: {}", shape_text(tensor),
                                                    global_rank_of(destination).value, place_of(*this), error.what()));
  }
}

at::Tensor GroupCoordinator::recv(at::Tensor tensor, GroupRank source, int tag) const {
  check_peer(*this, "recv", source);
  refuse_after_failure(*this, failures_.get(), "recv");
  at::Tensor dense = tensor.contiguous();
  try {
    communicator_->recv(dense, source, tag);
  } catch (const CommunicationError& error) {
    remember_and_throw(failures_.get(), fmt::format("recv{} from global rank {} on {} failed: {}", shape_text(tensor),
                                                    global_rank_of(source).value, place_of(*this), error.what()));
  }
  if (!dense.is_same(tensor)) tensor.copy_(dense);
  return tensor;
}

void GroupCoordinator::barrier() const {
  if (size() == 1) return;
  run(Collective::barrier, 0, at::Tensor(), [](Communicator& communicator) { communicator.barrier(); });
}

}  // namespace headway
