#include "distributed/plan/small_checkpoint.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>

#include "support/safetensors_writer.h"

namespace headway::testing {
namespace {

test::RawTensor tensor_of(std::string name, std::vector<int64_t> shape) {
  const int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  std::string bytes(elements * sizeof(float), '\0');
  for (int64_t i = 0; i < elements; ++i) {
    const float value = 0.001F * static_cast<float>(i % 97 - 48);
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
  }
  return {std::move(name), "F32", std::move(shape), std::move(bytes)};
}

void add_layer(std::vector<test::RawTensor>& tensors, const std::string& prefix, const ModelConfig& config) {
  const int64_t q_rows = config.total_q_heads * config.head_dim;
  const int64_t kv_rows = config.total_kv_heads * config.head_dim;
  const int64_t hidden = config.hidden_size;
  for (const auto& [name, rows] : {std::pair{"q", q_rows}, {"k", kv_rows}, {"v", kv_rows}}) {
    tensors.push_back(tensor_of(prefix + "self_attn." + name + "_proj.weight", {rows, hidden}));
    tensors.push_back(tensor_of(prefix + "self_attn." + name + "_proj.bias", {rows}));
  }
  tensors.push_back(tensor_of(prefix + "self_attn.o_proj.weight", {hidden, q_rows}));
  tensors.push_back(tensor_of(prefix + "mlp.gate_proj.weight", {config.intermediate_size, hidden}));
  tensors.push_back(tensor_of(prefix + "mlp.up_proj.weight", {config.intermediate_size, hidden}));
  tensors.push_back(tensor_of(prefix + "mlp.down_proj.weight", {hidden, config.intermediate_size}));
  tensors.push_back(tensor_of(prefix + "input_layernorm.weight", {hidden}));
  tensors.push_back(tensor_of(prefix + "post_attention_layernorm.weight", {hidden}));
}

}  // namespace

ModelConfig small_config(int64_t q_heads, int64_t kv_heads, bool tied) {
  ModelConfig config;
  config.architecture = "Qwen2ForCausalLM";
  config.hidden_size = 56;
  config.intermediate_size = 200;
  config.num_layers = 2;
  config.total_q_heads = q_heads;
  config.total_kv_heads = kv_heads;
  config.head_dim = 4;
  config.vocab_size = 321;
  config.max_position_embeddings = 128;
  config.tie_word_embeddings = tied;
  config.sliding_window.assign(config.num_layers, std::nullopt);
  return config;
}

void write_checkpoint(const std::filesystem::path& folder, const ModelConfig& config) {
  std::vector<test::RawTensor> tensors;
  tensors.push_back(tensor_of("model.embed_tokens.weight", {config.vocab_size, config.hidden_size}));
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    add_layer(tensors, "model.layers." + std::to_string(layer) + ".", config);
  }
  tensors.push_back(tensor_of("model.norm.weight", {config.hidden_size}));
  if (!config.tie_word_embeddings)
    tensors.push_back(tensor_of("lm_head.weight", {config.vocab_size, config.hidden_size}));
  std::ofstream(folder / "model.safetensors", std::ios::binary) << test::safetensors_of(tensors);
}

}  // namespace headway::testing
