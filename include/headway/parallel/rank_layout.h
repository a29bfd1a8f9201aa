#pragma once

#include <string_view>
#include <vector>

#include "headway/parallel/ranks.h"

namespace headway {

enum class GroupKind { world, tp, lm_head_tp, attn_dp };

/// "world", "tp", "lm_head_tp", "attn_dp".
std::string_view name_of(GroupKind kind);

/// Which ranks form which groups, as a pure function of three sizes:
///   rank = outer * tp + t,  t = replica * attn_tp + a  (the last index varies fastest).
/// For world = tp = 4, attn_tp = 2:
///   tp          [0 1 2 3]
///   lm_head_tp  [0 1] [2 3]
///   attn_dp     [0 2] [1 3]
class RankLayout {
 public:
  /// Throws ConfigError unless all sizes are positive, tp divides world and attn_tp divides tp.
  RankLayout(int world, int tp, int attn_tp);

  int world_size() const { return world_; }
  int tp_size() const { return tp_; }
  int attn_tp_size() const { return attn_tp_; }
  int replicas() const { return tp_ / attn_tp_; }

  /// Every group of a kind; each rank is in exactly one of them.
  std::vector<RankList> groups(GroupKind kind) const;

  /// The group of a kind that `rank` is in. Throws ArgumentError for a rank outside the world.
  RankList group_of(GroupKind kind, GlobalRank rank) const;

 private:
  int world_;
  int tp_;
  int attn_tp_;
};

}  // namespace headway
