#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "headway/engine/text_generator.h"
#include "server/served_model.h"

namespace headway {

enum class Endpoint { completions, chat_completions };

/// "/v1/completions", "/v1/chat/completions".
std::string_view path_of(Endpoint endpoint);

/// A request of the OpenAI API, checked as far as it can be without the engine.
struct ApiRequest {
  Endpoint endpoint = Endpoint::completions;
  std::string model;                          ///< by the name that the request gave it
  std::vector<std::vector<int32_t>> prompts;  ///< token ids; one of a chat
  TextParams params;                          ///< for each prompt
  bool echo = false;                          ///< the text begins with the prompt
  bool only_echo = false;                     ///< max_tokens was 0: the one token that is generated is left out
  bool stream = false;
  bool include_usage = false;
};

/// Reads the body of a request. Throws ApiError 400 naming the parameter that is wrong or not served, 404 for another
/// model's name.
ApiRequest read_request(Endpoint endpoint, const Json& body, const ServedModel& model);

}  // namespace headway
