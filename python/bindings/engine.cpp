#include <pybind11/functional.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bindings.h"
#include "headway/base/error.h"
#include "headway/config/model_config.h"
#include "headway/config/parallel_config.h"
#include "headway/engine/llm_engine.h"
#include "headway/models/causal_lm.h"
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
                       std::optional<int64_t> attn_tp) {
  return resolve_parallel_config(model, world, tp, attn_tp);
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
                               const Progress& progress) {
  const LoadOptions options{.dtype = dtype_named(dtype), .device = state.device(), .progress = with_gil(progress)};
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

void bind_tokenizer(py::module_& module) {
  py::class_<Tokenizer>(module, "Tokenizer")
      .def_static("from_pretrained", &Tokenizer::from_pretrained, ReleaseGil())
      .def(
          "encode", [](const Tokenizer& tokenizer, const std::string& text) { return tokenizer.encode(text); },
          ReleaseGil())
      .def("decode", &Tokenizer::decode, py::arg("ids"), py::arg("skip_special") = true, ReleaseGil());
}

void bind_requests(py::module_& module) {
  py::class_<SamplingParams>(module, "SamplingParams")
      .def(py::init())
      .def_readwrite("temperature", &SamplingParams::temperature)
      .def_readwrite("top_p", &SamplingParams::top_p)
      .def_readwrite("top_k", &SamplingParams::top_k)
      .def_readwrite("seed", &SamplingParams::seed)
      .def_readwrite("max_tokens", &SamplingParams::max_tokens)
      .def_readwrite("ignore_eos", &SamplingParams::ignore_eos)
      .def("validate", [](const SamplingParams& params) { params.validate(); });
  py::class_<RequestOutput>(module, "RequestOutput")
      .def_readonly("request", &RequestOutput::request)
      .def_readonly("token_ids", &RequestOutput::token_ids)
      .def_property_readonly("finish_reason",
                             [](const RequestOutput& output) -> std::optional<std::string> {
                               if (!output.finish_reason) return std::nullopt;
                               return std::string(name_of(*output.finish_reason));
                             })
      .def_readonly("error", &RequestOutput::error);
}

std::unique_ptr<LLMEngine> make_engine(CausalLM& model, const ParallelState& state,
                                       std::optional<int64_t> max_model_len, std::optional<int64_t> kv_blocks,
                                       int64_t max_num_seqs, int64_t max_batch_tokens) {
  EngineOptions options;
  options.max_model_len = max_model_len;
  options.kv_blocks = kv_blocks;
  options.max_num_seqs = max_num_seqs;
  options.max_batch_tokens = max_batch_tokens;
  return std::make_unique<LLMEngine>(model, state, options);
}

void bind_llm(py::module_& module) {
  py::class_<CausalLM, std::shared_ptr<CausalLM>>(module, "CausalLM", py::release_gil_before_calling_cpp_dtor());
  module.def("load_model", load, py::keep_alive<0, 4>(), ReleaseGil());
  py::class_<LLMEngine>(module, "LLMEngine", py::release_gil_before_calling_cpp_dtor())
      .def(py::init(&make_engine), py::keep_alive<1, 2>(), py::keep_alive<1, 3>(), ReleaseGil())
      .def("is_driver", &LLMEngine::is_driver)
      .def("add_request", &LLMEngine::add_request)
      .def("cancel", &LLMEngine::cancel)
      .def("has_unfinished", &LLMEngine::has_unfinished)
      .def("step", &LLMEngine::step, ReleaseGil())
      .def("stop", &LLMEngine::stop, ReleaseGil())
      .def("release", &LLMEngine::release, ReleaseGil())
      .def("follow", &LLMEngine::follow, ReleaseGil())
      .def_property_readonly("max_model_len", &LLMEngine::max_model_len);
}

}  // namespace

void bind_engine(py::module_& module) {
  bind_config(module);
  bind_tokenizer(module);
  bind_requests(module);
  bind_llm(module);
}

}  // namespace headway
