#pragma once

#include "kernels/cpu/simd/dot.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::simd {
namespace {

/// Weights are read from memory once, a few rows at a time. Those few are not neighbours: each begins a part of the
/// range of its own, so that every part is read as one long sequence, which is what prefetchers follow best.
///
/// Tokens that fit one tile of registers take all rows in one go. More tokens take them tile after tile, a block of
/// rows at a time that stays in the second-level cache meanwhile, while the next block is on its way there. Inputs that
/// outgrow the first-level cache take the elements of a block chunk after chunk.
template <class Dot>
class LinearKernel {
 public:
  static void run(const LinearCall& call, int64_t out_begin, int64_t out_end) {
    LinearKernel kernel(call);
    if (V::dot_rows(kernel.largest_tile()) == 4) {
      kernel.template run_range<4>(out_begin, out_end);
    } else {
      kernel.template run_range<3>(out_begin, out_end);
    }
  }

  static void pack(const void* x, int64_t stride, int64_t tokens, int64_t in, void* packed) {
    pack_inputs<Dot>(static_cast<const T*>(x), stride, tokens, in, most_inputs, static_cast<Input*>(packed));
  }

 private:
  using V = typename Dot::Vector;
  using T = typename Dot::Element;
  using W = typename Dot::Row;
  using Input = typename Dot::Input;
  using Reg = typename V::Reg;
  static constexpr int most_inputs = Dot::most_inputs;
  static constexpr int64_t resident_bytes = 128 * 1024;  ///< of the weights of a block
  static constexpr int64_t most_chunk = 1280;            ///< elements
  static constexpr int64_t most_chunked_rows = 16;       ///< of each part in a block that is taken in chunks

  /// `count` rows from `row` on, and as many `part` rows further in each other part.
  struct Rows {
    int64_t row;
    int64_t part;
    int64_t count;
  };

  /// Elements [begin, end) of the rows, out of all.
  struct Chunk {
    int64_t begin;
    int64_t end;
    bool first;
    bool last;
  };

  explicit LinearKernel(const LinearCall& call) : call_(call), tiles_(call.tokens, most_inputs) {
    const int64_t tile_bytes = largest_tile() * call.in * static_cast<int64_t>(sizeof(Input));
    const bool fits = largest_tile() <= 2 || tile_bytes <= 40 * 1024;
    const int64_t chunks = fits ? 1 : (call.in + most_chunk - 1) / most_chunk;
    chunk_ = ((call.in + chunks - 1) / chunks + 31) / 32 * 32;
    ask_ahead_ = call.tokens > 2 || call.prefetch;
  }

  int largest_tile() const { return static_cast<int>((tiles_.inputs + tiles_.tiles - 1) / tiles_.tiles); }

  template <int R>
  void run_range(int64_t out_begin, int64_t out_end) {
    const int64_t part = (out_end - out_begin) / R;
    run_part<R>({out_begin, part, part});
    run_part<1>({out_begin + R * part, 0, out_end - out_begin - R * part});
  }

  template <int R>
  void run_part(const Rows& all) {
    const int64_t resident = resident_bytes / (R * call_.in * static_cast<int64_t>(sizeof(W)));
    int64_t block = tiles_.tiles == 1 ? all.count : resident < 1 ? 1 : resident;
    if (chunk_ < call_.in && block > most_chunked_rows) block = most_chunked_rows;
    for (int64_t i = 0; i < all.count; i += block) {
      const Rows rows = {all.row + i, all.part, all.count - i < block ? all.count - i : block};
      for (int64_t tile = 0; tile < tiles_.tiles; ++tile) run_block<R>(rows, tile);
    }
  }

  template <int R>
  void run_block(const Rows& rows, int64_t tile) {
    for (int64_t begin = 0; begin < call_.in; begin += chunk_) {
      const bool last = begin + chunk_ >= call_.in;
      run_tile<R, most_inputs>(rows, {begin, last ? call_.in : begin + chunk_, begin == 0, last}, tile);
    }
  }

  /// Finds the tile of M inputs at compile time.
  template <int R, int M>
  void run_tile(const Rows& rows, const Chunk& chunk, int64_t tile) {
    if constexpr (M > 1) {
      if (tiles_.size(tile) < M) return run_tile<R, M - 1>(rows, chunk, tile);
    }
    if constexpr (R == 1 || R <= V::dot_rows(M)) {
      chunk.first&& chunk.last ? multiply<R, M, true>(rows, chunk, tile) : multiply<R, M, false>(rows, chunk, tile);
    }
  }

  /// A chunk that is Whole needs no sums from the one before. Not inlined: the loops of many tile sizes in one function
  /// leave none of them enough registers.
  template <int R, int M, bool Whole>
  __attribute__((noinline)) void multiply(const Rows& rows, const Chunk& chunk, int64_t tile) {
    const int64_t n = chunk.end - chunk.begin;
    const int64_t token = tiles_.begin(tile);
    const Input* inputs =
        static_cast<const Input*>(call_.packed) + token * steps_of<Dot>(call_.in) * Dot::step + chunk.begin * M;
    const Ahead ahead = ahead_of(rows, chunk, tile);
    const W* weights[R];
    for (int r = 0; r < R; ++r) {
      weights[r] = static_cast<const W*>(call_.weight) + (rows.row + r * rows.part) * call_.in + chunk.begin;
    }
    for (int64_t i = 0; i < rows.count; ++i) {
      const W* next[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        next[r] = weights[r] + (Whole || i + 1 < rows.count ? ahead.elements : ahead.at_the_end);
      Reg* saved = sums_ + i * M * R;
      Reg sums[M * R];
#pragma GCC unroll 32
      for (int j = 0; j < M * R; ++j) sums[j] = Whole || chunk.first ? V::zero() : saved[j];
      accumulate_dots<Dot, R, M>(weights, inputs, n, ask_ahead_ ? next : nullptr, ahead.bytes_per_line, sums);
      if (Whole || chunk.last) {
        float values[whole_vectors<V>(M * R)];
        reduce_sums<V, M * R>(sums, values);
        store<R, M>(rows.row + i, rows.part, token, values);
      } else {
#pragma GCC unroll 32
        for (int j = 0; j < M * R; ++j) saved[j] = sums[j];
      }
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) weights[r] += call_.in;
    }
  }

  /// What to ask for while a row is worked on: so many elements further on in every part, and how much of it for each
  /// line that is read.
  struct Ahead {
    int64_t elements;
    int64_t at_the_end;  ///< for the last row of a block
    int64_t bytes_per_line;
  };

  Ahead ahead_of(const Rows& rows, const Chunk& chunk, int64_t tile) const {
    constexpr int64_t near = 2048 / sizeof(W);
    if (tiles_.tiles > 1) {  // a share of the next block
      const int64_t share = (64 + tiles_.tiles - 1) / tiles_.tiles;
      const int64_t next = rows.count * call_.in + tile * ((chunk.end - chunk.begin) * share / 64);
      return {next, next, share};
    }
    if (chunk.first && chunk.last) return {near, near, 64};
    const int64_t onward = chunk.last ? call_.in - chunk.begin : chunk_ - (rows.count - 1) * call_.in;
    return {call_.in, onward, 64};  // the same chunk of the next row, or where the block goes on
  }

  template <int R, int M>
  void store(int64_t row, int64_t part, int64_t token, float* values) const {
    if (call_.scales != nullptr) {
      for (int r = 0; r < R; ++r) {
        for (int m = 0; m < M; ++m) values[m * R + r] *= call_.scales[row + r * part];
      }
    }
    if (call_.bias != nullptr) {
      for (int r = 0; r < R; ++r) {
        float bias;
        V::store_partial(&bias, V::load_partial(static_cast<const T*>(call_.bias) + row + r * part, 1), 1);
        for (int m = 0; m < M; ++m) values[m * R + r] += bias;
      }
    }
    T rounded[whole_vectors<V>(M * R)];
    for (int i = 0; i < M * R; i += V::width) V::store(rounded + i, V::load(values + i));
    for (int m = 0; m < M; ++m) {
      T* output = static_cast<T*>(call_.output) + (token + m) * call_.output_stride + row;
      for (int r = 0; r < R; ++r) output[r * part] = rounded[m * R + r];
    }
  }

  const LinearCall& call_;
  const InputTiles tiles_;
  int64_t chunk_;
  bool ask_ahead_;
  Reg sums_[most_chunked_rows * most_inputs * V::dot_rows(most_inputs)];  ///< of a block's rows, between chunks
};

}  // namespace
}  // namespace headway::kernels::simd
