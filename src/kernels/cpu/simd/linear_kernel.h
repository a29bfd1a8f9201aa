#pragma once

#include "kernels/cpu/simd/dot.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace headway::kernels::simd {
namespace {

/// Weights are read once, a few rows at a time against all tokens. Those few rows are not neighbours: each begins a
/// part of the range of its own, so that every part is read as one long sequence, which is what prefetchers follow
/// best. With many tokens the inputs outgrow the first-level cache: a chunk of them then serves a block of rows.
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
  using T = typename Dot::Row;
  using Input = typename Dot::Input;
  using Reg = typename V::Reg;
  static constexpr int most_inputs = Dot::most_inputs;
  static constexpr int64_t most_block = 8;  ///< rows of a part that share a chunk of the inputs

  /// Elements [begin, end) of the weight rows `row` + i of every part.
  struct Chunk {
    int64_t begin;
    int64_t end;
    bool first;
    bool last;
  };

  explicit LinearKernel(const LinearCall& call) : call_(call), tiles_(call.tokens, most_inputs) {
    const bool fits = call.in <= 1024 || call.tokens <= 2;
    chunk_ = fits ? call.in : call.tokens <= 8 ? 1024 : call.tokens <= 16 ? 512 : 256;
    block_ = fits ? 1 : most_tokens / call.tokens;
    if (block_ > most_block) block_ = most_block;
    prefetch_ = call.tokens > 2 || call.prefetch;
    next_bytes_ = (64 + tiles_.tiles - 1) / tiles_.tiles;
    for (int64_t tile = 0; tile <= tiles_.tiles; ++tile) tile_begin_[tile] = tiles_.begin(tile);
  }

  int largest_tile() const { return static_cast<int>((tiles_.inputs + tiles_.tiles - 1) / tiles_.tiles); }

  template <int R>
  void run_range(int64_t out_begin, int64_t out_end) {
    const int64_t part = (out_end - out_begin) / R;
    for (int64_t row = 0; row < part; row += block_) {
      run_block<R>(out_begin + row, part, part - row < block_ ? part - row : block_);
    }
    for (int64_t row = out_begin + R * part; row < out_end; row += block_) {
      run_block<1>(row, 0, out_end - row < block_ ? out_end - row : block_);
    }
  }

  /// Rows [row, row + block) of each of R parts, which begin `part` rows apart.
  template <int R>
  void run_block(int64_t row, int64_t part, int64_t block) {
    for (int64_t begin = 0; begin < call_.in; begin += chunk_) {
      const bool last = begin + chunk_ >= call_.in;
      const Chunk chunk = {begin, last ? call_.in : begin + chunk_, begin == 0, last};
      for (int64_t i = 0; i < block; ++i) {
        for (int64_t tile = 0; tile < tiles_.tiles; ++tile) {
          run_tile<R, most_inputs>(chunk, row + i, part, tile, sums_ + i * R * call_.tokens);
        }
      }
    }
  }

  /// Finds the tile of M inputs at compile time.
  template <int R, int M>
  void run_tile(const Chunk& chunk, int64_t row, int64_t part, int64_t tile, Reg* row_sums) {
    if constexpr (M > 1) {
      if (tile_begin_[tile + 1] - tile_begin_[tile] < M) return run_tile<R, M - 1>(chunk, row, part, tile, row_sums);
    }
    if constexpr (R == 1 || R <= V::dot_rows(M)) multiply<R, M>(chunk, row, part, tile, row_sums);
  }

  template <int R, int M>
  __attribute__((noinline)) void multiply(const Chunk& chunk, int64_t row, int64_t part, int64_t tile, Reg* row_sums) {
    const int64_t token = tile_begin_[tile];
    const T* weights[R];
    const T* next[R];
    const int64_t ahead = distance_ahead(chunk, tile);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      weights[r] = static_cast<const T*>(call_.weight) + (row + r * part) * call_.in + chunk.begin;
      next[r] = weights[r] + ahead;
    }
    const Input* inputs =
        static_cast<const Input*>(call_.packed) + token * steps_of<Dot>(call_.in) * Dot::step + chunk.begin * M;
    Reg* saved = row_sums + token * R;
    Reg sums[whole_vectors<V>(M * R)];
#pragma GCC unroll 32
    for (int i = 0; i < M * R; ++i) sums[i] = chunk.first ? V::zero() : saved[i];
    accumulate_dots<Dot, R, M>(weights, inputs, chunk.end - chunk.begin, prefetch_ ? next : nullptr, next_bytes_, sums);
    if (chunk.last) {
      float values[whole_vectors<V>(M * R)];
      reduce_sums<V, M * R>(sums, values);
      store<R, M>(row, part, token, values);
    } else {
#pragma GCC unroll 32
      for (int i = 0; i < M * R; ++i) saved[i] = sums[i];
    }
  }

  /// How many elements ahead of a chunk lies what should be asked for while it is worked on: the next chunk of the row,
  /// or the first one of the row that follows the block; with several tiles of inputs, each asks for its share.
  int64_t distance_ahead(const Chunk& chunk, int64_t tile) const {
    constexpr int64_t one_row = 2048 / sizeof(T);
    if (tiles_.tiles == 1 && block_ == 1) return one_row;
    const int64_t next = chunk.last ? block_ * call_.in - chunk.begin : chunk_;
    return next + tile * ((chunk.end - chunk.begin) * next_bytes_ / 64);
  }

  template <int R, int M>
  void store(int64_t row, int64_t part, int64_t token, float* values) const {
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

  static constexpr int64_t most_tokens = most_linear_tokens;

  const LinearCall& call_;
  const InputTiles tiles_;
  int64_t chunk_;
  int64_t block_;
  bool prefetch_;
  int64_t next_bytes_;  ///< of what lies ahead, asked for by each tile for each line that it reads
  int64_t tile_begin_[most_tokens + 1];
  Reg sums_[most_tokens * 4];  ///< of the block's rows, between chunks
};

}  // namespace
}  // namespace headway::kernels::simd
