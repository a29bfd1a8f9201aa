#include "headway/config/parallel_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "headway/base/error.h"

namespace headway {
namespace {

constexpr int64_t kLargestWorld = int64_t{1} << 20;

constexpr std::array<std::string_view, 3> kVocabGroupNames{"tp", "lm_head_tp", "none"};
constexpr std::array<std::string_view, 3> kAttnReplicasNames{"replicate", "dp", "cp"};

template <size_t N>
size_t index_of_name(const std::array<std::string_view, N>& names, std::string_view name, std::string_view what) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  throw ConfigError(fmt::format("{} \"{}\" is not one of {}", what, name, fmt::join(names, ", ")));
}

void check_sizes(int64_t world, int64_t tp) {
  if (world < 1 || world > kLargestWorld) {
    throw ConfigError(fmt::format("a world of {} ranks is not between 1 and {}", world, kLargestWorld));
  }
  if (tp < 1 || world % tp != 0) {
    throw ConfigError(fmt::format("tp: a TP size of {} does not divide the world of {} ranks", tp, world));
  }
}

void check_attn_tp(int64_t total_q_heads, int64_t tp, int64_t attn_tp) {
  std::string reason;
  if (attn_tp > total_q_heads) {
    reason = fmt::format("{} query heads over {} ranks leave rank 0 without a head", total_q_heads, attn_tp);
  } else if (attn_tp < 1 || tp % attn_tp != 0) {
    reason = fmt::format("an attention group of {} ranks does not divide the TP group of {}", attn_tp, tp);
  } else {
    return;
  }
  throw ConfigError(fmt::format("lm_head_tp: {}; legal sizes at tp {}: {}", reason, tp,
                                fmt::join(legal_attn_tp(total_q_heads, tp), ", ")));
}

}  // namespace

std::string_view name_of(VocabGroup group) {
  return kVocabGroupNames[static_cast<size_t>(group)];
}

std::string_view name_of(AttnReplicas mode) {
  return kAttnReplicasNames[static_cast<size_t>(mode)];
}

VocabGroup vocab_group_from_name(std::string_view name) {
  return static_cast<VocabGroup>(index_of_name(kVocabGroupNames, name, "vocabulary group"));
}

AttnReplicas attn_replicas_from_name(std::string_view name) {
  return static_cast<AttnReplicas>(index_of_name(kAttnReplicasNames, name, "attention replicas"));
}

std::vector<int64_t> legal_attn_tp(int64_t total_q_heads, int64_t tp) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= std::min(total_q_heads, tp); ++size) {
    if (tp % size == 0) sizes.push_back(size);
  }
  return sizes;
}

ParallelConfig resolve_parallel_config(const ModelConfig& model, int64_t world, std::optional<int64_t> tp,
                                       std::optional<int64_t> attn_tp, VocabGroup embedding_group,
                                       VocabGroup lm_head_group, AttnReplicas attn_replicas) {
  ParallelConfig config;
  config.world = world;
  config.tp = tp.value_or(world);
  check_sizes(config.world, config.tp);
  if (attn_tp) check_attn_tp(model.total_q_heads, config.tp, *attn_tp);
  config.attn_tp = attn_tp ? *attn_tp : legal_attn_tp(model.total_q_heads, config.tp).back();
  if (attn_replicas == AttnReplicas::cp) {
    throw ConfigError(fmt::format("attention replicas \"{}\" are not served yet; \"{}\" and \"{}\" are",
                                  name_of(attn_replicas), name_of(AttnReplicas::replicate), name_of(AttnReplicas::dp)));
  }
  config.embedding_group = embedding_group;
  config.lm_head_group = lm_head_group;
  config.attn_replicas = attn_replicas;
  return config;
}

}  // namespace headway
