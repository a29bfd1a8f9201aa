#include "cli/generation.h"

#include <unistd.h>

#include <chrono>

#include "cli/errors.h"
#include "cli/terminal.h"
#include "headway/base/error.h"

namespace headway {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

/// The new ids; one that ends the text is not shown.
std::string ids_text(const RequestOutput& output, bool first) {
  if (output.finish_reason == FinishReason::stop) return "";
  std::string text;
  for (const int32_t token : output.token_ids) {
    text += (first && text.empty() ? "" : ",") + std::to_string(token);
  }
  return text;
}

}  // namespace

double Generation::prefill_tokens_per_s() const {
  return rate(prompt_tokens, prefill_seconds);
}

double Generation::decode_tokens_per_s() const {
  return rate(static_cast<int64_t>(token_ids.size()) - 1, decode_seconds);
}

Generation generate(LLMEngine& engine, const std::optional<Tokenizer>& tokenizer, const std::vector<int32_t>& prompt,
                    const TextParams& params, bool silent) {
  TextGenerator generator(engine, tokenizer ? &*tokenizer : nullptr);
  Generation generation;
  generation.prompt_tokens = static_cast<int64_t>(prompt.size());
  const auto start = Clock::now();
  auto first_token = start;
  as_usage([&] { generator.add(prompt, params); });
  while (generator.has_unfinished()) {
    for (const TextOutput& text : generator.step()) {
      const RequestOutput& output = text.output;
      if (output.finish_reason == FinishReason::error) throw Error(output.error);
      if (generation.token_ids.empty()) first_token = Clock::now();
      const std::string piece = tokenizer ? text.text : ids_text(output, generation.token_ids.empty());
      generation.token_ids.insert(generation.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
      generation.text += piece;
      if (!silent) write_text(STDOUT_FILENO, piece);
      if (output.finish_reason) generation.finish_reason = *output.finish_reason;
    }
  }
  generation.prefill_seconds = seconds_between(start, first_token);
  generation.decode_seconds = seconds_between(first_token, Clock::now());
  if (!silent) write_text(STDOUT_FILENO, "\n");
  return generation;
}

}  // namespace headway
