#pragma once

#include "kernels/cpu/simd/cached_rows.h"
#include "kernels/cpu/simd/dot.h"
#include "kernels/cpu/simd/math.h"
#include "kernels/cpu/simd/scores.h"

namespace headway::kernels::simd {
namespace {

/// One query token: bound by reading the cache, so every K and V row is read once for all heads that share it, and the
/// rows of the next tile are asked for while this one is worked on. Online softmax over tiles.
template <class Dot>
class DecodeKernel {
 public:
  /// In groups, as they are worked on.
  static void pack(const void* q, int64_t stride, int64_t heads, int64_t head_dim, void* packed) {
    for (int64_t h = 0; h < heads; h += group) {
      Scores::pack(static_cast<const T*>(q) + h * stride, stride, heads - h < group ? heads - h : group, head_dim,
                   static_cast<Packed*>(packed) + h * Scores::packed_size(head_dim));
    }
  }

  static void run(const DecodeCall& call) {
    for (int64_t i = 0; i < call.run_count; ++i) clear(call.runs[i], call.cache.head_dim);
    Slots slots[2];
    int current = 0;
    slots[current].find(call.cache, call.begin, end_of(call, call.begin));
    if (!call.begins_cached) prefetch_of(call, slots[current], 1).step();
    for (int64_t begin = call.begin; begin < call.end; begin = end_of(call, begin), current = 1 - current) {
      const int64_t end = end_of(call, begin);
      const DecodeCall* after = end < call.end ? &call : call.next;
      Prefetch prefetch;
      if (after != nullptr) {
        const int64_t next = end < call.end ? end : after->begin;
        slots[1 - current].find(after->cache, next, end_of(*after, next));
        prefetch = prefetch_of(*after, slots[1 - current], steps_of_tile(call, end - begin));
      }
      for (int64_t i = 0; i < call.run_count; ++i) {
        for (int64_t h = 0; h < call.runs[i].heads; h += group) {
          const int64_t heads = call.runs[i].heads - h < group ? call.runs[i].heads - h : group;
          DecodeKernel(call, call.runs[i], h, heads, slots[current], end - begin, prefetch).run_tile();
        }
      }
    }
  }

 private:
  using V = typename Dot::Vector;
  using T = typename Dot::Row;
  using Reg = typename V::Reg;
  using Values = typename Dot::Values;
  using Weight = typename Values::Weight;
  static constexpr int64_t tile = decode_tile;
  using Slots = SlotPointers<T, tile>;
  using Prefetch = RowPrefetch<V, T, tile>;
  using Scores = typename Dot::template Scores<tile>;
  using Packed = typename Scores::Packed;
  static constexpr int64_t group = Scores::most_heads;  ///< heads at once

  DecodeKernel(const DecodeCall& call, const DecodeRun& run, int64_t first_head, int64_t heads, const Slots& slots,
               int64_t positions, Prefetch& prefetch)
      : run_(run),
        head_dim_(call.cache.head_dim),
        scale_(call.scale),
        first_head_(first_head),
        heads_(heads),
        slots_(slots),
        positions_(positions),
        prefetch_(prefetch) {}

  /// How often the work on a tile calls Prefetch::step.
  static int64_t steps_of_tile(const DecodeCall& call, int64_t positions) {
    int64_t steps = 0;
    for (int64_t i = 0; i < call.run_count; ++i) {
      for (int64_t h = 0; h < call.runs[i].heads; h += group) {
        const int64_t heads = call.runs[i].heads - h < group ? call.runs[i].heads - h : group;
        steps += Scores::steps(heads, positions, call.cache.head_dim) +
                 (heads + 3) / 4 * ((positions + Values::positions_per_step - 1) / Values::positions_per_step);
      }
    }
    return steps;
  }

  /// Of the rows of all runs in a tile.
  static Prefetch prefetch_of(const DecodeCall& call, const Slots& slots, int64_t steps) {
    const int64_t offset = call.runs[0].offset;
    const int64_t elements = call.runs[call.run_count - 1].offset + call.cache.head_dim - offset;
    return Prefetch(slots, offset, elements, steps);
  }

  static void clear(const DecodeRun& run, int64_t head_dim) {
    for (int64_t h = 0; h < run.heads; ++h) {
      run.largest[h] = -__builtin_inff();
      run.sum[h] = 0;
    }
    for (int64_t i = 0; i < run.heads * padded(head_dim); ++i) run.weighted[i] = 0;
  }

  /// Tiles end at whole multiples of their size, wherever the first one begins.
  static int64_t end_of(const DecodeCall& call, int64_t begin) {
    const int64_t end = (begin / tile + 1) * tile;
    return end < call.end ? end : call.end;
  }

  void run_tile() {
    score();
    soften();
    for (int64_t h = 0; h < heads_; h += 4) {
      switch (heads_ - h) {
        case 1:
          add_values<1>(h);
          break;
        case 2:
          add_values<2>(h);
          break;
        case 3:
          add_values<3>(h);
          break;
        default:
          add_values<4>(h);
      }
    }
  }

  void score() {
    Prefetch prefetch = prefetch_;  // in registers for the loop
    const Packed* q = static_cast<const Packed*>(run_.packed_q) + first_head_ * Scores::packed_size(head_dim_);
    Scores::compute(q, heads_, head_dim_, slots_.keys(), run_.offset, positions_, scores_, [&] { prefetch.step(); });
    prefetch_ = prefetch;
    for (int64_t h = 0; h < heads_; ++h) {
      for (int64_t t = positions_; t < tile; ++t) scores_[h * tile + t] = -__builtin_inff();
    }
  }

  /// Weights become exp(scale * score - largest); factors, by what sums of earlier tiles must be multiplied.
  void soften() {
    float* largest = run_.largest + first_head_;
    float* sum = run_.sum + first_head_;
    float change[padded(group)] = {};
    for (int64_t h = 0; h < heads_; ++h) {
      Reg most = V::set1(largest[h]);
#pragma GCC unroll 8
      for (int64_t t = 0; t < tile; t += V::width) most = V::max(scaled_score(h, t), most);
      const float new_largest = V::reduce_max(most);
      change[h] = largest[h] - new_largest;
      largest[h] = new_largest;
    }
    for (int64_t h = 0; h < heads_; h += V::width) V::store(change + h, exponential<V>(V::load(change + h)));
    for (int64_t h = 0; h < heads_; ++h) {
      Reg total = V::zero();
#pragma GCC unroll 8
      for (int64_t t = 0; t < tile; t += V::width) {
        Weight* weights = weights_ + h * tile + t;
        V::store(weights, exponential<V>(V::sub(scaled_score(h, t), V::set1(largest[h]))));
        total = V::add(total, V::load(weights));
      }
      factors_[h] = V::set1(change[h]);
      sum[h] = sum[h] * change[h] + V::reduce_add(total);
    }
  }

  Reg scaled_score(int64_t h, int64_t t) const {
    return V::mul(V::load(scores_ + h * tile + t), V::set1(scale_));
  }

  template <int H>
  void add_values(int64_t h) {
    Prefetch prefetch = prefetch_;  // in registers for the loop
    const int64_t stride = padded(head_dim_);
    Values::template accumulate<H>(slots_.values(), run_.offset, head_dim_, positions_, weights_ + h * tile, tile,
                                   factors_ + h, run_.weighted + (first_head_ + h) * stride, stride,
                                   [&] { prefetch.step(); });
    prefetch_ = prefetch;
  }

  const DecodeRun& run_;
  const int64_t head_dim_;
  const float scale_;
  const int64_t first_head_;
  const int64_t heads_;
  const Slots& slots_;
  const int64_t positions_;
  Prefetch& prefetch_;
  alignas(64) float scores_[group * tile];
  alignas(64) Weight weights_[group * tile];
  Reg factors_[group];
};

}  // namespace
}  // namespace headway::kernels::simd
