#include "e2e/greedy.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/log_softmax.h>

#include <algorithm>

#include "e2e/paged_sequences.h"

namespace headway::testing {

std::vector<GreedyRun> decode_greedily(CausalLM& model, const std::vector<std::vector<int64_t>>& prompts,
                                       int64_t new_tokens) {
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  const auto count = static_cast<int64_t>(prompts.size());
  PagedSequences sequences(model, count, static_cast<int64_t>(longest) + new_tokens);

  std::vector<GreedyRun> runs(prompts.size());
  std::vector<Chunk> chunks;
  for (int64_t s = 0; s < count; ++s) chunks.push_back({s, prompts[s]});
  for (int64_t step = 0; step < new_tokens; ++step) {
    const at::Tensor logits = sequences.last_logits(chunks);
    const at::Tensor chosen = at::argmax(logits, -1);
    const at::Tensor logprobs = at::log_softmax(logits, -1).gather(1, chosen.unsqueeze(1));
    for (int64_t s = 0; s < count; ++s) {
      runs[s].tokens.push_back(chosen.const_data_ptr<int64_t>()[s]);
      runs[s].logprobs.push_back(logprobs.const_data_ptr<float>()[s]);
      chunks[s].tokens = {runs[s].tokens.back()};
    }
  }
  return runs;
}

}  // namespace headway::testing
