#include <pybind11/functional.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "headway/base/error.h"
#include "headway/config/model_config.h"
#include "headway/config/parallel_config.h"
#include "headway/engine/llm_engine.h"
#include "headway/engine/text_generator.h"
#include "headway/models/causal_lm.h"
#include "headway/tokenizer/chat_template.h"
#include "headway/tokenizer/tokenizer.h"

namespace headway {
namespace {

using Progress = std::function<void(int64_t done, int64_t total)>;

std::optional<DType> dtype_named(const std::string& name) {
  if (name == "auto") return std::nullopt;
  const auto dtype = dtype_from_config(name);
  if (!dtype) throw ConfigError("dtype \"" + name + "\" is not one of auto, float32, bfloat16, float16");
  return dtype;
}

ParallelConfig resolve(const ModelConfig& model, int64_t world, std::optional<int64_t> tp,
                       std::optional<int64_t> attn_tp, const std::string& embedding_group,
                       const std::string& lm_head_group, const std::string& attn_replicas) {
  return resolve_parallel_config(model, world, tp, attn_tp, vocab_group_from_name(embedding_group),
                                 vocab_group_from_name(lm_head_group), attn_replicas_from_name(attn_replicas));
}

/// Tells Python how far loading is, and lets Ctrl-C end it.
LoadProgress with_gil(const Progress& progress) {
  return [&progress](int64_t done, int64_t total) {
    const py::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (progress) progress(done, total);
  };
}

std::shared_ptr<CausalLM> load(const std::filesystem::path& folder, const ModelConfig& config,
                               const ParallelConfig& parallel, const ParallelState& state, const std::string& dtype,
                               const std::string& quantization, const Progress& progress) {
  const LoadOptions options{.dtype = dtype_named(dtype),
                            .device = state.device(),
                            .quantization = quantization_from_name(quantization),
                            .progress = with_gil(progress)};
  return load_model(folder, config, parallel, state, options).model;
}

void bind_config(py::module_& module) {
  py::class_<ModelConfig>(module, "ModelConfig")
      .def_static("from_pretrained", &ModelConfig::from_pretrained)
      .def_readonly("architecture", &ModelConfig::architecture)
      .def_readonly("vocab_size", &ModelConfig::vocab_size);
  py::class_<ParallelConfig>(module, "ParallelConfig")
      .def_readonly("tp", &ParallelConfig::tp)
      .def_readonly("attn_tp", &ParallelConfig::attn_tp);
  module.def("resolve_parallel_config", resolve);
}

std::vector<int32_t> encode_conversation(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                         const std::vector<std::pair<std::string, std::string>>& messages) {
  std::vector<ChatMessage> conversation;
  for (const auto& [role, content] : messages) conversation.push_back({role, content});
  return encode_chat(tokenizer, chat_template, conversation);
}

void bind_tokenizer(py::module_& module) {
  py::class_<Tokenizer>(module, "Tokenizer")
      .def_static("from_pretrained", &Tokenizer::from_pretrained, ReleaseGil())
      .def(
          "encode", [](const Tokenizer& tokenizer, const std::string& text) { return tokenizer.encode(text); },
          ReleaseGil())
      .def("decode", &Tokenizer::decode, py::arg("ids"), py::arg("skip_special") = true, ReleaseGil())
      .def_property_readonly("eos_token_id", &Tokenizer::eos_token_id);
  py::class_<ChatTemplate>(module, "ChatTemplate")
      .def_static("from_pretrained", &ChatTemplate::from_pretrained, ReleaseGil())
      .def("encode", encode_conversation, ReleaseGil());
}

using Logprob = std::tuple<int32_t, double, int64_t>;  // token, logprob, rank

Logprob as_tuple(const TokenLogprob& logprob) {
  return {logprob.token, logprob.logprob, logprob.rank};
}

/// Of each token: itself and then the likeliest ones.
std::vector<std::vector<Logprob>> as_lists(const std::vector<TokenLogprobs>& tokens) {
  std::vector<std::vector<Logprob>> lists;
  for (const TokenLogprobs& token : tokens) {
    lists.push_back({as_tuple(token.chosen)});
    for (const TokenLogprob& likely : token.top) lists.back().push_back(as_tuple(likely));
  }
  return lists;
}

std::optional<std::string> finish_reason(const TextOutput& text) {
  if (!text.output.finish_reason) return std::nullopt;
  return std::string(name_of(*text.output.finish_reason));
}

void bind_params(py::module_& module) {
  py::class_<SamplingParams>(module, "SamplingParams")
      .def_readwrite("temperature", &SamplingParams::temperature)
      .def_readwrite("top_p", &SamplingParams::top_p)
      .def_readwrite("top_k", &SamplingParams::top_k)
      .def_readwrite("min_p", &SamplingParams::min_p)
      .def_readwrite("repetition_penalty", &SamplingParams::repetition_penalty)
      .def_readwrite("presence_penalty", &SamplingParams::presence_penalty)
      .def_readwrite("frequency_penalty", &SamplingParams::frequency_penalty)
      .def_readwrite("logit_bias", &SamplingParams::logit_bias)
      .def_readwrite("seed", &SamplingParams::seed)
      .def_readwrite("max_tokens", &SamplingParams::max_tokens)
      .def_readwrite("min_tokens", &SamplingParams::min_tokens)
      .def_readwrite("ignore_eos", &SamplingParams::ignore_eos)
      .def_readwrite("stop_token_ids", &SamplingParams::stop_token_ids)
      .def_readwrite("logprobs", &SamplingParams::logprobs)
      .def_readwrite("prompt_logprobs", &SamplingParams::prompt_logprobs);
  py::class_<TextParams>(module, "TextParams")
      .def(py::init())
      .def_readonly("sampling", &TextParams::sampling)
      .def_readwrite("n", &TextParams::n)
      .def_readwrite("stop", &TextParams::stop)
      .def_readwrite("include_stop_str_in_output", &TextParams::include_stop_str_in_output)
      .def_readwrite("skip_special_tokens", &TextParams::skip_special_tokens)
      .def("validate", &TextParams::validate);
}

void bind_outputs(py::module_& module) {
  py::class_<TextOutput>(module, "TextOutput")
      .def_property_readonly("request", [](const TextOutput& text) { return text.output.request; })
      .def_readonly("index", &TextOutput::index)
      .def_readonly("text", &TextOutput::text)
      .def_property_readonly("token_ids", [](const TextOutput& text) { return text.output.token_ids; })
      .def_property_readonly("finish_reason", finish_reason)
      .def_property_readonly("error", [](const TextOutput& text) { return text.output.error; })
      .def_property_readonly("logprobs", [](const TextOutput& text) { return as_lists(text.output.logprobs); })
      .def_property_readonly("prompt_logprobs",
                             [](const TextOutput& text) { return as_lists(text.output.prompt_logprobs); })
      .def_property_readonly("stop_token", [](const TextOutput& text) { return text.output.stop_token; })
      .def_readonly("stop_string", &TextOutput::stop_string);
}

std::unique_ptr<LLMEngine> make_engine(CausalLM& model, const ParallelState& state,
                                       std::optional<int64_t> max_model_len, std::optional<int64_t> kv_blocks,
                                       int64_t max_num_seqs, int64_t max_batch_tokens,
                                       const std::vector<int64_t>& eos_token_ids, bool prefix_caching) {
  EngineOptions options;
  options.max_model_len = max_model_len;
  options.kv_blocks = kv_blocks;
  options.max_num_seqs = max_num_seqs;
  options.max_batch_tokens = max_batch_tokens;
  options.eos_token_ids = eos_token_ids;
  options.prefix_caching = prefix_caching;
  return std::make_unique<LLMEngine>(model, state, options);
}

void bind_llm(py::module_& module) {
  py::class_<CausalLM, std::shared_ptr<CausalLM>>(module, "CausalLM", py::release_gil_before_calling_cpp_dtor());
  module.def("load_model", load, py::keep_alive<0, 4>(), ReleaseGil());
  py::class_<LLMEngine>(module, "LLMEngine", py::release_gil_before_calling_cpp_dtor())
      .def(py::init(&make_engine), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(), ReleaseGil())
      .def("is_driver", &LLMEngine::is_driver)
      .def("stop", &LLMEngine::stop, ReleaseGil())
      .def("release", &LLMEngine::release, ReleaseGil())
      .def("follow", &LLMEngine::follow, ReleaseGil())
      .def_property_readonly("max_model_len", &LLMEngine::max_model_len);
  py::class_<TextGenerator>(module, "TextGenerator")
      .def(py::init<LLMEngine&, const Tokenizer*>(), py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def("add", &TextGenerator::add)
      .def("cancel", &TextGenerator::cancel)
      .def("has_unfinished", &TextGenerator::has_unfinished)
      .def("step", &TextGenerator::step, ReleaseGil());
}

}  // namespace

void bind_engine(py::module_& module) {
  bind_config(module);
  bind_tokenizer(module);
  bind_params(module);
  bind_outputs(module);
  bind_llm(module);
}

}  // namespace headway
