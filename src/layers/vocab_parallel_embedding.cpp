#include "headway/layers/vocab_parallel_embedding.h"

#include <fmt/format.h>

#include "layers/linear_checks.h"
#include "layers/weight_ops.h"

namespace headway {
namespace {

std::vector<TensorSlice> row_slice(const DimPartition& rows, int64_t hidden_size) {
  return {{"", {rows.total, hidden_size}, 0, rows.range}};
}

void check_ids(const at::Tensor& token_ids, int64_t vocab_size) {
  if (!token_ids.is_cpu()) return;
  const auto ids = token_ids.accessor<int64_t, 1>();
  for (int64_t i = 0; i < ids.size(0); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      throw ArgumentError(fmt::format("token id {} is outside the vocabulary of {}", ids[i], vocab_size));
    }
  }
}

}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(const GroupCoordinator& group, int64_t vocab_size, int64_t hidden_size)
    : group_(group), rows_(DimPartition::of(vocab_size, group.size(), group.rank())) {
  weight_ = parameter("weight", {rows_.size(), hidden_size}, row_slice(rows_, hidden_size));
  weight_->may_be_int8 = true;
}

at::Tensor VocabParallelEmbedding::forward(const at::Tensor& token_ids) const {
  return group_.all_reduce(contribution(token_ids));
}

at::Tensor VocabParallelEmbedding::contribution(const at::Tensor& token_ids) const {
  check_ids(token_ids, rows_.total);
  return embedding_of(token_ids, *weight_, rows_.range);
}

ParallelLMHead::ParallelLMHead(const GroupCoordinator& group, int64_t vocab_size, int64_t hidden_size)
    : group_(group), rows_(DimPartition::of(vocab_size, group.size(), group.rank())) {
  weight_ = parameter("weight", {rows_.size(), hidden_size}, row_slice(rows_, hidden_size));
  weight_->may_be_int8 = true;
}

ParallelLMHead::ParallelLMHead(const VocabParallelEmbedding& embedding)
    : group_(embedding.group()),
      rows_(DimPartition::of(embedding.weight()->slices.front().total_shape.front(), group_.size(), group_.rank())),
      weight_(embedding.weight()) {
  share_parameter(weight_);
}

at::Tensor ParallelLMHead::forward(const at::Tensor& hidden) const {
  check_input_features(hidden, weight_->shape[1], "LM head");
  return group_.all_gather(linear_of(hidden, *weight_), 1, dim_partition_sizes(rows_.total, group_.size()));
}

}  // namespace headway
