#include "config/rope_config.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "headway/base/error.h"
#include "support/expect_error.h"

namespace headway {
namespace {

using nlohmann::json;
using test::HasAll;

constexpr int64_t kMaxPositions = 512;

RopeConfig read(const json& config) {
  return read_rope_config(ConfigObject(config, "config.json"), kMaxPositions);
}

std::string refusal(const json& config) {
  return test::error_of<ConfigError>([&] { read(config); });
}

json yarn(const std::string& type_key) {
  return {{type_key, "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 128}};
}

// Fault case B27.
TEST(RopeConfig, TypeHasTwoSpellings) {
  for (const std::string key : {"type", "rope_type"}) {
    const RopeConfig rope = read({{"rope_theta", 1e6}, {"rope_scaling", yarn(key)}});
    EXPECT_EQ(rope.type, RopeType::yarn);
    EXPECT_EQ(rope.factor, 4.0);
    EXPECT_EQ(rope.original_max_position_embeddings, 128);
  }
  json both = yarn("type");
  both["rope_type"] = "yarn";
  EXPECT_EQ(read({{"rope_theta", 1e6}, {"rope_scaling", both}}).type, RopeType::yarn);
  both["rope_type"] = "linear";
  EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"rope_scaling", both}}),
              HasAll("rope_scaling.rope_type is \"linear\"", "rope_scaling.type is \"yarn\""));
  EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"rope_scaling", {{"type", "llama3"}, {"factor", 2}}}}),
              HasAll("rope_scaling.type is \"llama3\"", "\"dynamic\""));
  EXPECT_EQ(read({{"rope_theta", 1e6}, {"rope_scaling", nullptr}}).type, RopeType::standard);
}

// Fault cases B28 and D18: theta is found where it stands, and never falls back to 10000.
TEST(RopeConfig, ThetaIsReadFromRopeParametersOrTheTopLevel) {
  EXPECT_EQ(read({{"rope_parameters", {{"rope_theta", 1000000.0}, {"rope_type", "default"}}}}).theta, 1e6);
  EXPECT_EQ(read({{"rope_theta", 250000}}).theta, 250000);
  EXPECT_EQ(read({{"rope_theta", 1e6}, {"rope_parameters", {{"rope_theta", 1000000}}}}).theta, 1e6);
  EXPECT_THAT(refusal({{"rope_theta", 10000.0}, {"rope_parameters", {{"rope_theta", 1e6}}}}),
              HasAll("config.json: rope_theta is 10000.0", "rope_parameters.rope_theta is 1000000.0"));
  EXPECT_THAT(refusal({{"rope_parameters", {{"rope_type", "default"}}}}), HasAll("rope_theta is absent"));
  EXPECT_THAT(refusal({{"rope_theta", 1.0}}), HasAll("rope_theta is 1.0"));
}

// Fault case D08, its config.
TEST(RopeConfig, YarnDefaults) {
  const RopeConfig rope = read_rope_config(
      ConfigObject(
          {{"rope_theta", 1e6},
           {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}}}},
          "config.json"),
      32768);
  EXPECT_EQ(rope.factor, 4.0);
  EXPECT_EQ(rope.original_max_position_embeddings, 32768);
  EXPECT_EQ(rope.beta_fast, 32.0);
  EXPECT_EQ(rope.beta_slow, 1.0);
  EXPECT_EQ(rope.attention_factor, std::nullopt);
  EXPECT_EQ(rope.mscale, std::nullopt);
  EXPECT_EQ(rope.mscale_all_dim, std::nullopt);
  EXPECT_TRUE(rope.truncate);
}

TEST(RopeConfig, EveryYarnKeyIsRead) {
  json parameters = yarn("rope_type");
  parameters.update({{"rope_theta", 1e6},
                     {"beta_fast", 24},
                     {"beta_slow", 2.5},
                     {"attention_factor", 1.25},
                     {"mscale", 0.75},
                     {"mscale_all_dim", 0.5},
                     {"truncate", false}});
  const RopeConfig rope = read({{"rope_parameters", parameters}});
  EXPECT_EQ(rope.beta_fast, 24.0);
  EXPECT_EQ(rope.beta_slow, 2.5);
  EXPECT_EQ(rope.attention_factor, 1.25);
  EXPECT_EQ(rope.mscale, 0.75);
  EXPECT_EQ(rope.mscale_all_dim, 0.5);
  EXPECT_FALSE(rope.truncate);
}

TEST(RopeConfig, OriginalMaxPositionsMayStandAtTheTopLevelOrAreTheMaximum) {
  json scaling = yarn("type");
  scaling.erase("original_max_position_embeddings");
  EXPECT_EQ(read({{"rope_theta", 1e6}, {"rope_scaling", scaling}}).original_max_position_embeddings, kMaxPositions);
  EXPECT_EQ(read({{"rope_theta", 1e6}, {"original_max_position_embeddings", 64}, {"rope_scaling", scaling}})
                .original_max_position_embeddings,
            64);
  EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"original_max_position_embeddings", 64}, {"rope_scaling", yarn("type")}}),
              HasAll("original_max_position_embeddings is 64", "rope_scaling.original_max_position_embeddings is 128"));
}

TEST(RopeConfig, LinearAndDynamicNeedAFactor) {
  const RopeConfig linear = read({{"rope_theta", 1e6}, {"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}});
  EXPECT_EQ(linear.type, RopeType::linear);
  EXPECT_EQ(linear.factor, 2.5);
  const RopeConfig dynamic = read({{"rope_theta", 1e6}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 3}}}});
  EXPECT_EQ(dynamic.type, RopeType::dynamic);
  EXPECT_EQ(dynamic.factor, 3.0);
  EXPECT_EQ(dynamic.original_max_position_embeddings, kMaxPositions);
  for (const std::string type : {"linear", "dynamic", "yarn"}) {
    EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"rope_scaling", {{"type", type}}}}), HasAll("rope_scaling.factor"));
  }
  EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"rope_scaling", {{"type", "linear"}, {"factor", 0.5}}}}),
              HasAll("rope_scaling.factor is 0.5"));
}

TEST(RopeConfig, WhatDoesNotAddUpIsRefused) {
  EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"rope_scaling", {{"factor", 4}}}}),
              HasAll("rope_scaling.factor is set", "rope_scaling.rope_type is absent"));
  EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"rope_scaling", "yarn"}}), HasAll("rope_scaling is \"yarn\""));
  EXPECT_THAT(refusal({{"rope_parameters", {{"full_attention", {{"rope_theta", 1e6}}}}}}), HasAll("full_attention"));
  json scaling = yarn("type");
  scaling.update({{"beta_fast", 1}, {"beta_slow", 2}});
  EXPECT_THAT(refusal({{"rope_theta", 1e6}, {"rope_scaling", scaling}}), HasAll("beta_fast 1", "beta_slow 2"));
  EXPECT_THAT(refusal({{"rope_theta", 1e6},
                       {"rope_scaling", yarn("type")},
                       {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}}}),
              HasAll("rope_scaling.type is \"yarn\"", "rope_parameters.rope_type is \"default\""));
}

}  // namespace
}  // namespace headway
