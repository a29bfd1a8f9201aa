#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "headway/base/range.h"
#include "headway/layers/module.h"
#include "headway/layers/output_section.h"
#include "headway/parallel/group_coordinator.h"
#include "headway/parallel/partition.h"

// Linear layers y = x W^T + b whose weight is cut over the ranks of one group. Inputs are [tokens, in], outputs
// [tokens, out]; weights keep the checkpoint's [out, in]. Option names and meanings are vLLM's.
namespace headway {

/// What a linear layer returns: its output and, with skip_bias_add and return_bias, the bias that was not added.
struct LinearOutput {
  at::Tensor output;
  at::Tensor bias;

  operator at::Tensor() const { return output; }
};

/// What every linear layer can do.
class Linear : public Module {
 public:
  virtual LinearOutput forward(const at::Tensor& input) const = 0;
};

/// The bias of a ReplicatedLinear.
struct ReplicatedOptions {
  bool bias = true;
  bool skip_bias_add = false;  ///< leave the bias to the caller
  bool return_bias = true;     ///< hand the skipped bias out with the output
};

/// The whole weight on every rank.
class ReplicatedLinear : public Linear {
 public:
  ReplicatedLinear(int64_t in_features, int64_t out_features, ReplicatedOptions options = {});
  LinearOutput forward(const at::Tensor& input) const override;

 private:
  ReplicatedOptions options_;
  std::shared_ptr<Parameter> weight_;
  std::shared_ptr<Parameter> bias_;
};

/// The bias of a column-parallel linear, as in ReplicatedOptions, and what it returns.
struct ColumnOptions {
  bool bias = true;
  bool skip_bias_add = false;
  bool return_bias = true;
  bool gather_output = false;  ///< return all columns on every rank, sections in their logical order
};

/// Output features cut over the group: each rank computes its own columns of y.
class ColumnParallelLinear : public Linear {
 public:
  ColumnParallelLinear(const GroupCoordinator& group, int64_t in_features, int64_t out_features,
                       ColumnOptions options = {});

  LinearOutput forward(const at::Tensor& input) const override;

  const GroupCoordinator& group() const { return group_; }
  const ColumnOptions& options() const { return options_; }
  int64_t in_features() const { return in_features_; }
  const std::vector<OutputSection>& sections() const { return sections_; }
  Range local_range(size_t section) const { return sections_[section].ranges[group_.rank().value]; }

 protected:
  /// For layers whose weight joins several checkpoint tensors.
  ColumnParallelLinear(const GroupCoordinator& group, int64_t in_features, std::vector<OutputSection> sections,
                       ColumnOptions options);

 private:
  at::Tensor gather_sections(const at::Tensor& local) const;

  const GroupCoordinator& group_;
  int64_t in_features_;
  std::vector<OutputSection> sections_;
  ColumnOptions options_;
  std::shared_ptr<Parameter> weight_;
  std::shared_ptr<Parameter> bias_;
};

/// Several column-parallel weights over one input, in one parameter: rows of each rank are [its part of the first,
/// its part of the second, ...].
class MergedColumnParallelLinear : public ColumnParallelLinear {
 public:
  struct Output {
    std::string name;
    int64_t size = 0;
  };
  MergedColumnParallelLinear(const GroupCoordinator& group, int64_t in_features, const std::vector<Output>& outputs,
                             ColumnOptions options = {});
};

/// Sizes of the query, key and value projections of one attention block, over all ranks.
struct QKVShape {
  int64_t hidden_size = 0;
  int64_t head_dim = 0;
  HeadCounts heads;
};

/// The query, key and value projections of one attention block (sections "q", "k", "v"), cut in whole heads as
/// HeadPartition says.
class QKVParallelLinear : public ColumnParallelLinear {
 public:
  QKVParallelLinear(const GroupCoordinator& group, QKVShape shape, ColumnOptions options = {});

  const QKVShape& shape() const { return shape_; }
  const HeadPartition& heads() const { return heads_; }

 private:
  QKVShape shape_;
  HeadPartition heads_;
};

/// Sizes of a row-parallel weight, over all ranks.
struct RowShape {
  int64_t in_features = 0;
  int64_t out_features = 0;
  int64_t total_q_heads = 0;  ///< if set, the input is cut in whole heads as HeadPartition does, else as DimPartition
};

/// The bias of a row-parallel linear, as in ReplicatedOptions, and what it takes and returns.
struct RowOptions {
  bool bias = true;
  bool skip_bias_add = false;
  bool return_bias = true;
  bool input_is_parallel = true;  ///< the input holds this rank's columns alone; else they are cut out of it
  bool reduce_results = true;     ///< sum over the group; without it each rank returns its partial sum
};

/// Input features cut over the group: each rank computes a partial sum of y, and the sum over the group is y. The bias
/// is added once, after the sum. Throws ArgumentError for a bias that would be added to partial sums.
class RowParallelLinear : public Linear {
 public:
  RowParallelLinear(const GroupCoordinator& group, RowShape shape, RowOptions options = {});
  LinearOutput forward(const at::Tensor& input) const override;

  const GroupCoordinator& group() const { return group_; }
  const RowShape& shape() const { return shape_; }
  const RowOptions& options() const { return options_; }
  Range local_columns() const { return columns_; }

 private:
  at::Tensor local_input(const at::Tensor& input) const;

  const GroupCoordinator& group_;
  RowShape shape_;
  RowOptions options_;
  Range columns_;
  std::shared_ptr<Parameter> weight_;
  std::shared_ptr<Parameter> bias_;
};

}  // namespace headway
