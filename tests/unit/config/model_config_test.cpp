#include "headway/config/model_config.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "headway/base/error.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headway {
namespace {

using nlohmann::json;
using test::error_of;
using test::HasAll;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The T4 model: every key that has no default, and nothing else.
json t4() {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"hidden_size", 64},
          {"intermediate_size", 128},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"vocab_size", 320},
          {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 1000000.0}};
}

json with(json config, const json& changes) {
  config.update(changes);
  return config;
}

json without(json config, const std::string& key) {
  config.erase(key);
  return config;
}

ModelConfig read(const json& config, const json& generation = nullptr) {
  const test::TemporaryFolder folder;
  folder.write("config.json", config.dump());
  if (!generation.is_null()) folder.write("generation_config.json", generation.dump());
  return ModelConfig::from_pretrained(folder.path());
}

std::string refusal(const json& config) {
  return error_of<ConfigError>([&] { read(config); });
}

TEST(ModelConfig, ReadsEveryKeyOfAnOldStyleConfig) {
  const ModelConfig config = read({{"architectures", {"Qwen2ForCausalLM", "Other"}},
                                   {"attention_dropout", 0.0},
                                   {"bos_token_id", 151643},
                                   {"eos_token_id", 151645},
                                   {"hidden_act", "silu"},
                                   {"hidden_size", 3584},
                                   {"intermediate_size", 18944},
                                   {"max_position_embeddings", 32768},
                                   {"max_window_layers", 28},
                                   {"model_type", "qwen2"},
                                   {"num_attention_heads", 28},
                                   {"num_hidden_layers", 29},
                                   {"num_key_value_heads", 4},
                                   {"rms_norm_eps", 2e-06},
                                   {"rope_theta", 1000001.0},
                                   {"sliding_window", 131072},
                                   {"tie_word_embeddings", true},
                                   {"torch_dtype", "bfloat16"},
                                   {"use_sliding_window", false},
                                   {"vocab_size", 152064}});
  EXPECT_EQ(config.architecture, "Qwen2ForCausalLM");
  EXPECT_EQ(config.hidden_size, 3584);
  EXPECT_EQ(config.intermediate_size, 18944);
  EXPECT_EQ(config.num_layers, 29);
  EXPECT_EQ(config.total_q_heads, 28);
  EXPECT_EQ(config.total_kv_heads, 4);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.vocab_size, 152064);
  EXPECT_EQ(config.max_position_embeddings, 32768);
  EXPECT_EQ(config.rms_norm_eps, 2e-06);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.rope.type, RopeType::standard);
  EXPECT_EQ(config.rope.theta, 1000001.0);
  EXPECT_EQ(config.sliding_window, std::vector<std::optional<int64_t>>(29));
  EXPECT_EQ(config.dtype, DType::BF16);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(151645));
}

TEST(ModelConfig, TakesTheFolderOrTheFileAndTheGenerationConfigBesideIt) {
  const test::TemporaryFolder folder;
  const auto file = folder.write("config.json", t4().dump());
  folder.write("generation_config.json", R"({"eos_token_id": [7, 5]})");
  EXPECT_THAT(ModelConfig::from_pretrained(folder.path()).eos_token_ids, ElementsAre(7, 5));
  EXPECT_THAT(ModelConfig::from_pretrained(file).eos_token_ids, ElementsAre(7, 5));
}

TEST(ModelConfig, KeysWithoutADefaultAreRequiredAndNamed) {
  for (const std::string key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                "vocab_size", "max_position_embeddings", "rms_norm_eps", "rope_theta"}) {
    EXPECT_THAT(refusal(without(t4(), key)), HasAll("config.json: " + key + " is absent", "no default"));
    EXPECT_THAT(refusal(with(t4(), {{key, nullptr}})), HasAll(key));
  }
}

TEST(ModelConfig, ValuesOutOfRangeOrOfAnotherTypeAreNamed) {
  for (const std::string key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                "num_key_value_heads", "vocab_size", "max_position_embeddings", "head_dim"}) {
    for (const json& bad : {json(0), json(-64), json(64.5), json("64"), json(true), json(json::array({64})),
                            json(uint64_t{18446744073709551615u}), json(int64_t{1} << 40)}) {
      EXPECT_THAT(refusal(with(t4(), {{key, bad}})), HasAll("config.json", key + " is " + bad.dump()));
    }
  }
  EXPECT_THAT(refusal(with(t4(), {{"rms_norm_eps", 0}})), HasAll("rms_norm_eps is 0"));
  EXPECT_THAT(refusal(with(t4(), {{"tie_word_embeddings", 1}})), HasAll("tie_word_embeddings is 1", "true or false"));
  EXPECT_THAT(refusal(with(t4(), {{"rope_theta", "1e6"}})), HasAll("rope_theta is \"1e6\""));
}

TEST(ModelConfig, ProductsStayBounded) {
  EXPECT_THAT(refusal(with(t4(), {{"num_attention_heads", 16384}, {"num_key_value_heads", 1}, {"head_dim", 8192}})),
              HasAll("num_attention_heads 16384", "head_dim 8192"));
}

TEST(ModelConfig, WhatWouldBeComputedDifferentlyIsRefused) {
  EXPECT_THAT(refusal(with(t4(), {{"hidden_act", "gelu"}})), HasAll("hidden_act is \"gelu\"", "silu"));
  EXPECT_THAT(refusal(with(t4(), {{"use_mrope", true}})), HasAll("use_mrope is true"));
  EXPECT_THAT(refusal(with(t4(), {{"quantization_config", {{"quant_method", "awq"}}}})), HasAll("awq"));
  EXPECT_THAT(refusal(with(t4(), {{"partial_rotary_factor", 0.5}})), HasAll("partial_rotary_factor is 0.5"));
  EXPECT_NO_THROW(read(with(t4(), {{"hidden_act", nullptr}, {"use_mrope", false}, {"partial_rotary_factor", 1}})));
}

TEST(ModelConfig, TheArchitectureIsRecordedAndDerivedOnlyFromQwen2) {
  EXPECT_EQ(read(with(t4(), {{"architectures", {"Qwen2Model"}}})).architecture, "Qwen2Model");
  EXPECT_EQ(read(with(without(t4(), "architectures"), {{"model_type", "qwen2"}})).architecture, "Qwen2ForCausalLM");
  EXPECT_THAT(refusal(with(without(t4(), "architectures"), {{"model_type", "llama"}})), HasAll("architectures"));
  EXPECT_THAT(refusal(with(t4(), {{"architectures", json::array()}})), HasAll("architectures is []"));
}

TEST(ModelConfig, FilesThatCannotBeReadAreNamed) {
  const test::TemporaryFolder folder;
  const auto error = [&] { return error_of<CheckpointError>([&] { ModelConfig::from_pretrained(folder.path()); }); };
  EXPECT_THAT(error(), HasAll(folder.path().string(), "no config.json"));
  EXPECT_THAT(error_of<CheckpointError>([&] { ModelConfig::from_pretrained(folder / "absent"); }),
              HasAll((folder / "absent").string(), "no such file"));
  folder.write("config.json", "{\"hidden_size\": 64,");
  EXPECT_THAT(error(), HasAll("config.json", "not valid JSON"));
  folder.write("config.json", R"({"hidden_size": 64, "hidden_size": 128})");
  EXPECT_THAT(error(), HasAll("config.json", "duplicate key \"hidden_size\""));
  folder.write("config.json", std::string(100000, '['));
  EXPECT_THAT(error(), HasAll("config.json", "nested deeper"));
  folder.write("config.json", std::string((size_t{1} << 20) + 1, ' '));
  EXPECT_THAT(error(), HasAll("config.json", "1048577"));
  folder.write("config.json", "[1]");
  EXPECT_THAT(error_of<ConfigError>([&] { ModelConfig::from_pretrained(folder.path()); }), HasAll("object", "[1]"));
  folder.write("config.json", t4().dump());
  folder.write("generation_config.json", "{");
  EXPECT_THAT(error(), HasAll("generation_config.json", "not valid JSON"));
}

// Fault case B32.
TEST(ModelConfig, HeadDimIsDerivedWhenAbsentOrNull) {
  EXPECT_EQ(read(t4()).head_dim, 16);
  EXPECT_EQ(read(with(t4(), {{"head_dim", nullptr}})).head_dim, 16);
  EXPECT_EQ(read(with(t4(), {{"head_dim", 24}})).head_dim, 24);
  EXPECT_THAT(refusal(with(t4(), {{"hidden_size", 66}})), HasAll("hidden_size 66", "num_attention_heads 4"));
  EXPECT_THAT(refusal(with(t4(), {{"head_dim", 15}})), HasAll("head_dim is 15"));
}

// Fault case B34: null and absent both mean one KV head per query head.
TEST(ModelConfig, KeyValueHeadsFollowTheQueryHeadsWhenNullOrAbsent) {
  EXPECT_EQ(read(with(t4(), {{"num_key_value_heads", nullptr}})).total_kv_heads, 4);
  EXPECT_EQ(read(without(t4(), "num_key_value_heads")).total_kv_heads, 4);
  EXPECT_THAT(refusal(with(t4(), {{"num_key_value_heads", 3}})),
              HasAll("num_attention_heads 4", "num_key_value_heads 3"));
}

// Fault case B35.
TEST(ModelConfig, DtypeHasTwoKeysAndTwoSpellings) {
  for (const std::string key : {"dtype", "torch_dtype"}) {
    EXPECT_EQ(read(with(t4(), {{key, "bfloat16"}})).dtype, DType::BF16);
    EXPECT_EQ(read(with(t4(), {{key, "torch.bfloat16"}})).dtype, DType::BF16);
  }
  EXPECT_EQ(read(with(t4(), {{"dtype", "float16"}, {"torch_dtype", "torch.float16"}})).dtype, DType::F16);
  EXPECT_EQ(read(t4()).dtype, std::nullopt);
  EXPECT_THAT(refusal(with(t4(), {{"dtype", "bfloat16"}, {"torch_dtype", "float16"}})),
              HasAll("dtype is \"bfloat16\"", "torch_dtype is \"float16\""));
  EXPECT_THAT(refusal(with(t4(), {{"dtype", "int8"}})), HasAll("dtype is \"int8\""));
}

// Fault case B38.
TEST(ModelConfig, EmbeddingsAreUntiedWhenTheKeyIsAbsent) {
  EXPECT_FALSE(read(t4()).tie_word_embeddings);
}

// Fault cases F01 and F02: every id that either file names ends a sequence.
TEST(ModelConfig, EndOfSequenceIdsAreTheUnionOfBothFiles) {
  EXPECT_THAT(read(with(t4(), {{"eos_token_id", 151645}}), {{"eos_token_id", {151645, 151643}}}).eos_token_ids,
              ElementsAre(151645, 151643));
  EXPECT_THAT(read(with(t4(), {{"eos_token_id", {3, 9, 3}}}), {{"eos_token_id", 4}}).eos_token_ids,
              ElementsAre(3, 9, 4));
  EXPECT_THAT(read(with(t4(), {{"eos_token_id", nullptr}}), {{"eos_token_id", nullptr}}).eos_token_ids, IsEmpty());
  for (const json& bad : {json(-1), json("3"), json(1.5), json(true), json::array({3, "x"}), json(int64_t{1} << 31)}) {
    EXPECT_THAT(refusal(with(t4(), {{"eos_token_id", bad}})), HasAll("config.json: eos_token_id is " + bad.dump()));
  }
  EXPECT_THAT(error_of<ConfigError>([] {
                read(t4(), {{"eos_token_id", -1}});
              }),
              HasAll("generation_config.json: eos_token_id is -1"));
}

// Fault case B30.
TEST(ModelConfig, NoLayerSlidesUnlessUseSlidingWindowIsTrue) {
  const std::vector<std::optional<int64_t>> none(4);
  EXPECT_EQ(read(with(t4(), {{"sliding_window", 8}, {"use_sliding_window", false}})).sliding_window, none);
  EXPECT_EQ(read(with(t4(), {{"sliding_window", 8}, {"max_window_layers", 0}})).sliding_window, none);
}

// Fault case B31.
TEST(ModelConfig, LayersSlideFromMaxWindowLayersOnAndLayerTypesWin) {
  const json sliding = with(t4(), {{"use_sliding_window", true}, {"sliding_window", 8}});
  const std::optional<int64_t> full;
  EXPECT_THAT(read(with(sliding, {{"max_window_layers", 2}})).sliding_window, ElementsAre(full, full, 8, 8));
  EXPECT_THAT(read(with(sliding, {{"max_window_layers", 4}})).sliding_window, ElementsAre(full, full, full, full));
  const json types = {"sliding_attention", "full_attention", "sliding_attention", "full_attention"};
  EXPECT_THAT(read(with(sliding, {{"max_window_layers", 4}, {"layer_types", types}})).sliding_window,
              ElementsAre(8, full, 8, full));
}

TEST(ModelConfig, SlidingWindowsThatDoNotAddUpAreRefused) {
  const json sliding = with(t4(), {{"use_sliding_window", true}, {"sliding_window", 8}, {"max_window_layers", 2}});
  EXPECT_EQ(read(with(sliding, {{"sliding_window", nullptr}})).sliding_window, std::vector<std::optional<int64_t>>(4));
  EXPECT_THAT(refusal(without(sliding, "sliding_window")), HasAll("sliding_window is absent"));
  EXPECT_THAT(refusal(without(sliding, "max_window_layers")), HasAll("max_window_layers is absent"));
  EXPECT_THAT(refusal(with(sliding, {{"sliding_window", 0}})), HasAll("sliding_window is 0"));
  EXPECT_THAT(refusal(with(sliding, {{"layer_types", {"full_attention"}}})), HasAll("layer_types", "4 entries"));
  const json types = {"full_attention", "full_attention", "full_attention", "chunked_attention"};
  EXPECT_THAT(refusal(with(sliding, {{"layer_types", types}})), HasAll("layer_types[3] is \"chunked_attention\""));
  const json slides = {"full_attention", "sliding_attention", "full_attention", "full_attention"};
  EXPECT_THAT(refusal(with(t4(), {{"layer_types", slides}, {"sliding_window", 8}})),
              HasAll("layer_types[1]", "use_sliding_window is not true"));
}

}  // namespace
}  // namespace headway
