#include "server/api_job.h"

#include <algorithm>
#include <utility>

#include "server/api_error.h"
#include "server/api_logprobs.h"

namespace headway {
namespace {

template <typename Value>
void append(std::vector<Value>& all, const std::vector<Value>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

ApiJob::ApiJob(ApiRequest request, const ServedModel& model, std::string id, int64_t created)
    : request_(std::move(request)),
      model_(model),
      id_(std::move(id)),
      created_(created),
      choices_(request_.prompts.size() * request_.params.n),
      unfinished_(choices_.size()) {}

void ApiJob::start(TextGenerator& generator) {
  try {
    for (const auto& prompt : request_.prompts) ids_.push_back(generator.add(prompt, request_.params));
  } catch (const Error&) {
    cancel(generator);
    throw;
  }
}

void ApiJob::cancel(TextGenerator& generator) {
  for (const RequestId id : std::exchange(ids_, {})) generator.cancel(id);
}

void ApiJob::take(const TextOutput& text) {
  const RequestOutput& output = text.output;
  const auto prompt = std::find(ids_.begin(), ids_.end(), output.request) - ids_.begin();
  Choice& choice = choices_.at(prompt * request_.params.n + text.index);
  choice.text += text.text;
  append(choice.token_ids, output.token_ids);
  append(choice.logprobs, output.logprobs);
  append(choice.prompt_logprobs, output.prompt_logprobs);
  if (!output.finish_reason) return;
  choice.finish_reason = output.finish_reason;
  choice.error = output.error;
  if (output.stop_token) choice.stop_reason = *output.stop_token;
  if (text.stop_string) choice.stop_reason = *text.stop_string;
  --unfinished_;
}

Json ApiJob::response() const {
  for (const Choice& choice : choices_) {
    if (choice.finish_reason == FinishReason::error) throw ApiError(500, "generation_failed", choice.error);
  }
  Json choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(choice_json(i));
  const bool chat = request_.endpoint == Endpoint::chat_completions;
  return {{"id", id_},           {"object", chat ? "chat.completion" : "text_completion"},
          {"created", created_}, {"model", request_.model},
          {"choices", choices},  {"usage", usage()}};
}

Json ApiJob::choice_json(size_t index) const {
  const Choice& choice = choices_[index];
  const auto& prompt = request_.prompts[index / request_.params.n];
  Json json{{"index", index},
            {"logprobs", logprobs_json(choice, prompt.front())},
            {"finish_reason", request_.only_echo ? "length" : name_of(*choice.finish_reason)},
            {"stop_reason", choice.stop_reason}};
  if (request_.endpoint == Endpoint::chat_completions) {
    json["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    return json;
  }
  std::string text = request_.only_echo ? "" : choice.text;
  if (request_.echo && model_.tokenizer) text = model_.tokenizer->decode(prompt, false) + text;
  json["text"] = text;
  return json;
}

Json ApiJob::logprobs_json(const Choice& choice, int32_t first_of_prompt) const {
  if (!request_.params.sampling.logprobs) return nullptr;
  if (request_.endpoint == Endpoint::chat_completions) return chat_logprobs(choice.logprobs, model_.tokenizer);
  std::vector<TokenLogprobs> all;
  if (request_.echo) all = choice.prompt_logprobs;
  if (!request_.only_echo) append(all, choice.logprobs);
  return completion_logprobs(all, request_.echo ? std::optional(first_of_prompt) : std::nullopt, model_.tokenizer);
}

Json ApiJob::usage() const {
  size_t prompt_tokens = 0, completion_tokens = 0;
  for (const auto& prompt : request_.prompts) prompt_tokens += prompt.size();
  for (const Choice& choice : choices_) completion_tokens += request_.only_echo ? 0 : choice.token_ids.size();
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", prompt_tokens + completion_tokens}};
}

}  // namespace headway
