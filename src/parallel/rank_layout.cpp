#include "headway/parallel/rank_layout.h"

#include <fmt/format.h>

#include "headway/base/error.h"

namespace headway {
namespace {

/// Ranks first, first + stride, ...: `count` of them.
RankList strided(int first, int count, int stride) {
  RankList ranks;
  for (int i = 0; i < count; ++i) ranks.push_back({first + i * stride});
  return ranks;
}

}  // namespace

std::string_view name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::world:
      return "world";
    case GroupKind::tp:
      return "tp";
    case GroupKind::lm_head_tp:
      return "lm_head_tp";
    case GroupKind::attn_dp:
      return "attn_dp";
  }
  return "?";
}

RankLayout::RankLayout(int world, int tp, int attn_tp) : world_(world), tp_(tp), attn_tp_(attn_tp) {
  if (world < 1 || tp < 1 || attn_tp < 1) {
    throw ConfigError(fmt::format("group sizes must be positive: world {}, tp {}, lm_head_tp {}", world, tp, attn_tp));
  }
  if (world % tp != 0) throw ConfigError(fmt::format("tp: {} ranks do not divide a world of {}", tp, world));
  if (tp % attn_tp != 0) throw ConfigError(fmt::format("lm_head_tp: {} ranks do not divide tp {}", attn_tp, tp));
}

std::vector<RankList> RankLayout::groups(GroupKind kind) const {
  std::vector<RankList> groups;
  switch (kind) {
    case GroupKind::world:
      groups.push_back(strided(0, world_, 1));
      break;
    case GroupKind::tp:
      for (int first = 0; first < world_; first += tp_) groups.push_back(strided(first, tp_, 1));
      break;
    case GroupKind::lm_head_tp:
      for (int first = 0; first < world_; first += attn_tp_) groups.push_back(strided(first, attn_tp_, 1));
      break;
    case GroupKind::attn_dp:
      for (int outer = 0; outer < world_; outer += tp_) {
        for (int a = 0; a < attn_tp_; ++a) groups.push_back(strided(outer + a, replicas(), attn_tp_));
      }
      break;
  }
  return groups;
}

RankList RankLayout::group_of(GroupKind kind, GlobalRank rank) const {
  for (RankList& group : groups(kind)) {
    for (GlobalRank member : group) {
      if (member == rank) return std::move(group);
    }
  }
  throw ArgumentError(fmt::format("rank {} is not in a world of {}", rank.value, world_));
}

}  // namespace headway
