#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headway::testing {

/// Greedy tokens after a prompt, each with its log-probability and its lead over the runner-up in logits.
struct GreedyReference {
  std::vector<int64_t> tokens;
  std::vector<double> logprobs;
  std::vector<double> gaps;
};

/// What transformers computed from a test model (tools/make_test_models.py).
struct Reference {
  std::vector<int64_t> long_prompt;
  std::vector<int64_t> positions;                ///< of long_prompt, where `logits` were taken
  at::Tensor logits;                             ///< [positions, vocab] fp32
  std::vector<std::vector<int64_t>> prompts;     ///< of unequal length
  std::vector<std::vector<int64_t>> greedy;      ///< [prompts] new tokens in fp32
  std::vector<GreedyReference> rounded_to_bf16;  ///< [prompts] with weights rounded to bf16
};

/// The folder of one test model.
std::filesystem::path test_model(const std::string& name);

Reference read_reference(const std::string& model);

}  // namespace headway::testing
