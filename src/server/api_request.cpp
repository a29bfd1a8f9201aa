#include "server/api_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "server/api_error.h"
#include "server/body_reader.h"
#include "server/chat_messages.h"
#include "server/prompt_field.h"

namespace headway {
namespace {

constexpr int64_t kCompletionTokens = 16;  // OpenAI's default where none is given

void read_model(BodyReader& body, const ServedModel& model, ApiRequest& request) {
  request.model = body.string("model").value_or(model.names.front());
  if (std::find(model.names.begin(), model.names.end(), request.model) != model.names.end()) return;
  throw ApiError(404, "model_not_found",
                 fmt::format("the model \"{}\" is not served here; \"{}\" is", request.model, model.names.front()),
                 "model");
}

int32_t token_id_of(const std::string& key) {
  int32_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error == std::errc{} && end == key.data() + key.size()) return id;
  throw invalid_request("logit_bias", fmt::format("logit_bias: \"{}\" is not a token id", key));
}

void read_logit_bias(BodyReader& body, SamplingParams& params) {
  const Json* biases = body.find("logit_bias");
  if (biases == nullptr) return;
  BodyReader reader(*biases, "logit_bias.");
  for (const auto& [key, value] : biases->items()) params.logit_bias[token_id_of(key)] = reader.number(key).value_or(0);
}

void read_stop_token_ids(BodyReader& body, SamplingParams& params, int64_t vocab_size) {
  const Json* ids = body.find("stop_token_ids");
  if (ids == nullptr) return;
  const auto fits = [&](const Json& id) { return id.is_number_integer() && id >= 0 && id < vocab_size; };
  if (!ids->is_array() || !std::all_of(ids->begin(), ids->end(), fits)) {
    throw invalid_request("stop_token_ids", fmt::format("stop_token_ids must be a list of token ids in 0 to {}, not {}",
                                                        vocab_size - 1, dump_json(*ids).substr(0, 80)));
  }
  params.stop_token_ids = ids->get<std::vector<int32_t>>();
}

void read_sampling(BodyReader& body, const ServedModel& model, SamplingParams& params) {
  params.temperature = body.number("temperature").value_or(1.0);
  body.read("top_p", params.top_p);
  body.read("top_k", params.top_k);
  body.read("min_p", params.min_p);
  body.read("repetition_penalty", params.repetition_penalty);
  body.read("presence_penalty", params.presence_penalty);
  body.read("frequency_penalty", params.frequency_penalty);
  body.read("min_tokens", params.min_tokens);
  body.read("ignore_eos", params.ignore_eos);
  read_logit_bias(body, params);
  read_stop_token_ids(body, params, model.vocab_size);
  if (const auto seed = body.integer("seed")) params.seed = static_cast<uint64_t>(*seed);
}

void read_text_params(BodyReader& body, TextParams& params) {
  body.read("n", params.n);
  params.stop = body.strings("stop");
  body.read("include_stop_str_in_output", params.include_stop_str_in_output);
  body.read("skip_special_tokens", params.skip_special_tokens);
}

void read_stream(BodyReader& body, ApiRequest& request) {
  body.read("stream", request.stream);
  const Json* options = body.find("stream_options");
  if (options == nullptr) return;
  if (!request.stream) throw invalid_request("stream_options", "stream_options has a meaning only with stream");
  BodyReader reader(*options, "stream_options.");
  reader.read("include_usage", request.include_usage);
  reader.refuse_others();
}

void read_completion(BodyReader& body, const ServedModel& model, ApiRequest& request) {
  request.prompts = read_prompts(body.require("prompt"), model);
  SamplingParams& sampling = request.params.sampling;
  body.read("echo", request.echo);
  sampling.max_tokens = body.integer("max_tokens").value_or(kCompletionTokens);
  request.only_echo = request.echo && sampling.max_tokens == 0;
  if (request.only_echo) sampling.max_tokens = 1;
  sampling.logprobs = body.integer("logprobs");
  if (request.echo) sampling.prompt_logprobs = sampling.logprobs;
  body.accept_only("suffix", "");
  body.accept_only("best_of", request.params.n);
}

int64_t room_for_text(const ApiRequest& request, const ServedModel& model) {
  return std::max<int64_t>(model.max_model_len - static_cast<int64_t>(request.prompts.front().size()), 1);
}

void read_chat(BodyReader& body, const ServedModel& model, ApiRequest& request) {
  const std::vector<ChatMessage> messages = read_messages(body.require("messages"));
  if (!model.tokenizer || !model.chat_template) {
    throw ApiError(400, "no_chat_template", "the model has no chat template; completions are served", "messages");
  }
  request.prompts = {encode_chat(*model.tokenizer, *model.chat_template, messages)};
  SamplingParams& sampling = request.params.sampling;
  const auto max_tokens = body.integer("max_tokens");
  const auto max_completion_tokens = body.integer("max_completion_tokens");
  sampling.max_tokens = max_completion_tokens.value_or(max_tokens.value_or(room_for_text(request, model)));
  const auto top_logprobs = body.integer("top_logprobs");
  if (body.boolean("logprobs").value_or(false)) {
    sampling.logprobs = top_logprobs.value_or(0);
  } else if (top_logprobs) {
    throw invalid_request("top_logprobs", "top_logprobs has a meaning only with logprobs");
  }
  body.accept_only("response_format", {{"type", "text"}});
  body.accept_only("tool_choice", "none");
  body.accept_only("modalities", Json::array({"text"}));
}

/// The engine would refuse the same, but without the name of the field.
void check(const ApiRequest& request, const ServedModel& model) {
  request.params.validate();
  request.params.sampling.validate(model.vocab_size);
  if (!request.params.stop.empty() && !model.tokenizer) {
    throw invalid_request("stop", "stop needs a tokenizer, and the model has none");
  }
}

}  // namespace

std::string_view path_of(Endpoint endpoint) {
  return endpoint == Endpoint::completions ? "/v1/completions" : "/v1/chat/completions";
}

ApiRequest read_request(Endpoint endpoint, const Json& body, const ServedModel& model) {
  BodyReader reader(body);
  ApiRequest request;
  request.endpoint = endpoint;
  read_model(reader, model, request);
  read_sampling(reader, model, request.params.sampling);
  read_text_params(reader, request.params);
  read_stream(reader, request);
  reader.string("user");  // names an end user to whoever reads logs; nothing depends on it
  if (endpoint == Endpoint::completions) {
    read_completion(reader, model, request);
  } else {
    read_chat(reader, model, request);
  }
  reader.refuse_others();
  check(request, model);
  return request;
}

}  // namespace headway
