#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

// What `headway verify` and the ranks that it starts tell each other, by files in a folder of the run.
namespace headway {

/// What the ranks of one layout are to do. With a `baseline` they take its prompts and compare with it; with a `trace`
/// they write one.
struct VerifyJob {
  std::vector<std::vector<int32_t>> prompts;  ///< token ids; used where there is no baseline
  int64_t tokens = 0;                         ///< greedy tokens after each of `prompts`
  std::filesystem::path baseline;             ///< trace (see verify_trace.h), or empty
  std::filesystem::path trace;                ///< trace to write, or empty
  std::filesystem::path layers;               ///< folder of per-layer states: written with a trace, else compared with
  std::filesystem::path results;              ///< folder: rank r writes "rank-<r>.json"
};

void write_job(const std::filesystem::path& path, const VerifyJob& job);
VerifyJob read_job(const std::filesystem::path& path);

/// The largest difference of a logit, as a share of the largest logit of its row.
struct LogitDifference {
  double relative = 0;
  double absolute = 0;
  int64_t prompt = 0;
  int64_t position = 0;
  int64_t token = 0;
};

/// The difference of the log-probability of a greedy token of the baseline that comes closest to its bound or exceeds
/// it most.
struct LogprobDifference {
  double value = 0;
  double bound = 0;
  int64_t prompt = 0;
  int64_t position = 0;
  int64_t token = 0;
};

/// The first greedy token that is not the baseline's.
struct TokenDifference {
  int64_t prompt = 0;
  int64_t index = 0;  ///< among the new tokens
  int64_t expected = 0;
  std::optional<int64_t> actual;  ///< absent: decoding ended before it
  double gap = 0;                 ///< by how much the baseline's best logit leads there
  double bound = 0;               ///< what the gap must stay below; 0: no token may differ
};

/// With `same_tokens` no greedy token may differ, and no logit by more than `relative_logit` of its row's largest.
/// Otherwise the bound of a row is the larger of `least_logprob` and `relative_logit` of its largest logit: the
/// log-probability of its greedy token may differ by that, and the token itself where the best logit leads by less.
struct VerifyBounds {
  bool same_tokens = true;
  double relative_logit = 0;
  double least_logprob = 0;
  double relative_hidden = 0;  ///< from where on a hidden state is called different
};

/// What rank 0 found.
struct Comparison {
  std::string dtype;
  VerifyBounds bounds;
  LogitDifference logit;
  LogprobDifference logprob;
  std::optional<TokenDifference> token;  ///< over the prompts, the one with the widest gap for its bound
  std::vector<std::string> breaches;     ///< bounds that do not hold, in words; empty: all agree

  bool agrees() const { return breaches.empty(); }
};

/// The parts of a layer in the order in which they are computed.
enum class LayerPart { embedding, keys_and_values, attention, mlp };
std::string_view name_of(LayerPart part);

/// Where a rank's states first differ from the baseline's.
struct Deviation {
  int64_t layer = 0;
  LayerPart part = LayerPart::embedding;
  double relative = 0;            ///< largest over tokens: length of the difference by that of the baseline's vector
  std::vector<int64_t> kv_heads;  ///< of the model, with keys_and_values
};

/// What one rank reports.
struct RankFindings {
  int rank = 0;
  std::string dtype;
  std::optional<Comparison> comparison;  ///< of rank 0, where there is a baseline
  std::optional<Deviation> deviation;
};

std::filesystem::path findings_file(const std::filesystem::path& results, int rank);
void write_findings(const std::filesystem::path& results, const RankFindings& findings);
RankFindings read_findings(const std::filesystem::path& results, int rank);

Json comparison_json(const Comparison& comparison);

}  // namespace headway
