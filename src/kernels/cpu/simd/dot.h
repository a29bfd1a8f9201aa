#pragma once

#include <cstdint>

#include "kernels/cpu/simd/element.h"
#include "kernels/cpu/simd/product.h"
#include "kernels/cpu/simd/values.h"

namespace headway::kernels::simd {
namespace {

template <class Dot, int64_t Tile>
class DotScores;

/// How rows of type T are multiplied with inputs and summed in fp32: by converting the row; the inputs are fp32.
template <class V, typename T>
struct FloatDot {
  using Vector = V;
  using Row = T;
  using Element = T;  ///< of the inputs before they are packed
  using Input = float;
  using RowReg = typename V::Reg;
  using InputReg = typename V::Reg;
  using Values = FloatValues<V, T>;
  using Product = FloatProduct<V, T>;
  template <int64_t Tile>
  using Scores = DotScores<FloatDot, Tile>;
  static constexpr int step = V::width;              ///< elements that one accumulation takes
  static constexpr int most_inputs = V::dot_inputs;  ///< of a tile

  static RowReg load_row(const T* p) { return V::load(p); }
  static RowReg load_row_partial(const T* p, int n) { return V::load_partial(p, n); }
  static InputReg load_input(const float* p) { return V::load(p); }
  static void pack(const T* from, float* to) { V::store(to, V::load(from)); }
  static void pack_partial(const T* from, int n, float* to) { V::store(to, V::load_partial(from, n)); }
  static typename V::Reg accumulate(typename V::Reg sum, RowReg row, InputReg input) {
    return V::multiply_add(row, input, sum);
  }
};

/// Inputs (rows of x, heads of a query) are taken in tiles of nearly equal size, and packed so that a tile is read from
/// one address on: for each step of the dot product, that step of every input of the tile. The last step is filled up
/// with zeros.
struct InputTiles {
  int64_t inputs;
  int64_t tiles;

  InputTiles(int64_t count, int64_t most) : inputs(count), tiles((count + most - 1) / most) {}
  int64_t begin(int64_t tile) const { return inputs * tile / tiles; }
  int64_t size(int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

template <class Dot>
constexpr int64_t steps_of(int64_t n) {
  return (n + Dot::step - 1) / Dot::step;
}

/// Packs inputs of n elements, `stride` apart, in tiles of at most `most`.
template <class Dot>
inline void pack_inputs(const typename Dot::Element* from, int64_t stride, int64_t count, int64_t n, int64_t most,
                        typename Dot::Input* to) {
  const InputTiles tiles(count, most);
  for (int64_t tile = 0; tile < tiles.tiles; ++tile) {
    const int64_t inputs = tiles.size(tile);
    for (int64_t m = 0; m < inputs; ++m) {
      const typename Dot::Element* input = from + (tiles.begin(tile) + m) * stride;
      typename Dot::Input* packed = to + tiles.begin(tile) * steps_of<Dot>(n) * Dot::step + m * Dot::step;
      int64_t k = 0;
      for (; k + Dot::step <= n; k += Dot::step, packed += inputs * Dot::step) Dot::pack(input + k, packed);
      if (k < n) Dot::pack_partial(input + k, static_cast<int>(n - k), packed);
    }
  }
}

/// Adds the dot products of R rows with the M inputs of a packed tile, `n` elements long, to sums[m * R + r]. Every sum
/// takes the same steps in the same order whatever R and M are. For each line of a row that it reads it asks for what
/// lies at next[r], if there is one, and moves that on by `next_bytes`.
template <class Dot, int R, int M>
inline __attribute__((always_inline)) void accumulate_dots(const typename Dot::Row* const* rows,
                                                           const typename Dot::Input* inputs, int64_t n,
                                                           const typename Dot::Row* const* next, int64_t next_bytes,
                                                           typename Dot::Vector::Reg* sums) {
  using V = typename Dot::Vector;
  constexpr int line = 64 / sizeof(typename Dot::Row);
  static_assert(line % Dot::step == 0);
  const auto add_step = [&](const typename Dot::RowReg* row) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) {
      const typename Dot::InputReg input = Dot::load_input(inputs + m * Dot::step);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[m * R + r] = Dot::accumulate(sums[m * R + r], row[r], input);
    }
    inputs += M * Dot::step;
  };
  int64_t ahead = 0;
  int64_t k = 0;
  for (; k + line <= n; k += line) {
    if (next != nullptr) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) V::prefetch(reinterpret_cast<const char*>(next[r]) + ahead);
      ahead += next_bytes;
    }
    for (int part = 0; part < line; part += Dot::step) {
      typename Dot::RowReg row[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) row[r] = Dot::load_row(rows[r] + k + part);
      add_step(row);
    }
  }
  for (; k < n; k += Dot::step) {
    const int left = n - k < Dot::step ? static_cast<int>(n - k) : Dot::step;
    typename Dot::RowReg row[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) row[r] = Dot::load_row_partial(rows[r] + k, left);
    add_step(row);
  }
}

/// Whole vectors that hold `count` values.
template <class V>
constexpr int whole_vectors(int count) {
  return (count + V::width - 1) / V::width * V::width;
}

/// The sum of each of Count vectors, in order, into `out`, which has room for whole_vectors(Count).
template <class V, int Count>
inline __attribute__((always_inline)) void reduce_sums(const typename V::Reg* sums, float* out) {
  if constexpr (Count > V::width) {
    V::template reduce_add_block<V::width>(sums, out);
    reduce_sums<V, Count - V::width>(sums + V::width, out + V::width);
  } else {
    V::template reduce_add_block<Count>(sums, out);
  }
}

}  // namespace
}  // namespace headway::kernels::simd
