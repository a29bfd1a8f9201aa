#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "distributed/support/parallel_test.h"
#include "e2e/closeness.h"
#include "e2e/paged_sequences.h"
#include "e2e/reference.h"
#include "e2e/test_models.h"
#include "engine/kv_cache_size.h"
#include "headway/base/error.h"
#include "headway/engine/llm_engine.h"

// Checkpoints that say the same in other words, say something else, or lack something. Run on 2 ranks.
namespace headway::testing {
namespace {

/// Logits after the reference's positions of its long prompt, prefilled whole.
at::Tensor long_prompt_logits(CausalLM& model, const Reference& reference) {
  PagedSequences sequences(model, 1, 512);
  const at::Tensor logits = sequences.all_logits({{0, reference.long_prompt}});
  std::vector<at::Tensor> rows;
  for (const int64_t position : reference.positions) rows.push_back(logits[position]);
  return at::stack(rows);
}

struct Variant {
  std::string folder;
  std::string reference;  ///< the folder whose logits it must have
};

std::string name_of_folder(std::string folder) {
  std::replace(folder.begin(), folder.end(), '-', '_');
  return folder;
}

class Qwen2Variant : public ::testing::TestWithParam<Variant> {};

TEST_P(Qwen2Variant, HasTheLogitsOfItsReference) {
  const Reference reference = read_reference(GetParam().reference);
  const auto loaded = load_test_model({.name = GetParam().folder, .attn_tp = world_size()});
  EXPECT_TRUE(close(long_prompt_logits(*loaded.model, reference), reference.logits, kFp32Bound));
}

INSTANTIATE_TEST_SUITE_P(Rope, Qwen2Variant,
                         ::testing::Values(Variant{"rope-linear", "rope-linear"},
                                           Variant{"rope-dynamic", "rope-dynamic"}, Variant{"rope-yarn", "rope-yarn"},
                                           Variant{"rope-yarn-type", "rope-yarn"},  // Fault case B27.
                                           Variant{"rope-null", "q4kv2"},           // Fault case B27.
                                           Variant{"rope-parameters", "q4kv2"},     // Fault case B28.
                                           Variant{"rope-theta-1e4", "rope-theta-1e4"}),
                         [](const auto& info) { return name_of_folder(info.param.folder); });

INSTANTIATE_TEST_SUITE_P(SlidingWindow, Qwen2Variant,
                         ::testing::Values(Variant{"window-off", "q4kv2"},             // Fault case B30.
                                           Variant{"window-unsaid", "q4kv2"},          // Fault case B30.
                                           Variant{"window-from-2", "window-from-2"},  // Fault case B31.
                                           Variant{"window-from-4", "q4kv2-4layers"},  // Fault case B31.
                                           Variant{"window-layer-types", "window-layer-types"}),
                         [](const auto& info) { return name_of_folder(info.param.folder); });

INSTANTIATE_TEST_SUITE_P(NamesAndTies, Qwen2Variant,
                         ::testing::Values(Variant{"q12kv2-tied", "q12kv2-tied"},       // Fault case B07.
                                           Variant{"tied-head-copied", "q12kv2-tied"},  // Fault case B08.
                                           Variant{"tied-no-prefix", "q12kv2-tied"},    // Fault case B25.
                                           Variant{"tie-unsaid", "q4kv2"},              // Fault case B38.
                                           Variant{"head-dim-null", "q4kv2"},           // Fault case B32.
                                           Variant{"strays", "q4kv2"}),                 // Fault case B21.
                         [](const auto& info) { return name_of_folder(info.param.folder); });

struct BrokenVariant {
  std::string folder;
  std::vector<std::string> named;  ///< what the error must name
};

class BrokenQwen2Variant : public ::testing::TestWithParam<BrokenVariant> {};

TEST_P(BrokenQwen2Variant, IsRefusedByName) {
  try {
    load_test_model({.name = GetParam().folder, .attn_tp = world_size()});
    FAIL() << GetParam().folder << " was loaded";
  } catch (const Error& error) {
    for (const auto& part : GetParam().named) EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Checkpoints, BrokenQwen2Variant,
    ::testing::Values(BrokenVariant{"untied-no-head", {"lm_head.weight", "tie_word_embeddings=false"}},  // B10
                      BrokenVariant{"tie-unsaid-no-head", {"lm_head.weight", "tie_word_embeddings"}},    // B38
                      BrokenVariant{"untied-no-prefix", {"lm_head.weight"}},                             // B25
                      BrokenVariant{"rope-yarn-conflict", {"linear", "yarn"}},                           // B27
                      BrokenVariant{"rope-unknown", {"spiral"}},                                         // B27
                      BrokenVariant{"kv-heads-null", {"k_proj", "[32, 64], not [64, 64]"}},              // B34
                      BrokenVariant{"kv-heads-unsaid", {"k_proj", "[32, 64], not [64, 64]"}}),           // B34
    [](const auto& info) { return name_of_folder(info.param.folder); });

at::ScalarType dtype_of(const std::string& folder, std::optional<DType> asked = {}) {
  return load_test_model({.name = folder, .attn_tp = world_size(), .dtype = asked}).model->dtype();
}

// Fault case B35: the config's dtype decides where none is asked for, and where it says none that of the tensors.
TEST(Qwen2Dtype, FollowsTheConfigThenTheTensorsUnlessAsked) {
  EXPECT_EQ(dtype_of("dtype-bfloat16"), at::kBFloat16);
  EXPECT_EQ(dtype_of("dtype-bfloat16", DType::F32), at::kFloat);
  EXPECT_EQ(dtype_of("dtype-unsaid"), at::kFloat);
  EXPECT_EQ(dtype_of("dtype-unsaid-bf16"), at::kBFloat16);
  EXPECT_EQ(dtype_of("dtype-unsaid-fp16"), at::kHalf);
  EXPECT_EQ(dtype_of("dtype-unsaid-fp16", DType::BF16), at::kBFloat16);
}

struct CacheSize {
  int64_t blocks = 0;
  int64_t block_bytes = 0;
  friend bool operator==(const CacheSize&, const CacheSize&) = default;
};

CacheSize cache_size_of(const std::string& folder) {
  const auto loaded = load_test_model({.name = folder, .attn_tp = world_size()});
  EngineOptions options;
  options.max_num_seqs = 3;
  LLMEngine engine(*loaded.model, parallel_state(world_size()), options);
  if (!engine.is_driver()) engine.follow();
  return {engine.kv_blocks(), kv_block_bytes(*loaded.model, engine.block_size())};
}

// Fault case B30: a window that is not used does not size the cache either.
TEST(Qwen2Window, AnUnusedOneDoesNotSizeTheCache) {
  const CacheSize whole = cache_size_of("q4kv2");
  EXPECT_GE(whole.blocks, 3 * 512 / 256);
  EXPECT_EQ(cache_size_of("window-off"), whole);
  EXPECT_EQ(cache_size_of("window-unsaid"), whole);
}

}  // namespace
}  // namespace headway::testing
