#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <map>

#include "distributed/plan/small_checkpoint.h"
#include "distributed/support/parallel_test.h"
#include "headway/models/causal_lm.h"
#include "headway/plan/traffic.h"
#include "support/temporary_folder.h"

// What the planner says of a layout is what running ranks count: equal, not close.
namespace headway::testing {
namespace {

struct Shape {
  int64_t q_heads, kv_heads;
  bool tied;
  VocabGroup embedding, lm_head;
  DType dtype;
};

constexpr Shape kShapes[] = {
    {4, 2, false, VocabGroup::tp, VocabGroup::tp, DType::F32},
    {4, 2, true, VocabGroup::tp, VocabGroup::tp, DType::BF16},
    {9, 3, true, VocabGroup::lm_head_tp, VocabGroup::tp, DType::F32},
    {9, 3, false, VocabGroup::none, VocabGroup::lm_head_tp, DType::BF16},
    {14, 2, true, VocabGroup::none, VocabGroup::none, DType::F16},
    {14, 2, false, VocabGroup::lm_head_tp, VocabGroup::lm_head_tp, DType::F32},
    {28, 4, true, VocabGroup::tp, VocabGroup::none, DType::BF16},
    {28, 4, false, VocabGroup::tp, VocabGroup::lm_head_tp, DType::F32},
};

/// The part of ParameterBytes that a parameter of this name counts to.
std::string_view part_of(const std::string& name) {
  for (std::string_view part : {"embed_tokens", "qkv_proj", "o_proj", "norm", "lm_head"}) {
    if (name.find(part) != std::string::npos) return part;
  }
  return "mlp";
}

std::map<std::string_view, int64_t> loaded_bytes(const CausalLM& model) {
  std::map<std::string_view, int64_t> bytes;
  for (const NamedParameter& named : model.named_parameters()) {
    bytes[part_of(named.full_name)] += static_cast<int64_t>(named.parameter->tensor.nbytes());
  }
  return bytes;
}

/// A batch of `sequences` sequences in blocks of their own, each with `tokens` new ones after `cached`.
AttentionBatch batch_of(int64_t sequences, int64_t tokens, int64_t cached, int64_t block_size) {
  AttentionBatch batch;
  batch.query_starts = {0};
  for (int64_t s = 0; s < sequences; ++s) {
    for (int64_t position = cached; position < cached + tokens; ++position) {
      batch.positions.push_back(position);
      batch.slots.push_back(s * block_size + position);
    }
    batch.query_starts.push_back((s + 1) * tokens);
    batch.context_lengths.push_back(cached + tokens);
    batch.block_tables.push_back({static_cast<int32_t>(s)});
  }
  return batch;
}

constexpr Collective kCounted[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                   Collective::all_to_all, Collective::gather,     Collective::broadcast};

using Counts = std::map<std::pair<GroupKind, Collective>, CollectiveCount>;

Counts counted_so_far(const ParallelState& state) {
  Counts counts;
  for (Collective kind : kCounted) {
    counts[{GroupKind::world, kind}] = state.world().count(kind);
    counts[{GroupKind::tp, kind}] = state.tp().count(kind);
    counts[{GroupKind::lm_head_tp, kind}] = state.lm_head_tp().count(kind);
    counts[{GroupKind::attn_dp, kind}] = state.attn_dp().count(kind);
  }
  return counts;
}

Counts with_predicted(Counts counts, const std::vector<CollectiveUse>& uses) {
  for (const CollectiveUse& use : uses) {
    counts[{use.group, use.kind}].calls += use.calls;
    counts[{use.group, use.kind}].bytes += use.bytes;
  }
  return counts;
}

void expect_equal(const Counts& actual, const Counts& expected) {
  for (const auto& [key, count] : expected) {
    EXPECT_TRUE(actual.at(key) == count) << name_of(key.second) << " on " << name_of(key.first) << ": "
                                         << actual.at(key).calls << " calls, " << actual.at(key).bytes
                                         << " bytes instead of " << count.calls << ", " << count.bytes;
  }
}

/// A loaded model beside its plan.
class Truth {
 public:
  Truth(const Shape& shape, int attn_tp) : state_(parallel_state(attn_tp)) {
    const ModelConfig config = small_config(shape.q_heads, shape.kv_heads, shape.tied);
    const test::TemporaryFolder folder;
    write_checkpoint(folder.path(), config);
    const int64_t tp = world_size();
    const ParallelConfig parallel{tp, tp, attn_tp, shape.embedding, shape.lm_head, AttnReplicas::replicate};
    loaded_ =
        load_model(folder.path(), config, parallel, state_, {.dtype = shape.dtype, .device = device(), .progress = {}});
    plan_ = make_plan(config, parallel, shape.dtype);
    stored_plan_ = make_plan(config, parallel, DType::F32);
  }

  void expect_holdings() const {
    const RankPlan& rank = rank_plan(plan_);
    EXPECT_EQ(loaded_.model->heads().q_heads, rank.heads.q_heads);
    EXPECT_EQ(loaded_.model->heads().kv_heads, rank.heads.kv_heads);
    EXPECT_EQ(parameter_bytes(*loaded_.model), rank.parameters.total());
    EXPECT_EQ(loaded_.report.bytes_read, rank_plan(stored_plan_).parameters.total());
    std::map<std::string_view, int64_t> parts = loaded_bytes(*loaded_.model);
    EXPECT_EQ(parts["embed_tokens"], rank.parameters.embedding);
    EXPECT_EQ(parts["qkv_proj"], rank.parameters.qkv_proj);
    EXPECT_EQ(parts["o_proj"], rank.parameters.o_proj);
    EXPECT_EQ(parts["mlp"], rank.parameters.mlp);
    EXPECT_EQ(parts["norm"], rank.parameters.norms);
    EXPECT_EQ(parts["lm_head"], rank.parameters.lm_head);
  }

  void expect_kv_bytes() const {
    int64_t bytes = 0;
    for (const KVCacheView& cache : loaded_.model->allocate_kv_cache(3, 16)) {
      bytes += static_cast<int64_t>(cache.keys.nbytes() + cache.values.nbytes());
    }
    EXPECT_EQ(bytes, 3 * 16 * rank_plan(plan_).kv_bytes_per_token);
  }

  /// A chunk inside a prompt, whose logits nobody wants, then a decode step of three sequences.
  void expect_traffic() const {
    std::vector<KVCacheView> caches = loaded_.model->allocate_kv_cache(3, 16);
    expect_step({3, 5, 0, false}, caches);
    expect_step({3, 1, 5, true}, caches);
  }

 private:
  const RankPlan& rank_plan(const Plan& plan) const { return plan.ranks[global_rank().value]; }

  void expect_step(const Step& step, std::vector<KVCacheView>& caches) const {
    const Counts before = counted_so_far(state_);
    const AttentionBatch batch = batch_of(step.sequences, step.tokens_per_sequence, step.context, 16);
    const at::Tensor ids = at::arange(step.tokens(), at::kLong).to(device());
    const at::Tensor hidden = loaded_.model->forward(ids, batch, caches);
    if (step.samples) loaded_.model->compute_logits(hidden);
    expect_equal(counted_so_far(state_), with_predicted(before, collectives_of(plan_, rank_plan(plan_), step)));
  }

  const ParallelState& state_;
  LoadedModel loaded_;
  Plan plan_;
  Plan stored_plan_;  ///< in the checkpoint's dtype
};

class PlanTruth : public ::testing::TestWithParam<int> {};

TEST_P(PlanTruth, LoadedModelsHoldAndSendWhatThePlanSays) {
  if (world_size() % GetParam() != 0) GTEST_SKIP() << "skipped: attention group of " << GetParam();
  for (const Shape& shape : kShapes) {
    if (shape.q_heads < GetParam()) continue;
    SCOPED_TRACE(::testing::Message() << shape.q_heads << "/" << shape.kv_heads << " heads over " << GetParam()
                                      << (shape.tied ? ", tied" : "") << ", embedding on " << name_of(shape.embedding)
                                      << ", LM head on " << name_of(shape.lm_head));
    const Truth truth(shape, GetParam());
    truth.expect_holdings();
    truth.expect_kv_bytes();
    truth.expect_traffic();
  }
}

INSTANTIATE_TEST_SUITE_P(AttentionGroups, PlanTruth, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace headway::testing
