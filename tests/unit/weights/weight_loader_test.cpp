#include "headway/weights/weight_loader.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "headway/base/error.h"
#include "support/expect_error.h"
#include "unit/weights/loader_fixture.h"

namespace headway {
namespace {

using test::allotted;
using test::Checkpoint;
using test::distinct;
using test::HasAll;
using test::whole;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CheckpointNames qwen_names() {
  CheckpointNames names;
  names.sections = {{"qkv_proj", {{"q", "q_proj"}, {"k", "k_proj"}, {"v", "v_proj"}}},
                    {"gate_up_proj", {{"gate", "gate_proj"}, {"up", "up_proj"}}}};
  names.optional_prefix = "model.";
  return names;
}

CheckpointNames tied_names() {
  CheckpointNames names = qwen_names();
  names.aliases = {{"lm_head.weight", "model.embed_tokens.weight"}};
  names.ignorable = {"lm_head.weight"};
  return names;
}

CheckpointNames untied_names() {
  CheckpointNames names = qwen_names();
  names.hints = {{"lm_head.weight", "tie_word_embeddings=false"}};
  return names;
}

/// The rows of q, k and v (4, 2 and 2 in all) that rank `rank` of 2 holds; `columns` 0 stands for a bias.
NamedParameter qkv_of_rank(int64_t rank, int64_t columns) {
  const auto shape = [&](int64_t rows) {
    return columns == 0 ? std::vector<int64_t>{rows} : std::vector<int64_t>{rows, columns};
  };
  return allotted(columns == 0 ? "model.layers.0.self_attn.qkv_proj.bias" : "model.layers.0.self_attn.qkv_proj.weight",
                  shape(4),
                  {{"q", shape(4), 0, {2 * rank, 2 * rank + 2}, 0, 0},
                   {"k", shape(2), 0, {rank, rank + 1}, 2, 4},
                   {"v", shape(2), 0, {rank, rank + 1}, 3, 6}});
}

std::vector<float> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(c10::kFloat).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

std::string refusal(const Checkpoint& checkpoint, const std::vector<NamedParameter>& parameters,
                    const CheckpointNames& names = {}) {
  return test::error_of<CheckpointError>([&] { checkpoint.load(parameters, names); });
}

TEST(WeightLoader, ReadsExactlyTheRowsAndColumnsOfThisRank) {
  const Checkpoint checkpoint({{"column.weight", distinct(7, 5)},
                               {"column.bias", at::arange(7, at::kFloat)},
                               {"row.weight", distinct(3, 7, 0.5)}});
  const std::vector<Range> cuts{{0, 2}, {2, 4}, {4, 7}};
  int64_t bytes_of_all_ranks = 0;
  for (const Range cut : cuts) {
    const NamedParameter column = allotted("column.weight", {cut.size(), 5}, {{"", {7, 5}, 0, cut}});
    const NamedParameter bias = allotted("column.bias", {cut.size()}, {{"", {7}, 0, cut}});
    const NamedParameter row = allotted("row.weight", {3, cut.size()}, {{"", {3, 7}, 1, cut}});
    const LoadReport report = checkpoint.load({column, bias, row});
    EXPECT_TRUE(column.parameter->tensor.equal(distinct(7, 5).narrow(0, cut.begin, cut.size())));
    EXPECT_TRUE(bias.parameter->tensor.equal(at::arange(cut.begin, cut.end, at::kFloat)));
    EXPECT_TRUE(row.parameter->tensor.equal(distinct(3, 7, 0.5).narrow(1, cut.begin, cut.size())));
    EXPECT_EQ(report.bytes_read, cut.size() * (5 + 1 + 3) * 4);
    EXPECT_THAT(report.unexpected, IsEmpty());
    bytes_of_all_ranks += report.bytes_read;
  }
  EXPECT_EQ(bytes_of_all_ranks, (35 + 7 + 21) * 4);
}

TEST(WeightLoader, CutsTheMiddleDimensionOfThree) {
  const at::Tensor full = at::arange(2 * 5 * 3, at::kFloat).view({2, 5, 3});
  const Checkpoint checkpoint({{"a.weight", full}});
  const NamedParameter parameter = allotted("a.weight", {2, 2, 3}, {{"", {2, 5, 3}, 1, {2, 4}}});
  checkpoint.load({parameter});
  EXPECT_TRUE(parameter.parameter->tensor.equal(full.narrow(1, 2, 2)));
}

TEST(WeightLoader, EmptyShardsReadNothing) {
  const Checkpoint checkpoint({{"a.weight", distinct(3, 5)}, {"b.weight", at::empty({0, 5})}});
  const NamedParameter empty = allotted("a.weight", {0, 5}, {{"", {3, 5}, 0, {3, 3}}});
  EXPECT_EQ(checkpoint.load({empty, whole("b.weight", {0, 5})}).bytes_read, 0);
}

// Fault cases B04, B05 and A19: each section of each rank is cut on its own.
TEST(WeightLoader, SectionsComeFromTensorsOfTheirOwn) {
  const at::Tensor q = distinct(4, 3), k = distinct(2, 3, 0.25), v = distinct(2, 3, 0.5);
  const at::Tensor q_bias = at::arange(4, at::kFloat), k_bias = at::arange(100, 102, at::kFloat),
                   v_bias = at::arange(200, 202, at::kFloat);
  const Checkpoint checkpoint({{"model.layers.0.self_attn.v_proj.weight", v},
                               {"model.layers.0.self_attn.q_proj.bias", q_bias},
                               {"model.layers.0.self_attn.q_proj.weight", q},
                               {"model.layers.0.self_attn.k_proj.bias", k_bias},
                               {"model.layers.0.self_attn.v_proj.bias", v_bias},
                               {"model.layers.0.self_attn.k_proj.weight", k}});
  for (int64_t rank : {0, 1}) {
    const NamedParameter weight = qkv_of_rank(rank, 3);
    const NamedParameter bias = qkv_of_rank(rank, 0);
    EXPECT_EQ(checkpoint.load({weight, bias}, qwen_names()).bytes_read, (4 * 3 + 4) * 4);
    EXPECT_TRUE(weight.parameter->tensor.equal(
        at::cat({q.narrow(0, 2 * rank, 2), k.narrow(0, rank, 1), v.narrow(0, rank, 1)})));
    EXPECT_TRUE(bias.parameter->tensor.equal(
        at::cat({q_bias.narrow(0, 2 * rank, 2), k_bias.narrow(0, rank, 1), v_bias.narrow(0, rank, 1)})));
  }
}

// Fault case B06.
TEST(WeightLoader, ATensorFusedOnDiskIsCutSectionBySection) {
  const Checkpoint checkpoint({{"model.layers.0.self_attn.qkv_proj.weight", at::arange(8, at::kFloat).view({8, 1})},
                               {"model.layers.0.mlp.gate_up_proj.weight", at::arange(6, at::kFloat).view({6, 1})}});
  const std::vector<std::vector<float>> qkv_rows{{0, 1, 4, 6}, {2, 3, 5, 7}};
  const std::vector<Range> cuts{{0, 2}, {2, 3}};
  const std::vector<std::vector<float>> gate_up_rows{{0, 1, 3, 4}, {2, 5}};
  for (size_t rank : {0, 1}) {
    const NamedParameter qkv = qkv_of_rank(static_cast<int64_t>(rank), 1);
    const Range cut = cuts[rank];
    const NamedParameter gate_up = allotted("model.layers.0.mlp.gate_up_proj.weight", {2 * cut.size(), 1},
                                            {{"gate", {3, 1}, 0, cut, 0, 0}, {"up", {3, 1}, 0, cut, cut.size(), 3}});
    const LoadReport report = checkpoint.load({qkv, gate_up}, qwen_names());
    EXPECT_EQ(report.bytes_read, (4 + 2 * cut.size()) * 4);
    EXPECT_EQ(values(qkv.parameter->tensor), qkv_rows[rank]);
    EXPECT_EQ(values(gate_up.parameter->tensor), gate_up_rows[rank]);
  }
}

TEST(WeightLoader, ATensorBothFusedAndSeparateIsRefused) {
  const Checkpoint checkpoint({{"model.layers.0.self_attn.qkv_proj.weight", distinct(8, 3)},
                               {"model.layers.0.self_attn.q_proj.weight", distinct(4, 3)}});
  EXPECT_THAT(refusal(checkpoint, {qkv_of_rank(0, 3)}, qwen_names()), HasAll("unexpected", "q_proj.weight"));
}

// Fault case B07: the head of a tied model is cut from the embedding, whether they share memory or not.
TEST(WeightLoader, ATiedHeadIsReadFromTheEmbedding) {
  const Checkpoint checkpoint({{"model.embed_tokens.weight", distinct(6, 2)}});
  const NamedParameter embedding = allotted("model.embed_tokens.weight", {3, 2}, {{"", {6, 2}, 0, {3, 6}}});
  const NamedParameter head = allotted("lm_head.weight", {2, 2}, {{"", {6, 2}, 0, {2, 4}}});
  EXPECT_EQ(checkpoint.load({embedding, head}, tied_names()).bytes_read, (6 + 4) * 4);
  EXPECT_TRUE(embedding.parameter->tensor.equal(distinct(6, 2).narrow(0, 3, 3)));
  EXPECT_TRUE(head.parameter->tensor.equal(distinct(6, 2).narrow(0, 2, 2)));
}

// Fault case B08.
TEST(WeightLoader, ARedundantHeadOfATiedModelIsLeftAlone) {
  const Checkpoint checkpoint({{"model.embed_tokens.weight", distinct(6, 2)}, {"lm_head.weight", distinct(6, 2, 0.5)}});
  const NamedParameter head = whole("lm_head.weight", {6, 2});
  const LoadReport report = checkpoint.load({head}, tied_names());
  EXPECT_TRUE(head.parameter->tensor.equal(distinct(6, 2)));
  EXPECT_THAT(report.unexpected, ElementsAre("lm_head.weight"));
}

// Fault case B10, and B38 where the key is absent.
TEST(WeightLoader, AnUntiedModelWithoutAHeadIsRefused) {
  const Checkpoint checkpoint({{"model.embed_tokens.weight", distinct(6, 2)}});
  EXPECT_THAT(refusal(checkpoint, {whole("model.embed_tokens.weight", {6, 2}), whole("lm_head.weight", {6, 2})},
                      untied_names()),
              HasAll("1 tensors are missing", "\"lm_head.weight\" (tie_word_embeddings=false)"));
}

// Fault case B25.
TEST(WeightLoader, ACheckpointWithoutTheModelPrefixLoads) {
  const Checkpoint checkpoint({{"embed_tokens.weight", distinct(6, 2)},
                               {"layers.0.self_attn.q_proj.weight", distinct(4, 3)},
                               {"layers.0.self_attn.k_proj.weight", distinct(2, 3, 0.25)},
                               {"layers.0.self_attn.v_proj.weight", distinct(2, 3, 0.5)},
                               {"norm.weight", at::arange(2, at::kFloat)}});
  const std::vector<NamedParameter> parameters{whole("model.embed_tokens.weight", {6, 2}), qkv_of_rank(1, 3),
                                               whole("model.norm.weight", {2}), whole("lm_head.weight", {6, 2})};
  checkpoint.load(parameters, tied_names());
  EXPECT_TRUE(parameters[0].parameter->tensor.equal(distinct(6, 2)));
  EXPECT_TRUE(parameters[1].parameter->tensor.narrow(0, 0, 2).equal(distinct(4, 3).narrow(0, 2, 2)));
  EXPECT_TRUE(parameters[2].parameter->tensor.equal(at::arange(2, at::kFloat)));
  EXPECT_TRUE(parameters[3].parameter->tensor.equal(distinct(6, 2)));
  EXPECT_THAT(refusal(checkpoint, parameters, untied_names()), HasAll("lm_head.weight", "tie_word_embeddings=false"));
}

TEST(WeightLoader, EverythingThatIsWrongIsListedAtOnceAndNothingIsCopied) {
  const Checkpoint checkpoint({{"good.weight", distinct(2, 3)},
                               {"narrow.weight", distinct(2, 3)},
                               {"counts.weight", at::arange(4, at::kInt)},
                               {"stray.weight", distinct(1, 1)}});
  const std::vector<NamedParameter> parameters{whole("good.weight", {2, 3}), whole("narrow.weight", {2, 4}),
                                               whole("counts.weight", {4}), whole("lost.weight", {2})};
  const std::string error = refusal(checkpoint, parameters);
  EXPECT_THAT(error, HasAll(checkpoint.index().folder().string(), "1 tensors are missing: \"lost.weight\"",
                            "1 tensors are unexpected: \"stray.weight\"", "2 tensors do not fit",
                            "\"narrow.weight\" (shape [2, 3], not [2, 4])",
                            "\"counts.weight\" (I32 cannot be converted to Float)"));
  for (const NamedParameter& named : parameters) {
    EXPECT_TRUE(named.parameter->tensor.eq(-1).all().item<bool>()) << named.full_name;
  }
}

TEST(WeightLoader, LongListsAreCutAtTenWithTheirCountAndHintsFirst) {
  std::vector<NamedParameter> parameters;
  for (int i = 0; i < 12; ++i) parameters.push_back(whole("a" + std::to_string(i) + ".weight", {1}));
  parameters.push_back(whole("lm_head.weight", {1}));
  const std::string error = refusal(Checkpoint({{"b.weight", distinct(1, 1)}}), parameters, untied_names());
  EXPECT_THAT(error,
              HasAll("13 tensors are missing: \"lm_head.weight\" (tie_word_embeddings=false)", ", ...; 1 tensors"));
  EXPECT_THAT(error, Not(HasSubstr("a9.weight")));
}

// Fault case B20.
TEST(WeightLoader, AnUnexpectedTensorWithoutElementsIsOnlyReported) {
  const Checkpoint checkpoint({{"a.weight", distinct(2, 3)}, {"extra", at::empty({0})}});
  EXPECT_THAT(checkpoint.load({whole("a.weight", {2, 3})}).unexpected, ElementsAre("extra"));
}

TEST(WeightLoader, ReadsDataOfAnyAlignment) {
  for (const auto dtype : {c10::kFloat, c10::kHalf, c10::kBFloat16}) {
    CheckpointNames names;
    names.ignorable = {"a.odd"};
    const Checkpoint checkpoint({{"a.odd", at::arange(3, at::kByte)}, {"a.weight", distinct(2, 37).div(64).to(dtype)}});
    const NamedParameter parameter = whole("a.weight", {2, 37});
    checkpoint.load({parameter}, names);
    EXPECT_TRUE(parameter.parameter->tensor.equal(distinct(2, 37).div(64).to(dtype).to(c10::kFloat)));
  }
}

TEST(WeightLoader, ReadsAllShards) {
  const test::TemporaryFolder folder;
  folder.write("1.safetensors", test::safetensors_of({test::raw("a.weight", distinct(2, 3))}));
  folder.write("2.safetensors", test::safetensors_of({test::raw("b.weight", distinct(2, 3, 0.5))}));
  folder.write("model.safetensors.index.json",
               nlohmann::json{{"weight_map", {{"a.weight", "1.safetensors"}, {"b.weight", "2.safetensors"}}}}.dump());
  const CheckpointIndex index(folder.path());
  const std::vector<NamedParameter> parameters{whole("b.weight", {2, 3}), whole("a.weight", {2, 3})};
  WeightLoader(index, {}).load(parameters);
  EXPECT_TRUE(parameters[0].parameter->tensor.equal(distinct(2, 3, 0.5)));
  EXPECT_TRUE(parameters[1].parameter->tensor.equal(distinct(2, 3)));
}

TEST(WeightLoader, WronglyDeclaredParametersAreArgumentErrors) {
  const Checkpoint checkpoint({{"a.weight", distinct(2, 3)}});
  const auto argument_error = [&](const NamedParameter& parameter) {
    return test::error_of<ArgumentError>([&] { checkpoint.load({parameter}); });
  };
  EXPECT_THAT(argument_error(allotted("a.weight", {2, 3}, {{"q", {2, 3}, 0, {0, 2}}})), HasAll("a.weight", "\"q\""));
  EXPECT_THAT(argument_error(allotted("a.weight", {2, 3}, {{"", {2, 3}, 0, {0, 1}}})), HasAll("weight", "fill 1"));
  NamedParameter without_memory = whole("a.weight", {2, 3});
  without_memory.parameter->tensor = at::Tensor();
  EXPECT_THAT(argument_error(without_memory), HasAll("weight", "no memory"));
}

}  // namespace
}  // namespace headway
