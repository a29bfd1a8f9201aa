#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/api_request.h"

namespace headway {

/// One text of an answer.
struct Choice {
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;
  std::optional<FinishReason> finish_reason;
  Json stop_reason;  ///< the stop string or stop token that ended the text, as vLLM tells
  std::string error;
};

/// A request of the API while the engine works on it, and the whole answer to it.
class ApiJob {
 public:
  /// `model` must outlive the job. `id` and `created`, in seconds since 1970, go into the answer.
  ApiJob(ApiRequest request, const ServedModel& model, std::string id, int64_t created);

  /// Queues all of its texts. Throws what TextGenerator::add throws, and then has queued none.
  void start(TextGenerator& generator);
  void cancel(TextGenerator& generator);

  /// Those that `start` queued, one for each prompt.
  const std::vector<RequestId>& requests() const { return ids_; }

  /// Takes what a step brought one of `requests()`.
  void take(const TextOutput& output);

  bool finished() const { return unfinished_ == 0; }

  /// The answer. Throws ApiError 500 if a text ended with an error.
  Json response() const;

 private:
  Json choice_json(size_t index) const;
  Json logprobs_json(const Choice& choice, int32_t first_of_prompt) const;
  Json usage() const;

  ApiRequest request_;
  const ServedModel& model_;
  std::string id_;
  int64_t created_;
  std::vector<RequestId> ids_;
  std::vector<Choice> choices_;  ///< n of the first prompt, then n of the second, ...
  size_t unfinished_ = 0;
};

}  // namespace headway
