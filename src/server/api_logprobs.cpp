#include "server/api_logprobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/utf8.h"

namespace headway {
namespace {

std::string bytes_of(int32_t token, const std::optional<Tokenizer>& tokenizer) {
  return tokenizer ? tokenizer->token_bytes(token) : "";
}

/// A token as text. One that is no whole characters is written as OpenAI does, "bytes:\xe2\x98"; one without a
/// tokenizer as "token_id:7".
std::string text_of(int32_t token, const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return fmt::format("token_id:{}", token);
  const std::string bytes = tokenizer->token_bytes(token);
  if (to_valid_utf8(bytes) == bytes) return bytes;
  std::string text = "bytes:";
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Json chat_entry(const TokenLogprob& entry, const std::optional<Tokenizer>& tokenizer) {
  Json bytes = Json::array();
  for (const char byte : bytes_of(entry.token, tokenizer)) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", text_of(entry.token, tokenizer)}, {"logprob", entry.logprob}, {"bytes", bytes}};
}

/// Characters that begin in `bytes`.
int64_t characters_in(const std::string& bytes) {
  return std::count_if(bytes.begin(), bytes.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

Json top_of(const TokenLogprobs& logprobs, const std::optional<Tokenizer>& tokenizer) {
  Json top = Json::object();
  for (const TokenLogprob& entry : logprobs.top) top.emplace(text_of(entry.token, tokenizer), entry.logprob);
  top.emplace(text_of(logprobs.chosen.token, tokenizer), logprobs.chosen.logprob);
  return top;
}

class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(const std::optional<Tokenizer>& tokenizer) : tokenizer_(tokenizer) {}

  void add(int32_t token, const Json& logprob, const Json& top) {
    tokens_.push_back(text_of(token, tokenizer_));
    token_logprobs_.push_back(logprob);
    top_logprobs_.push_back(top);
    offsets_.push_back(offset_);
    offset_ += characters_in(bytes_of(token, tokenizer_));
  }

  Json json() const {
    return {{"tokens", tokens_},
            {"token_logprobs", token_logprobs_},
            {"top_logprobs", top_logprobs_},
            {"text_offset", offsets_}};
  }

 private:
  const std::optional<Tokenizer>& tokenizer_;
  int64_t offset_ = 0;
  Json tokens_ = Json::array(), token_logprobs_ = Json::array(), top_logprobs_ = Json::array(),
       offsets_ = Json::array();
};

}  // namespace

Json chat_logprobs(const std::vector<TokenLogprobs>& logprobs, const std::optional<Tokenizer>& tokenizer) {
  Json content = Json::array();
  for (const TokenLogprobs& token : logprobs) {
    Json entry = chat_entry(token.chosen, tokenizer);
    entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& other : token.top) entry["top_logprobs"].push_back(chat_entry(other, tokenizer));
    content.push_back(std::move(entry));
  }
  return {{"content", content}};
}

Json completion_logprobs(const std::vector<TokenLogprobs>& logprobs, std::optional<int32_t> first,
                         const std::optional<Tokenizer>& tokenizer) {
  CompletionLogprobs result(tokenizer);
  if (first) result.add(*first, nullptr, nullptr);
  for (const TokenLogprobs& token : logprobs) {
    result.add(token.chosen.token, token.chosen.logprob, top_of(token, tokenizer));
  }
  return result.json();
}

}  // namespace headway
