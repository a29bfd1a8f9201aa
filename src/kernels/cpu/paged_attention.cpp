#include <ATen/ops/empty.h>

#include <limits>

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/decode_calls.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tensors.h"
#include "kernels/thread_pool.h"

namespace headway::kernels::cpu {
namespace {

// Less than this (query heads times positions) is not worth another thread.
constexpr int64_t least_shared_cost = 512;

/// One call of paged_attention: the pieces of its plan, then the merging of split contexts.
class PagedAttention {
 public:
  PagedAttention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                 const std::vector<HeadRun>& runs, const AttentionOptions& options)
      : kernels_(kernels_for(q.scalar_type())),
        q_(q),
        output_(at::empty(q.sizes(), q.options())),
        cache_(cache),
        batch_(batch),
        runs_(runs),
        scale_(static_cast<float>(options.scale)),
        window_(options.sliding_window.value_or(std::numeric_limits<int64_t>::max() / 2)),
        head_dim_(q.size(2)) {}

  at::Tensor run() {
    const AttentionPlan plan =
        plan_attention(batch_, runs_, window_, head_dim_ * static_cast<int64_t>(q_.element_size()));
    thread_local Scratch scratch;
    const int64_t rows = simd::padded(plan.partial_rows);
    largest_ = scratch.floats(rows * (2 + simd::padded(head_dim_)));
    sum_ = largest_ + rows;
    weighted_ = sum_ + rows;
    const int threads = plan.cost < least_shared_cost ? 1 : thread_pool().threads();
    const std::vector<Range> shares = plan.shares(threads);
    thread_pool().run(static_cast<int64_t>(shares.size()), [&](int64_t i) { run_share(plan, shares[i]); });
    const int64_t merges = static_cast<int64_t>(plan.merges.size());
    parallel_for(merges, threads > 1 ? 1 : merges, 1, [&](Range part) {
      for (int64_t i = part.begin; i < part.end; ++i) merge(plan.merges[i]);
    });
    return output_;
  }

 private:
  simd::CachedContext cached_context(const AttentionPiece& piece) const {
    return {.keys = cache_.keys.const_data_ptr(),
            .values = cache_.values.const_data_ptr(),
            .blocks = batch_.block_tables[piece.sequence].data(),
            .block_size = cache_.block_size(),
            .slot_stride = cache_.keys.size(2) * head_dim_,
            .head_dim = head_dim_};
  }

  int64_t q_offset(int64_t token, int64_t head) const { return token * q_.stride(0) + head * q_.stride(1); }
  int64_t output_offset(int64_t token, int64_t head) const {
    return token * output_.stride(0) + head * output_.stride(1);
  }

  /// The pieces of one thread, in order: each decode piece asks for the first rows of the next one.
  void run_share(const AttentionPlan& plan, Range share) const {
    DecodeCalls calls;
    for (int64_t i = share.begin; i < share.end; ++i) {
      if (plan.pieces[i].is_decode()) add_call(calls, plan.pieces[i]);
    }
    for (const simd::DecodeCall& call : calls.link()) kernels_.attend_decode(call);
    for (int64_t i = share.begin; i < share.end; ++i) {
      if (!plan.pieces[i].is_decode()) prefill(plan.pieces[i]);
    }
  }

  void add_call(DecodeCalls& calls, const AttentionPiece& piece) const {
    const int64_t first_head = runs_[piece.runs.begin].q_heads.begin;
    for (int64_t i = piece.runs.begin; i < piece.runs.end; ++i) {
      const Range q_heads = runs_[i].q_heads;
      const int64_t row = piece.partial_row + q_heads.begin - first_head;
      float* packed = calls.room_for_q(simd::packed_floats(q_heads.size(), head_dim_));
      kernels_.pack_heads(element_at(q_, q_offset(piece.tokens.begin, q_heads.begin)), q_.stride(1), q_heads.size(),
                          head_dim_, packed);
      calls.add_run({.offset = runs_[i].kv_head * head_dim_,
                     .packed_q = packed,
                     .heads = q_heads.size(),
                     .largest = largest_ + row,
                     .sum = sum_ + row,
                     .weighted = weighted_ + row * simd::padded(head_dim_)});
    }
    calls.add({.cache = cached_context(piece),
               .runs = nullptr,
               .run_count = piece.runs.size(),
               .scale = scale_,
               .begin = piece.positions.begin,
               .end = piece.positions.end,
               .begins_cached = false,
               .next = nullptr});
  }

  void merge(const AttentionMerge& part) const {
    for (int64_t head = 0; head < part.q_heads.size(); ++head) {
      const int64_t row = part.partial_row + head;
      kernels_.merge_splits(
          {.largest = largest_ + row,
           .sum = sum_ + row,
           .weighted = weighted_ + row * simd::padded(head_dim_),
           .splits = part.splits,
           .row_stride = part.split_rows,
           .head_dim = head_dim_,
           .output = mutable_element_at(output_, output_offset(part.token, part.q_heads.begin + head))});
    }
  }

  void prefill(const AttentionPiece& piece) const {
    const HeadRun& run = runs_[piece.runs.begin];
    const int64_t new_tokens_after = batch_.query_starts[piece.sequence + 1] - piece.tokens.begin;
    thread_local Scratch scratch;
    kernels_.attend_prefill(
        {.cache = cached_context(piece),
         .offset = run.kv_head * head_dim_,
         .q = element_at(q_, q_offset(piece.tokens.begin, run.q_heads.begin)),
         .q_token_stride = q_.stride(0),
         .q_head_stride = q_.stride(1),
         .output = mutable_element_at(output_, output_offset(piece.tokens.begin, run.q_heads.begin)),
         .output_token_stride = output_.stride(0),
         .output_head_stride = output_.stride(1),
         .tokens = piece.tokens.size(),
         .heads = run.q_heads.size(),
         .first_position = batch_.context_lengths[piece.sequence] - new_tokens_after,
         .window = window_,
         .scale = scale_,
         .scratch = scratch.floats(simd::prefill_scratch_floats(piece.tokens.size() * run.q_heads.size(), head_dim_))});
  }

  const simd::KernelTable& kernels_;
  const at::Tensor q_;
  const at::Tensor output_;
  const KVCacheView& cache_;
  const AttentionBatch& batch_;
  const std::vector<HeadRun>& runs_;
  const float scale_;
  const int64_t window_;
  const int64_t head_dim_;
  float* largest_ = nullptr;  // one for each partial row
  float* sum_ = nullptr;
  float* weighted_ = nullptr;  // head_dim, padded, for each partial row
};

}  // namespace

at::Tensor paged_attention(const at::Tensor& q, const KVCacheView& cache, const AttentionBatch& batch,
                           const std::vector<HeadRun>& runs, const AttentionOptions& options) {
  return PagedAttention(with_dense_rows(q), cache, batch, runs, options).run();
}

}  // namespace headway::kernels::cpu
