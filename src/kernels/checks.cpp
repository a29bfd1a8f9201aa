#include "kernels/checks.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headway/base/error.h"

namespace headway::kernels {
namespace {

template <typename... Args>
[[noreturn]] void fail(const char* op, fmt::format_string<Args...> format, Args&&... args) {
  throw ArgumentError(fmt::format("{}: {}", op, fmt::format(format, std::forward<Args>(args)...)));
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

}  // namespace

void check_tensor(const char* op, const char* name, const at::Tensor& tensor, int64_t dims) {
  if (!tensor.defined()) fail(op, "{} is undefined", name);
  if (tensor.dim() != dims) fail(op, "{} must have {} dimensions, not shape {}", name, dims, shape_of(tensor));
  const at::ScalarType dtype = tensor.scalar_type();
  if (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf) {
    fail(op, "{} must be fp32, bf16 or fp16, not {}", name, c10::toString(dtype));
  }
  if (!tensor.is_cpu() && !tensor.is_cuda()) fail(op, "{} is on {}, not on a CPU or GPU", name, tensor.device().str());
}

void check_same_kind(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& like) {
  if (tensor.scalar_type() != like.scalar_type() || tensor.device() != like.device()) {
    fail(op, "{} is {} on {} beside {} on {}", name, c10::toString(tensor.scalar_type()), tensor.device().str(),
         c10::toString(like.scalar_type()), like.device().str());
  }
}

void check_size(const char* op, const char* name, const at::Tensor& tensor, int64_t dim, int64_t expected) {
  if (tensor.size(dim) != expected) {
    fail(op, "{} has shape {}; dimension {} must be {}", name, shape_of(tensor), dim, expected);
  }
}

void check_batch(const char* op, const AttentionBatch& batch, const KVCacheView& cache) {
  const int64_t tokens = batch.num_tokens();
  const int64_t sequences = batch.num_sequences();
  if (static_cast<int64_t>(batch.slots.size()) != tokens) {
    fail(op, "{} slots for {} positions", batch.slots.size(), tokens);
  }
  if (static_cast<int64_t>(batch.query_starts.size()) != sequences + 1 ||
      static_cast<int64_t>(batch.block_tables.size()) != sequences) {
    fail(op, "{} sequences with {} query starts and {} block tables", sequences, batch.query_starts.size(),
         batch.block_tables.size());
  }
  if (batch.query_starts.front() != 0 || batch.query_starts.back() != tokens) {
    fail(op, "query starts run from {} to {}, not from 0 to {} tokens", batch.query_starts.front(),
         batch.query_starts.back(), tokens);
  }
  const int64_t blocks = cache.keys.size(0);
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t context = batch.context_lengths[s];
    if (batch.query_length(s) < 0 || batch.query_length(s) > context) {
      fail(op, "sequence {} has {} new tokens in a context of {}", s, batch.query_length(s), context);
    }
    const auto& table = batch.block_tables[s];
    const int64_t needed = (context + cache.block_size() - 1) / cache.block_size();
    if (static_cast<int64_t>(table.size()) < needed) {
      fail(op, "sequence {} has {} blocks of {} for a context of {}", s, table.size(), cache.block_size(), context);
    }
    for (int64_t b = 0; b < needed; ++b) {
      if (table[b] < 0 || table[b] >= blocks) fail(op, "sequence {} names block {} of {}", s, table[b], blocks);
    }
  }
}

void check_runs(const char* op, const std::vector<HeadRun>& runs, int64_t q_heads, const KVCacheView& cache) {
  int64_t next = 0;
  for (const HeadRun& run : runs) {
    if (run.q_heads.begin != next || run.q_heads.size() < 0) {
      fail(op, "a run starts at query head {} where {} is due", run.q_heads.begin, next);
    }
    if (run.kv_head < 0 || run.kv_head >= cache.keys.size(2)) {
      fail(op, "a run names KV head {} of {}", run.kv_head, cache.keys.size(2));
    }
    next = run.q_heads.end;
  }
  if (next != q_heads) fail(op, "the runs cover {} of {} query heads", next, q_heads);
}

}  // namespace headway::kernels
