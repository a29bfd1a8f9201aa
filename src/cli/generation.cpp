#include "cli/generation.h"

#include <unistd.h>

#include <chrono>

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

}  // namespace

TextStream::TextStream(const std::optional<Tokenizer>& tokenizer, bool silent) : silent_(silent) {
  if (tokenizer) decoder_.emplace(*tokenizer);
}

void TextStream::push(int32_t token) {
  if (decoder_) {
    emit(decoder_->push(token));
  } else {
    emit((text_.empty() ? "" : ",") + std::to_string(token));
  }
}

void TextStream::finish() {
  if (decoder_) emit(decoder_->finish());
  if (!silent_) write_text(STDOUT_FILENO, "\n");
}

void TextStream::emit(const std::string& piece) {
  text_ += piece;
  if (!silent_) write_text(STDOUT_FILENO, piece);
}

double Generation::prefill_tokens_per_s() const {
  return rate(prompt_tokens, prefill_seconds);
}

double Generation::decode_tokens_per_s() const {
  return rate(static_cast<int64_t>(token_ids.size()) - 1, decode_seconds);
}

Generation generate(LLMEngine& engine, const std::vector<int32_t>& prompt, const SamplingParams& params,
                    TextStream& stream) {
  Generation generation;
  generation.prompt_tokens = static_cast<int64_t>(prompt.size());
  const auto start = Clock::now();
  auto first_token = start;
  engine.add_request(prompt, params);
  while (engine.has_unfinished()) {
    for (const RequestOutput& output : engine.step()) {
      if (output.finish_reason == FinishReason::error) throw Error(output.error);
      if (generation.token_ids.empty()) first_token = Clock::now();
      generation.token_ids.insert(generation.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
      if (output.finish_reason) generation.finish_reason = *output.finish_reason;
      if (output.finish_reason == FinishReason::stop) continue;  // the end-of-sequence token is no text
      for (const int32_t token : output.token_ids) stream.push(token);
    }
  }
  generation.prefill_seconds = seconds_between(start, first_token);
  generation.decode_seconds = seconds_between(first_token, Clock::now());
  stream.finish();
  return generation;
}

}  // namespace headway
