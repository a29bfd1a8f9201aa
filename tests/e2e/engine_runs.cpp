#include "e2e/engine_runs.h"

#include <map>

#include "distributed/support/parallel_test.h"
#include "e2e/test_models.h"

namespace headway::testing {

std::vector<EngineResult> run_engine(const std::string& model, std::optional<DType> dtype,
                                     const std::vector<EngineRequest>& requests) {
  const auto loaded = load_test_model({.name = model, .attn_tp = world_size(), .dtype = dtype});
  LLMEngine engine(*loaded.model, parallel_state(world_size()));
  if (!engine.is_driver()) {
    engine.follow();
    return {};
  }
  std::map<RequestId, EngineResult> results;  // ids ascend
  for (const EngineRequest& request : requests) results[engine.add_request(request.tokens, request.params)] = {};
  while (engine.has_unfinished()) {
    for (const RequestOutput& output : engine.step()) {
      EngineResult& result = results.at(output.request);
      result.tokens.insert(result.tokens.end(), output.token_ids.begin(), output.token_ids.end());
      if (output.finish_reason) result.reason = *output.finish_reason;
      result.error = output.error;
    }
  }
  std::vector<EngineResult> in_order;
  for (const auto& [id, result] : results) in_order.push_back(result);
  return in_order;
}

}  // namespace headway::testing
