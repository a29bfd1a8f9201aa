#include "engine/text_stream.h"

namespace headway {

TextStream::TextStream(const Tokenizer* tokenizer, const TextParams& params)
    : matcher_(params.stop, params.include_stop_str_in_output),
      min_tokens_(params.sampling.min_tokens),
      include_stop_(params.include_stop_str_in_output) {
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer, params.skip_special_tokens);
}

TextOutput TextStream::take(RequestOutput output) {
  TextOutput result;
  result.text = decode(output);
  if (output.finish_reason) result.text += matcher_.finish();
  result.stop_string = matcher_.matched();
  if (result.stop_string) {
    output.finish_reason = FinishReason::stop;
    output.stop_token.reset();
  }
  result.output = std::move(output);
  return result;
}

std::string TextStream::decode(const RequestOutput& output) {
  if (!decoder_) return "";
  std::string text;
  for (const int32_t token : output.token_ids) {
    ++tokens_;
    // A token that ends the text is no part of it.
    const bool ending = output.finish_reason == FinishReason::stop && !include_stop_;
    if (!ending) text += settle(decoder_->push(token));
  }
  if (output.finish_reason) text += settle(decoder_->finish());
  return text;
}

std::string TextStream::settle(const std::string& piece) {
  return tokens_ > min_tokens_ ? matcher_.push(piece) : matcher_.pass(piece);
}

}  // namespace headway
