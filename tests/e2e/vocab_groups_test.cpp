#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "distributed/support/parallel_test.h"
#include "e2e/closeness.h"
#include "e2e/paged_sequences.h"
#include "e2e/reference.h"
#include "e2e/test_models.h"

// Embedding and LM head on every pair of groups, tied and untied, with a vocabulary of 321 rows. Run on 4 ranks with
// attention over 2, so that tp, lm_head_tp and none are three different groups.
namespace headway::testing {
namespace {

using Choice = std::tuple<std::string, VocabGroup, VocabGroup>;

class VocabGroups : public ::testing::TestWithParam<Choice> {};

TEST_P(VocabGroups, ChangeNoLogit) {
  const auto& [name, embedding_group, lm_head_group] = GetParam();
  const Reference reference = read_reference(name);
  const auto loaded = load_test_model(
      {.name = name, .attn_tp = world_size() / 2, .embedding_group = embedding_group, .lm_head_group = lm_head_group});
  PagedSequences sequences(*loaded.model, 1, 512);
  const at::Tensor logits = sequences.all_logits({{0, reference.long_prompt}});
  for (size_t i = 0; i < reference.positions.size(); ++i) {
    EXPECT_TRUE(close(logits[reference.positions[i]], reference.logits[static_cast<int64_t>(i)], kFp32Bound));
  }
}

const auto kGroups = ::testing::Values(VocabGroup::tp, VocabGroup::lm_head_tp, VocabGroup::none);

INSTANTIATE_TEST_SUITE_P(Choices, VocabGroups,
                         ::testing::Combine(::testing::Values("q9kv3", "q9kv3-tied"), kGroups, kGroups),
                         [](const auto& info) {
                           const bool tied = std::get<0>(info.param) == "q9kv3-tied";
                           return std::string(tied ? "tied" : "untied") + "_embedding_" +
                                  std::string(name_of(std::get<1>(info.param))) + "_head_" +
                                  std::string(name_of(std::get<2>(info.param)));
                         });

}  // namespace
}  // namespace headway::testing
