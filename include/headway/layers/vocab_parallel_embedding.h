#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "headway/layers/module.h"
#include "headway/parallel/group_coordinator.h"
#include "headway/parallel/partition.h"

namespace headway {

/// The token table, its rows cut over a group as DimPartition says. Any vocabulary size; nothing is padded.
class VocabParallelEmbedding : public Module {
 public:
  VocabParallelEmbedding(const GroupCoordinator& group, int64_t vocab_size, int64_t hidden_size);

  /// token_ids [tokens] int64 -> [tokens, hidden], the same on every rank. Throws ArgumentError for an id outside
  /// the vocabulary (checked on the CPU only).
  at::Tensor forward(const at::Tensor& token_ids) const;

  /// What this rank adds to that: [tokens, hidden], zeroes for tokens of other ranks.
  at::Tensor contribution(const at::Tensor& token_ids) const;

  const GroupCoordinator& group() const { return group_; }
  Range local_rows() const { return rows_.range; }
  const std::shared_ptr<Parameter>& weight() const { return weight_; }

 private:
  const GroupCoordinator& group_;
  DimPartition rows_;
  std::shared_ptr<Parameter> weight_;
};

/// The projection of hidden states onto the vocabulary, its rows cut over a group as DimPartition says.
class ParallelLMHead : public Module {
 public:
  /// With a table of its own. The checkpoint may hold its data under the embedding's name (see CheckpointNames).
  ParallelLMHead(const GroupCoordinator& group, int64_t vocab_size, int64_t hidden_size);

  /// Tied: uses the embedding's rows; the groups are the same.
  explicit ParallelLMHead(const VocabParallelEmbedding& embedding);

  /// hidden [rows, hidden] -> logits [rows, vocab_size], the same on every rank; exactly vocab_size columns.
  at::Tensor forward(const at::Tensor& hidden) const;

  const GroupCoordinator& group() const { return group_; }
  Range local_rows() const { return rows_.range; }

 private:
  const GroupCoordinator& group_;
  DimPartition rows_;
  std::shared_ptr<Parameter> weight_;
};

}  // namespace headway
