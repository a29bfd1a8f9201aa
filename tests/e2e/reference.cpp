#include "e2e/reference.h"

#include <ATen/ops/from_blob.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "headway/weights/safetensors_file.h"

namespace headway::testing {
namespace {

at::Tensor read_logits(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const TensorInfo& info = file.tensors().at("logits");
  auto* data = const_cast<std::byte*>(file.data(info).data());  // from_blob takes no const; the clone only reads
  return at::from_blob(data, info.shape, at::kFloat).clone();
}

}  // namespace

std::filesystem::path test_model(const std::string& name) {
  return std::filesystem::path(HEADWAY_TEST_MODELS) / name;
}

Reference read_reference(const std::string& model) {
  const auto folder = test_model(model);
  std::ifstream stream(folder / "reference.json");
  const auto json = nlohmann::json::parse(stream);
  Reference reference;
  reference.long_prompt = json.at("long_prompt").get<std::vector<int64_t>>();
  reference.positions = json.at("positions").get<std::vector<int64_t>>();
  reference.logits = read_logits(folder / "reference.logits");
  if (!json.contains("prompts")) return reference;
  reference.prompts = json.at("prompts").get<std::vector<std::vector<int64_t>>>();
  reference.greedy = json.at("greedy").get<std::vector<std::vector<int64_t>>>();
  for (const auto& entry : json.at("bf16_weights")) {
    reference.rounded_to_bf16.push_back({entry.at("tokens").get<std::vector<int64_t>>(),
                                         entry.at("logprobs").get<std::vector<double>>(),
                                         entry.at("gaps").get<std::vector<double>>()});
  }
  return reference;
}

}  // namespace headway::testing
