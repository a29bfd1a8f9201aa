#pragma once

#include "kernels/cpu/simd/dot.h"

namespace headway::kernels::simd {
namespace {

/// q . k of up to `most_heads` heads with the keys of a tile of positions, as dot products.
template <class Dot, int64_t Tile>
class DotScores {
 public:
  using T = typename Dot::Row;
  using Packed = typename Dot::Input;
  static constexpr int64_t most_heads = 8;

  /// Elements of a packed head.
  static int64_t packed_size(int64_t head_dim) { return steps_of<Dot>(head_dim) * Dot::step; }

  static void pack(const T* q, int64_t stride, int64_t heads, int64_t head_dim, Packed* packed) {
    pack_inputs<Dot>(q, stride, heads, head_dim, most_inputs, packed);
  }

  /// How often `compute` calls ask_ahead().
  static int64_t steps(int64_t heads, int64_t positions, int64_t head_dim) {
    return InputTiles(heads, most_inputs).tiles * ((positions + 3) / 4);
  }

  /// scores[h * Tile + t] for t < positions; those beyond are anything. `keys` has Tile entries.
  template <typename AskAhead>
  static void compute(const Packed* packed, int64_t heads, int64_t head_dim, const T* const* keys, int64_t offset,
                      int64_t positions, float* scores, const AskAhead& ask_ahead) {
    const InputTiles tiles(heads, most_inputs);
    int64_t begin = 0;
    for (int64_t i = 0; i < tiles.tiles; ++i) {
      const int64_t end = tiles.begin(i + 1);
      for (int64_t t = 0; t < positions; t += 4) {
        ask_ahead();
        compute_tile<most_inputs>(packed + begin * packed_size(head_dim), end - begin, head_dim, keys + t, offset,
                                  scores + begin * Tile + t);
      }
      begin = end;
    }
  }

 private:
  using V = typename Dot::Vector;
  static constexpr int most_inputs = V::width / 4 > 2 ? 4 : 2;  ///< heads of a tile of registers, with four positions

  /// Of `heads` <= M heads at four positions.
  template <int M>
  static void compute_tile(const Packed* packed, int64_t heads, int64_t head_dim, const T* const* keys, int64_t offset,
                           float* scores) {
    if constexpr (M > 1) {
      if (heads < M) return compute_tile<M - 1>(packed, heads, head_dim, keys, offset, scores);
    }
    const T* rows[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) rows[i] = keys[i] + offset;
    typename V::Reg sums[4 * M];
#pragma GCC unroll 16
    for (int i = 0; i < 4 * M; ++i) sums[i] = V::zero();
    accumulate_dots<Dot, 4, M>(rows, packed, head_dim, nullptr, 0, sums);
    float values[whole_vectors<V>(4 * M)];
    reduce_sums<V, 4 * M>(sums, values);
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) __builtin_memcpy(scores + m * Tile, values + m * 4, 4 * sizeof(float));
  }
};

}  // namespace
}  // namespace headway::kernels::simd
