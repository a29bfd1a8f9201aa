#include "cli/bench_run.h"

#include <fmt/format.h>

#include <map>
#include <random>

#include "base/trace.h"
#include "headway/base/error.h"

namespace headway {
namespace {

double seconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

std::vector<int32_t> random_prompt(int64_t tokens, int64_t vocab_size, std::mt19937& random) {
  std::uniform_int_distribution<int32_t> any(0, static_cast<int32_t>(vocab_size - 1));
  std::vector<int32_t> prompt(tokens);
  for (int32_t& token : prompt) token = any(random);
  return prompt;
}

class Run {
 public:
  Run(LLMEngine& engine, const BenchWork& work) : engine_(engine), work_(work) {}

  void add_prompts(int64_t vocab_size) {
    SamplingParams greedy;
    greedy.max_tokens = work_.gen_tokens;
    greedy.ignore_eos = true;
    std::mt19937 random(1);
    for (int64_t i = 0; i < work_.sequences; ++i) {
      engine_.add_request(random_prompt(work_.prompt_tokens, vocab_size, random), greedy);
    }
  }

  BenchTimes finish() {
    while (engine_.has_unfinished()) step();
    if (times_.decode_steps == 0) {
      throw Error(
          fmt::format("the prefill of {} sequences of {} tokens took so many steps that no step decoded all of them; "
                      "more than {} new tokens are needed",
                      work_.sequences, work_.prompt_tokens, work_.gen_tokens));
    }
    times_.mean_context = contexts_ / static_cast<double>(times_.decode_steps * work_.sequences);
    return times_;
  }

 private:
  bool all_started() const { return static_cast<int64_t>(generated_.size()) == work_.sequences; }

  void step() {
    const bool prefilled = all_started();
    const int64_t begin = monotonic_ns();
    const std::vector<RequestOutput> outputs = engine_.step();
    const int64_t end = monotonic_ns();
    int64_t contexts = 0;
    for (const RequestOutput& output : outputs) {
      if (output.finish_reason == FinishReason::error) throw Error(output.error);
      int64_t& generated = generated_[output.request];
      contexts += work_.prompt_tokens + generated;
      generated += static_cast<int64_t>(output.token_ids.size());
    }
    if (!prefilled) {
      times_.prefill_s += seconds(end - begin);
      times_.decode_begin_ns = end;
    } else if (static_cast<int64_t>(outputs.size()) == work_.sequences) {
      times_.decode_s += seconds(end - begin);
      ++times_.decode_steps;
      contexts_ += static_cast<double>(contexts);
    }
  }

  LLMEngine& engine_;
  const BenchWork& work_;
  BenchTimes times_;
  std::map<RequestId, int64_t> generated_;
  double contexts_ = 0;
};

}  // namespace

BenchTimes run_bench_work(LLMEngine& engine, const BenchWork& work, int64_t vocab_size) {
  Run run(engine, work);
  run.add_prompts(vocab_size);
  return run.finish();
}

}  // namespace headway
