#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "distributed/support/parallel_test.h"
#include "e2e/closeness.h"
#include "e2e/reference.h"
#include "e2e/test_models.h"
#include "headway/engine/llm_engine.h"
#include "headway/layers/replica_exchange.h"

// Attention replicas that own sequences, against what transformers computes: whole models on every attention size that
// leaves several replicas, and the movement of tokens by value.
namespace headway::testing {
namespace {

using Choice = std::tuple<std::string, VocabGroup>;

/// A batch of new sequences, one for each of `prompts`, in blocks of their own.
AttentionBatch batch_of(const std::vector<std::vector<int64_t>>& prompts, int64_t blocks_each, int64_t block_size) {
  AttentionBatch batch;
  batch.query_starts.push_back(0);
  for (size_t s = 0; s < prompts.size(); ++s) {
    const int64_t first = static_cast<int64_t>(s) * blocks_each;
    std::vector<int32_t> table;
    for (int64_t i = 0; i < blocks_each; ++i) table.push_back(static_cast<int32_t>(first + i));
    for (int64_t position = 0; position < static_cast<int64_t>(prompts[s].size()); ++position) {
      batch.positions.push_back(position);
      batch.slots.push_back(first * block_size + position);
    }
    batch.query_starts.push_back(batch.num_tokens());
    batch.context_lengths.push_back(static_cast<int64_t>(prompts[s].size()));
    batch.block_tables.push_back(table);
  }
  return batch;
}

class AttnReplicasOwn : public ::testing::TestWithParam<Choice> {
 protected:
  static LoadedModel load(int attn_tp) {
    const auto& [name, group] = GetParam();
    return load_test_model({.name = name,
                            .attn_tp = attn_tp,
                            .embedding_group = group,
                            .lm_head_group = group,
                            .attn_replicas = AttnReplicas::dp});
  }
};

/// Runs the whole work with attention over each size that leaves several replicas.
template <typename Work>
void for_each_attn_tp(const Work& work) {
  for (const int attn_tp : divisors(world_size())) {
    if (attn_tp == world_size()) continue;
    SCOPED_TRACE(::testing::Message() << "attention over " << attn_tp);
    work(attn_tp);
  }
}

// Fault cases C20 and C22: replicas with no rows, with uneven and with equal ones; each gets its own rows back.
TEST_P(AttnReplicasOwn, LogitsAreThoseOfTransformers) {
  const Reference reference = read_reference(std::get<0>(GetParam()));
  const auto tokens = static_cast<int64_t>(reference.long_prompt.size());
  for_each_attn_tp([&](int attn_tp) {
    const ParallelState& state = parallel_state(attn_tp);
    const LoadedModel loaded = load(attn_tp);
    const int replicas = state.attn_dp().size();
    ASSERT_EQ(loaded.model->replicas(), replicas);
    for (int owner = 0; owner < replicas; ++owner) {
      auto caches = loaded.model->allocate_kv_cache(64, 16);
      const bool own = state.attn_dp().rank().value == owner;
      std::vector<std::vector<int64_t>> prompts;
      if (own) prompts.push_back(reference.long_prompt);
      AttentionBatch batch = batch_of(prompts, 64, 16);
      batch.replica_tokens.assign(replicas, 0);
      batch.replica_tokens[owner] = tokens;
      const at::Tensor ids = at::tensor(reference.long_prompt, at::kLong).to(device());
      at::Tensor hidden = loaded.model->forward(ids, batch, caches);
      ASSERT_EQ(hidden.size(0), own ? tokens : 0);
      hidden = state.attn_dp().all_gather(hidden, 0, batch.replica_tokens);
      const at::Tensor logits = loaded.model->compute_logits(hidden).to(at::kCPU);
      for (size_t i = 0; i < reference.positions.size(); ++i) {
        EXPECT_TRUE(close(logits[reference.positions[i]], reference.logits[static_cast<int64_t>(i)], kFp32Bound));
      }
    }
  });
}

// One request alone, which leaves replicas idle, and several that are spread over them, in chunks and with preemption.
TEST_P(AttnReplicasOwn, GreedyTokensAreThoseOfTransformers) {
  const Reference reference = read_reference(std::get<0>(GetParam()));
  for_each_attn_tp([&](int attn_tp) {
    const LoadedModel loaded = load(attn_tp);
    for (const size_t count : {size_t{1}, reference.prompts.size()}) {
      EngineOptions options;
      options.max_batch_tokens = 24;
      options.max_num_seqs = 8;
      options.kv_blocks = 16;
      options.max_model_len = 256;
      LLMEngine engine(*loaded.model, parallel_state(attn_tp), options);
      if (!engine.is_driver()) {
        engine.follow();
        continue;
      }
      std::map<RequestId, size_t> prompts;
      for (size_t i = 0; i < count; ++i) {
        SamplingParams params;
        params.max_tokens = static_cast<int64_t>(reference.greedy[i].size());
        params.ignore_eos = true;
        const auto& prompt = reference.prompts[i];
        prompts[engine.add_request({prompt.begin(), prompt.end()}, params)] = i;
      }
      std::map<RequestId, std::vector<int64_t>> texts;
      while (engine.has_unfinished()) {
        for (const RequestOutput& output : engine.step()) {
          auto& text = texts[output.request];
          text.insert(text.end(), output.token_ids.begin(), output.token_ids.end());
        }
      }
      for (const auto& [id, index] : prompts) EXPECT_EQ(texts[id], reference.greedy[index]) << index;
      EXPECT_EQ(engine.free_kv_blocks(), 16 * loaded.model->replicas());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Choices, AttnReplicasOwn,
                         ::testing::Combine(::testing::Values("q9kv3", "q12kv2-tied"),
                                            ::testing::Values(VocabGroup::tp, VocabGroup::lm_head_tp,
                                                              VocabGroup::none)),
                         [](const auto& info) {
                           const bool tied = std::get<0>(info.param) == "q12kv2-tied";
                           return std::string(tied ? "tied" : "untied") + "_vocabulary_on_" +
                                  std::string(name_of(std::get<1>(info.param)));
                         });

/// Distinct for every row and rank.
at::Tensor rows_of(int64_t rows, float base) {
  return at::arange(rows * 2, at::kFloat).add_(base).view({rows, 2});
}

TEST(ReplicaExchange, MovesRowsAndAddsEveryContributionOnce) {
  for_each_attn_tp([](int attn_tp) {
    const ParallelState& state = parallel_state(attn_tp);
    const int replicas = state.attn_dp().size();
    const int replica = state.attn_dp().rank().value;
    const ReplicaExchange exchange(state);
    for (const auto& first_two : {std::pair{3, 0}, std::pair{3, 5}, std::pair{2, 2}, std::pair{0, 4}}) {
      std::vector<int64_t> tokens(replicas, 1);
      tokens[0] = first_two.first;
      tokens[1] = first_two.second;
      std::vector<at::Tensor> parts;
      int64_t total = 0;
      for (int r = 0; r < replicas; ++r) {
        parts.push_back(rows_of(tokens[r], 1000.0f * static_cast<float>(r)));
        total += tokens[r];
      }
      EXPECT_TRUE(exchange.gather(parts[replica].to(device()), tokens).cpu().equal(at::cat(parts)));
      at::Tensor sum = at::zeros({total, 2});
      for (int r = 0; r < world_size(); ++r) sum += rows_of(total, 100.0f * static_cast<float>(r));
      const Range own = exchange.own_rows(tokens);
      EXPECT_EQ(own.size(), tokens[replica]);
      const at::Tensor mine = rows_of(total, 100.0f * static_cast<float>(global_rank().value)).to(device());
      EXPECT_TRUE(exchange.sum_to_own(mine, tokens).cpu().equal(sum.narrow(0, own.begin, own.size())));
    }
    EXPECT_THROW(exchange.own_rows(std::vector<int64_t>(replicas + 1, 1)), ArgumentError);
  });
}

}  // namespace
}  // namespace headway::testing
