#include "headway/plan/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headway {
namespace {

constexpr int64_t kVocabularyPadding = 64;  // rows, in both engines

int64_t padded_vocabulary(int64_t rows) {
  return (rows + kVocabularyPadding - 1) / kVocabularyPadding * kVocabularyPadding;
}

/// Why attention over `size` ranks is refused; empty if it is served.
std::string attention_refusal(const ModelConfig& model, int64_t size) {
  if (model.total_q_heads % size != 0) {
    return fmt::format("{} query heads do not divide by {}", model.total_q_heads, size);
  }
  const bool splits = model.total_kv_heads % size == 0;
  const bool shares = size > model.total_kv_heads && size % model.total_kv_heads == 0;
  if (!splits && !shares) return fmt::format("{} KV heads against {} ranks", model.total_kv_heads, size);
  return "";
}

/// Why MLP and vocabulary over `size` ranks are refused; empty if they are served.
std::string rest_refusal(const ModelConfig& model, int64_t size) {
  if (model.intermediate_size % size != 0) {
    return fmt::format("{} MLP columns do not divide by {}", model.intermediate_size, size);
  }
  const int64_t padded = padded_vocabulary(model.vocab_size);
  if (padded % size != 0) {
    return fmt::format("a vocabulary of {}, padded to {}, does not divide by {}", model.vocab_size, padded, size);
  }
  return "";
}

std::string refusal(const ModelConfig& model, int64_t attention_size, int64_t size) {
  const std::string attention = attention_refusal(model, attention_size);
  return attention.empty() ? rest_refusal(model, size) : attention;
}

/// What an engine that serves the heads does otherwise: its vocabulary lies on the whole TP group, padded.
std::string differences(const ModelConfig& model, const ParallelConfig& parallel) {
  std::vector<std::string> notes;
  const int64_t padded = padded_vocabulary(model.vocab_size);
  if (padded != model.vocab_size)
    notes.push_back(fmt::format("vocabulary padded from {} to {}", model.vocab_size, padded));
  const bool elsewhere = parallel.embedding_group != VocabGroup::tp || parallel.lm_head_group != VocabGroup::tp;
  if (parallel.tp > 1 && elsewhere) notes.push_back("embedding and LM head on tp");
  return fmt::format("{}", fmt::join(notes, ", "));
}

/// For an engine without attention replicas that compute the same tokens.
std::string no_replicas(const ModelConfig& model, const ParallelConfig& parallel) {
  const std::string plain = refusal(model, parallel.tp, parallel.tp);
  return fmt::format("no attention group of {} in tp {}; plain tp {} {}", parallel.attn_tp, parallel.tp, parallel.tp,
                     plain.empty() ? "is served" : "is refused: " + plain);
}

PeerVerdict verdict(std::string_view engine, const std::string& refused, const std::string& note) {
  return {engine, refused.empty(), refused.empty() ? note : refused};
}

}  // namespace

std::vector<PeerVerdict> peer_verdicts(const ModelConfig& model, const ParallelConfig& parallel) {
  const bool one_size = parallel.attn_tp == parallel.tp;
  const std::string plain = refusal(model, parallel.tp, parallel.tp);
  const std::string note = differences(model, parallel);
  std::vector<PeerVerdict> verdicts;
  verdicts.push_back(verdict("vLLM", one_size ? plain : no_replicas(model, parallel), note));
  if (!one_size && parallel.attn_replicas == AttnReplicas::dp) {
    verdicts.push_back(verdict("SGLang", refusal(model, parallel.attn_tp, parallel.tp),
                               fmt::format("with dp attention of {}", parallel.tp / parallel.attn_tp)));
  } else {
    verdicts.push_back(verdict("SGLang", one_size ? plain : no_replicas(model, parallel), note));
  }
  return verdicts;
}

}  // namespace headway
