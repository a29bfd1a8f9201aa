#include "server/api_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "server/api_error.h"
#include "server/api_job.h"
#include "server/body_reader.h"
#include "support/fake_model.h"
#include "unit/tokenizer/small_tokenizer.h"

namespace headway {
namespace {

using ::testing::HasSubstr;

ChatTemplate template_of(const char* jinja) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "chat_template.jinja") << jinja;
  return std::move(*ChatTemplate::from_pretrained(folder.path()));
}

ServedModel served_model() {
  return {{"small", "/models/small"},
          test::load_tokenizer(test::qwen2_like_json()),
          template_of("{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}>"),
          320,
          512};
}

ApiRequest completion(const Json& body) {
  return read_request(Endpoint::completions, body, served_model());
}

ApiRequest chat(const Json& body) {
  return read_request(Endpoint::chat_completions, body, served_model());
}

struct Refusal {
  int status = 200;
  std::string code, param, message;
};

Refusal refusal_of(Endpoint endpoint, const Json& body) {
  const ServedModel model = served_model();
  try {
    read_request(endpoint, body, model);
  } catch (const std::exception& caught) {
    const ApiError error = api_error_of(caught);
    const Json json = error.body()["error"];
    EXPECT_EQ(json["type"], "invalid_request_error");
    return {error.status(), error.code(), json["param"].is_null() ? "" : json["param"].get<std::string>(),
            json["message"]};
  }
  return {};
}

Refusal refused(Json changes) {
  Json body{{"prompt", "hello"}};
  body.update(changes);
  return refusal_of(Endpoint::completions, body);
}

TEST(ApiRequest, ReadsEveryParameterOfACompletion) {
  const ApiRequest request = completion(Json::parse(R"({
      "model": "/models/small", "prompt": ["hello", [1, 2, 3]], "max_tokens": 7, "temperature": 0.25, "top_p": 0.5,
      "top_k": 9, "min_p": 0.125, "repetition_penalty": 1.5, "presence_penalty": -1, "frequency_penalty": 0.75,
      "logit_bias": {"319": -3, "5": 2.5}, "seed": 42, "min_tokens": 2, "ignore_eos": true, "stop_token_ids": [4, 8],
      "logprobs": 3, "n": 2, "best_of": 2, "stop": ["a", "bc"], "include_stop_str_in_output": true,
      "skip_special_tokens": false, "echo": true, "stream": true, "stream_options": {"include_usage": true},
      "user": "somebody", "suffix": null})"));
  EXPECT_EQ(request.model, "/models/small");
  EXPECT_EQ(request.prompts, (std::vector<std::vector<int32_t>>{{259}, {1, 2, 3}}));
  const SamplingParams& sampling = request.params.sampling;
  EXPECT_EQ(sampling.max_tokens, 7);
  EXPECT_EQ(sampling.temperature, 0.25);
  EXPECT_EQ(sampling.top_p, 0.5);
  EXPECT_EQ(sampling.top_k, 9);
  EXPECT_EQ(sampling.min_p, 0.125);
  EXPECT_EQ(sampling.repetition_penalty, 1.5);
  EXPECT_EQ(sampling.presence_penalty, -1);
  EXPECT_EQ(sampling.frequency_penalty, 0.75);
  EXPECT_EQ(sampling.logit_bias, (std::map<int32_t, double>{{5, 2.5}, {319, -3}}));
  EXPECT_EQ(sampling.seed, 42u);
  EXPECT_EQ(sampling.min_tokens, 2);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_EQ(sampling.stop_token_ids, (std::vector<int32_t>{4, 8}));
  EXPECT_EQ(sampling.logprobs, 3);
  EXPECT_EQ(sampling.prompt_logprobs, 3);
  EXPECT_EQ(request.params.n, 2);
  EXPECT_EQ(request.params.stop, (std::vector<std::string>{"a", "bc"}));
  EXPECT_TRUE(request.params.include_stop_str_in_output);
  EXPECT_FALSE(request.params.skip_special_tokens);
  EXPECT_TRUE(request.echo && request.stream && request.include_usage);
}

TEST(ApiRequest, HasOpenAisDefaults) {
  const ApiRequest request = completion({{"prompt", "hello"}});
  EXPECT_EQ(request.model, "small");
  EXPECT_EQ(request.params.sampling.temperature, 1);
  EXPECT_EQ(request.params.sampling.max_tokens, 16);
  EXPECT_FALSE(request.params.sampling.seed);
  EXPECT_FALSE(request.stream || request.echo || request.include_usage);
  const ApiRequest talk = chat({{"messages", {{{"role", "user"}, {"content", "hello"}}}}});
  EXPECT_EQ(talk.params.sampling.max_tokens, 512 - static_cast<int64_t>(talk.prompts[0].size()));
}

// Fault case E29: parts of text are the text; anything else is refused.
TEST(ApiRequest, TextPartsAreOneText) {
  const auto ids = [](const Json& content) {
    return chat({{"messages", {{{"role", "user"}, {"content", content}}}}}).prompts;
  };
  const Json parts = Json::parse(R"([{"type": "text", "text": "hi"}, {"type": "text", "text": " you"}])");
  EXPECT_EQ(ids(parts), ids("hi you"));
  const Json image = Json::parse(R"([{"type": "image_url", "image_url": {"url": "data:"}}])");
  const Refusal refusal =
      refusal_of(Endpoint::chat_completions, {{"messages", {{{"role", "user"}, {"content", image}}}}});
  EXPECT_EQ(refusal.status, 400);
  EXPECT_THAT(refusal.message, HasSubstr("messages[0].content[0] has type \"image_url\""));
}

TEST(ApiRequest, ReadsChatLimitsAndLogprobs) {
  Json body{{"messages", {{{"role", "system"}, {"content", "12"}}, {{"role", "user"}, {"content", "ab"}}}},
            {"max_tokens", 5},
            {"max_completion_tokens", 6},
            {"logprobs", true},
            {"top_logprobs", 4},
            {"response_format", {{"type", "text"}}}};
  const ApiRequest request = chat(body);
  EXPECT_EQ(request.params.sampling.max_tokens, 6);
  EXPECT_EQ(request.params.sampling.logprobs, 4);
  EXPECT_EQ(served_model().tokenizer->decode(request.prompts[0]), "[system]12[user]ab>");
  body["logprobs"] = false;
  EXPECT_EQ(refusal_of(Endpoint::chat_completions, body).param, "top_logprobs");
}

// Fault case E28: nothing is taken and then ignored.
TEST(ApiRequest, RefusesWhatIsNotServedByName) {
  const Refusal unknown = refused({{"top_a", 0.1}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.code, "unsupported_parameter");
  EXPECT_EQ(unknown.param, "top_a");
  EXPECT_THAT(unknown.message, HasSubstr("top_a"));
  EXPECT_EQ(refused({{"best_of", 3}}).param, "best_of");
  EXPECT_EQ(refused({{"suffix", "end"}}).param, "suffix");
  EXPECT_EQ(refused({{"messages", Json::array()}}).param, "messages");
  EXPECT_EQ(refused({{"stream", true}, {"stream_options", {{"chunks", 1}}}}).param, "stream_options.chunks");
  Json body{{"messages", {{{"role", "user"}, {"content", "hello"}}}}};
  for (const auto& [name, value] : std::map<std::string, Json>{{"tools", Json::array({1})},
                                                               {"response_format", {{"type", "json_object"}}},
                                                               {"functions", Json::array()},
                                                               {"prompt", "x"}}) {
    Json changed = body;
    changed[name] = value;
    EXPECT_EQ(refusal_of(Endpoint::chat_completions, changed).param, name);
  }
  body["messages"][0]["name"] = "me";
  EXPECT_EQ(refusal_of(Endpoint::chat_completions, body).param, "messages[0].name");
}

TEST(ApiRequest, NamesAParameterOfTheWrongTypeOrRange) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, Json>>{{"max_tokens", "many"},
                                                                             {"max_tokens", 1.5},
                                                                             {"temperature", true},
                                                                             {"stream", 1},
                                                                             {"stop", 3},
                                                                             {"seed", 1e30},
                                                                             {"stop_token_ids", Json::array({320})},
                                                                             {"logit_bias", Json::array({1})}}) {
    const Refusal refusal = refused({{name, value}});
    EXPECT_EQ(refusal.status, 400) << name;
    EXPECT_EQ(refusal.param, name);
  }
  EXPECT_THAT(refused({{"temperature", -1}}).message, HasSubstr("temperature is -1"));  // Fault case D05.
  EXPECT_THAT(refused({{"top_k", -2}}).message, HasSubstr("top_k is -2"));
  EXPECT_THAT(refused({{"n", 0}}).message, HasSubstr("n is 0"));
  EXPECT_THAT(refused({{"max_tokens", 0}}).message, HasSubstr("max_tokens is 0"));
  EXPECT_EQ(refused({{"echo", true}, {"max_tokens", 0}}).status, 200);
  EXPECT_EQ(refused({{"model", "other"}}).status, 404);
}

// Fault case E25.
TEST(ApiRequest, LogitBiasTakesIdsOfTheVocabularyOnly) {
  for (const char* key : {"320", "-1", "abc", "1x", ""}) {
    EXPECT_EQ(refused({{"logit_bias", {{key, 1}}}}).status, 400) << key;
  }
  EXPECT_EQ(refused({{"logit_bias", {{"319", 1}}}}).status, 200);
}

// Fault cases E11 and F09.
TEST(ApiRequest, RefusesEmptyPromptsAndAbsurdIds) {
  for (const char* prompt : {R"("")", R"([""])", "[]", "[[]]", "[5279552648203111001]", "[-1]", "[320]", "[1.5]",
                             R"(["a", 1])", "{}", "[[1], [true]]", "7"}) {
    const Refusal refusal = refused({{"prompt", Json::parse(prompt)}});
    EXPECT_EQ(refusal.status, 400) << prompt;
    EXPECT_EQ(refusal.param, "prompt") << prompt;
  }
  EXPECT_EQ(refusal_of(Endpoint::completions, Json::object()).param, "prompt");
  EXPECT_EQ(refusal_of(Endpoint::chat_completions, {{"messages", Json::array()}}).param, "messages");
  EXPECT_EQ(refused({{"prompt", Json::parse("[319, 0]")}}).status, 200);
}

// Fault cases E06, E07 and E09.
TEST(ParseBody, RefusesWhatIsNoJson) {
  for (const std::string& body :
       {std::string("{:"), std::string(), std::string("\xC4\xE3\xBA\xC3"), std::string(3000, '['),
        "{\"tools\": " + std::string(100000, '[') + std::string(100000, ']') + "}", std::string("{\"a\": \"\xFF\"}")}) {
    try {
      parse_body(body);
      FAIL() << body.substr(0, 20);
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_TRUE(Json::accept(dump_json(error.body())));
    }
  }
}

Json answer(Endpoint endpoint, const Json& body, std::vector<int64_t> eos = {}) {
  const auto state = ParallelState::single();
  testing::FakeModel model(std::move(eos));
  ServedModel served = served_model();
  served.vocab_size = testing::kFakeVocab;
  served.max_model_len = 256;
  served.chat_template = template_of("{{ messages[0].content }}");  // roles are letters beyond the fake vocabulary
  LLMEngine engine(model, *state);
  TextGenerator generator(engine, &*served.tokenizer);
  ApiJob job(read_request(endpoint, body, served), served, "id-7", 1234);
  job.start(generator);
  while (!job.finished()) {
    for (const TextOutput& output : generator.step()) job.take(output);
  }
  return job.response();
}

TEST(ApiJob, AnswersListsAndSeveralTexts) {
  const Json body = Json::parse(R"({"prompt": [[5, 6, 7], [8, 9]], "n": 2, "max_tokens": 4, "seed": 3})");
  const Json json = answer(Endpoint::completions, body);
  EXPECT_EQ(json["id"], "id-7");
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["created"], 1234);
  EXPECT_EQ(json["model"], "small");
  ASSERT_EQ(json["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["finish_reason"], "length");
    EXPECT_EQ(json["choices"][i]["text"].get<std::string>().size(), 4u);  // every token is one ASCII character
    const Json single = Json::parse(i < 2 ? R"([5, 6, 7])" : R"([8, 9])");
    const auto seed = static_cast<int64_t>(seed_of_text(3, static_cast<int64_t>(i % 2)));
    const Json alone = answer(Endpoint::completions, {{"prompt", single}, {"max_tokens", 4}, {"seed", seed}});
    EXPECT_EQ(alone["choices"][0]["text"], json["choices"][i]["text"]) << i;
  }
  EXPECT_EQ(json["usage"], Json::parse(R"({"prompt_tokens": 5, "completion_tokens": 16, "total_tokens": 21})"));
}

// Fault case E20: the prompt, its log-probabilities, and no new token.
TEST(ApiJob, EchoWithoutNewTokens) {
  const Json body =
      Json::parse(R"({"prompt": [72, 73, 74], "echo": true, "max_tokens": 0, "logprobs": 1, "temperature": 0})");
  const Json json = answer(Endpoint::completions, body);
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["text"], "HIJ");
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
  EXPECT_EQ(choice["logprobs"]["tokens"], (Json{"H", "I", "J"}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], (Json{0, 1, 2}));
  EXPECT_TRUE(choice["logprobs"]["token_logprobs"][0].is_null());
  const auto logits = testing::fake_logits({72, 73});
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(choice["logprobs"]["token_logprobs"][2].get<double>(), logits[74] - std::log(sum), 1e-9);
  EXPECT_GE(choice["logprobs"]["top_logprobs"][2].size(), 1u);
}

TEST(ApiJob, AChatAnswerIsAMessage) {
  Json body{{"messages", {{{"role", "user"}, {"content", "01"}}}},
            {"max_tokens", 3},
            {"logprobs", true},
            {"top_logprobs", 2},
            {"temperature", 0}};
  const Json json = answer(Endpoint::chat_completions, body);
  EXPECT_EQ(json["object"], "chat.completion");
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  const std::string text = choice["message"]["content"];
  ASSERT_EQ(choice["logprobs"]["content"].size(), 3u);
  std::string joined;
  for (const Json& token : choice["logprobs"]["content"]) {
    for (const Json& byte : token["bytes"]) joined += static_cast<char>(byte.get<int>());
    EXPECT_EQ(token["top_logprobs"].size(), 2u);
    EXPECT_EQ(token["top_logprobs"][0]["token"], token["token"]);  // greedy
  }
  EXPECT_EQ(joined, text);
}

}  // namespace
}  // namespace headway
