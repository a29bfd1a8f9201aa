#include "headway/spmd/shard_model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>

#include "distributed/layers/layer_support.h"
#include "distributed/support/parallel_test.h"
#include "headway/base/error.h"
#include "headway/models/qwen2.h"
#include "headway/spmd/spmd_qkv_linear.h"
#include "headway/weights/weight_loader.h"

namespace headway {
namespace {

using testing::world_size;

/// A model of linears: column-parallel into row-parallel, both built for one rank.
class TwoLayers : public Module {
 public:
  TwoLayers(const GroupCoordinator& one, int64_t hidden, int64_t inner) {
    child<ColumnParallelLinear>("up", up, one, hidden, inner);
    child<RowParallelLinear>("down", down, one, RowShape{inner, hidden});
  }
  at::Tensor forward(const at::Tensor& x) const { return down->forward(up->forward(x)); }

  std::shared_ptr<Linear> up;
  std::shared_ptr<Linear> down;
};

class ShardModel : public ::testing::Test {
 protected:
  const ParallelState& state_ = testing::parallel_state(1);
  std::unique_ptr<ParallelState> one_ = ParallelState::single();
  DeviceMesh mesh_{state_, {world_size()}, {"x"}};
};

ModelConfig small_config(bool tied) {
  ModelConfig config;
  config.architecture = "Qwen2ForCausalLM";
  config.hidden_size = 64;
  config.intermediate_size = 128;
  config.num_layers = 2;
  config.total_q_heads = 8;
  config.total_kv_heads = 2;
  config.head_dim = 8;
  config.vocab_size = 321;
  config.max_position_embeddings = 128;
  config.tie_word_embeddings = tied;
  config.sliding_window = {std::nullopt, std::nullopt};
  return config;
}

AttentionBatch one_sequence(int64_t tokens) {
  AttentionBatch batch;
  batch.block_tables = {{1, 0}};
  batch.query_starts = {0, tokens};
  batch.context_lengths = {tokens};
  for (int64_t p = 0; p < tokens; ++p) {
    batch.positions.push_back(p);
    batch.slots.push_back((1 - p / 16) * 16 + p % 16);
  }
  return batch;
}

at::Tensor logits_of(CausalLM& model) {
  std::vector<KVCacheView> caches = model.allocate_kv_cache(2, 16);
  return model.compute_logits(
      model.forward(testing::on_device(at::arange(20, at::kLong) * 13), one_sequence(20), caches));
}

// Fault case G10, and G11 where the mesh has more ranks than KV heads.
TEST_F(ShardModel, LogitsEqualTheUnshardedModelsAndOnlyNormsStayWhole) {
  for (bool tied : {false, true}) {
    const auto model = build_model(small_config(tied), {}, *one_);
    testing::fill_from_full_tensors(*model);
    const at::Tensor expected = logits_of(*model);
    const std::vector<ShardedModule> report = shard_model(*model, mesh_);
    const at::Tensor actual = logits_of(*model);
    EXPECT_TRUE(actual.allclose(expected, 1e-4, 1e-4)) << (actual - expected).abs().max();

    const HeadPartition heads = HeadPartition::of({8, 2}, world_size(), state_.world().rank());
    const int64_t qkv_rows = (heads.local_q_heads() + 2 * heads.local_kv_heads()) * 8;
    const int64_t mlp = DimPartition::of(128, world_size(), state_.world().rank()).size();
    const int64_t vocab = DimPartition::of(321, world_size(), state_.world().rank()).size();
    for (const ShardedModule& row : report) {
      EXPECT_EQ(row.sharded, row.type != "RMSNorm") << row.name;
      if (row.type == "SpmdQKVParallelLinear") {
        EXPECT_EQ(row.local_bytes, qkv_rows * (64 + 1) * 4) << row.name;
      }
      if (row.type == "MergedColumnParallelLinear") {
        EXPECT_EQ(row.local_bytes, 2 * mlp * 64 * 4) << row.name;
      }
      if (row.name.ends_with("o_proj")) {
        EXPECT_EQ(row.local_bytes, heads.local_q_heads() * 8 * 64 * 4) << row.name;
      }
      if (row.name.ends_with("down_proj")) {
        EXPECT_EQ(row.local_bytes, mlp * 64 * 4) << row.name;
      }
      if (row.type == "VocabParallelEmbedding") {
        EXPECT_EQ(row.local_bytes, vocab * 64 * 4);
      }
      if (row.type == "ParallelLMHead") {
        EXPECT_EQ(row.local_bytes, tied ? 0 : vocab * 64 * 4);
      }
    }
  }
}

// Fault case G04: uneven cuts between a column and a row layer.
TEST_F(ShardModel, ColumnIntoRowEqualsTheUnshardedResultForUnevenSizes) {
  for (int64_t inner : {1, 2, 5, 6, 37}) {
    TwoLayers model(one_->tp(), 3, inner);
    testing::fill_from_full_tensors(model);
    const at::Tensor input = testing::random_matrix(4, 3, 6);
    const at::Tensor expected = model.forward(input);
    shard_model(model, mesh_);
    EXPECT_TRUE(model.forward(input).allclose(expected, 1e-5, 1e-5)) << "inner " << inner;
  }
}

// Fault case G08 (B01 under a mesh): the row-parallel bias is added once.
TEST_F(ShardModel, ARowBiasIsAddedOnce) {
  class OneRow : public Module {
   public:
    explicit OneRow(const GroupCoordinator& one) { child<RowParallelLinear>("row", row, one, RowShape{4, 2}); }
    std::shared_ptr<Linear> row;
  } model(one_->tp());
  testing::allocate(model);
  load_section(model.row->own_parameter("weight"), testing::values({1, 0, 2, 1, 0, 1, 1, 3}).view({2, 4}));
  load_section(model.row->own_parameter("bias"), testing::values({10, -20}));
  shard_model(model, mesh_);
  const at::Tensor output = model.row->forward(testing::values({1, 2, 3, 4}).view({1, 4}));
  EXPECT_TRUE(output.equal(testing::values({21, -3}).view({1, 2}))) << output;
}

// Fault case G08 (B04 under a mesh): biases are cut with their heads.
TEST_F(ShardModel, QkvBiasesAreCutPerSection) {
  if (world_size() != 2) GTEST_SKIP() << "its values are those of 2 ranks";
  QKVParallelLinear original(one_->tp(), {1, 2, {4, 2}});
  testing::allocate(original);
  for (const char* section : {"q", "k", "v"}) {
    load_section(original.own_parameter("weight"), testing::sequence_matrix(*section == 'q' ? 8 : 4, 1), section);
  }
  load_section(original.own_parameter("bias"), testing::sequence_vector(8), "q");
  load_section(original.own_parameter("bias"), testing::sequence_vector(4, 100), "k");
  load_section(original.own_parameter("bias"), testing::sequence_vector(4, 200), "v");
  const SpmdQKVParallelLinear sharded(original, &mesh_);
  const bool first = testing::global_rank().value == 0;
  EXPECT_TRUE(sharded.own_parameter("q_bias").tensor.equal(testing::sequence_vector(4, first ? 0 : 4)));
  EXPECT_TRUE(sharded.own_parameter("k_bias").tensor.equal(testing::sequence_vector(2, first ? 100 : 102)));
  EXPECT_TRUE(sharded.own_parameter("v_bias").tensor.equal(testing::sequence_vector(2, first ? 200 : 202)));
}

struct QkvCase {
  QKVShape shape;
  ColumnOptions options;
  at::ScalarType dtype;
};

TEST_F(ShardModel, SpmdQkvEqualsThePlainOneWithAndWithoutAMesh) {
  const std::vector<QkvCase> cases{
      {{4096, 128, {32, 8}}, {.bias = false}, at::kBFloat16},
      {{48, 4, {12, 2}}, {.bias = true}, at::kFloat},
      {{36, 4, {9, 3}}, {.bias = true}, at::kFloat},
      {{36, 4, {9, 3}}, {.bias = true, .skip_bias_add = true}, at::kFloat},
      {{36, 4, {9, 3}}, {.bias = true, .skip_bias_add = true, .return_bias = false}, at::kFloat},
      {{36, 4, {9, 3}}, {.bias = false, .skip_bias_add = true}, at::kFloat},
  };
  for (const auto& [shape, options, dtype] : cases) {
    QKVParallelLinear original(one_->tp(), shape, options);
    testing::fill_from_full_tensors(original, 0.02);
    for (const auto& parameter : original.own_parameters()) parameter->tensor = parameter->tensor.to(dtype);
    const at::Tensor input = testing::random_matrix(10, shape.hidden_size, 11).to(dtype);
    const LinearOutput expected = original.forward(input);
    for (const DeviceMesh* mesh : {static_cast<const DeviceMesh*>(nullptr), static_cast<const DeviceMesh*>(&mesh_)}) {
      const LinearOutput actual = SpmdQKVParallelLinear(original, mesh).forward(input);
      const double bound = dtype == at::kFloat ? 1e-5 : 2e-2;
      EXPECT_TRUE(actual.output.allclose(expected.output, bound, bound));
      ASSERT_EQ(actual.bias.defined(), expected.bias.defined());
      if (!expected.bias.defined()) continue;
      EXPECT_TRUE(actual.bias.equal(expected.bias));
    }
  }
}

TEST_F(ShardModel, RefusesWhatWasBuiltForSeveralRanks) {
  if (world_size() == 1) GTEST_SKIP() << "needs two ranks";
  const QKVParallelLinear sharded(testing::parallel_state(world_size()).tp(), {16, 2, {8, 8}});
  try {
    SpmdQKVParallelLinear again(sharded, &mesh_);
    FAIL() << "a layer over several ranks was sharded again";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "TP > 1 is only supported under SPMD.");
  }
}

TEST_F(ShardModel, RefusesEveryKindOfModuleThatIsCutAlready) {
  if (world_size() == 1) GTEST_SKIP() << "needs two ranks";
  const GroupCoordinator& group = testing::parallel_state(world_size()).tp();
  ReplacedModules none;
  EXPECT_THROW(partition_column_parallel_linear(std::make_shared<ColumnParallelLinear>(group, 2, 8), mesh_, none),
               ConfigError);
  EXPECT_THROW(partition_row_parallel_linear(std::make_shared<RowParallelLinear>(group, RowShape{8, 2}), mesh_, none),
               ConfigError);
  EXPECT_THROW(partition_vocab_parallel_embedding(std::make_shared<VocabParallelEmbedding>(group, 8, 2), mesh_, none),
               ConfigError);
  EXPECT_THROW(partition_parallel_lm_head(std::make_shared<ParallelLMHead>(group, 8, 2), mesh_, none), ConfigError);
}

TEST_F(ShardModel, RefusesATopLevelModuleThatWouldBeReplaced) {
  ColumnParallelLinear top(one_->tp(), 2, 2);
  testing::fill_from_full_tensors(top);
  try {
    shard_model(top, mesh_);
    FAIL() << "the top-level module was replaced";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "Top Level module is not expected to be wrapped.");
  }
}

TEST_F(ShardModel, RegisteredRowsAndSubclassesMatch) {
  EXPECT_EQ(get_fqn(AttnColumnParallelLinear(*one_, 2, 2)), "AttnColumnParallelLinear");
  const auto& table = module_type_to_wrapping_func();
  ASSERT_GE(table.size(), 6u);
  EXPECT_EQ(table[0].type_name, "QKVParallelLinear");
  EXPECT_TRUE(table[0].matches(AttnQKVParallelLinear(*one_, {2, 1, {2, 2}})));
  EXPECT_TRUE(table[2].matches(AttnColumnParallelLinear(*one_, 2, 2)));
  EXPECT_TRUE(table[3].matches(AttnRowParallelLinear(*one_, {2, 2})));
  EXPECT_FALSE(table[3].matches(AttnColumnParallelLinear(*one_, 2, 2)));
}

}  // namespace
}  // namespace headway
