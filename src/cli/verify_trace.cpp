#include "cli/verify_trace.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "base/json.h"
#include "headway/base/error.h"

namespace headway {
namespace {

int64_t bytes_of(const SafetensorsWriter::Announced& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), size_of(tensor.dtype), std::multiplies<>());
}

std::string tensor_name(int64_t prompt, const char* what) {
  return fmt::format("prompt.{}.{}", prompt, what);
}

const TensorInfo& find(const SafetensorsFile& file, const std::string& name, DType dtype) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) {
    throw CheckpointError(fmt::format("{}: no tensor {}", file.path().string(), name));
  }
  if (found->second.dtype != dtype) {
    throw CheckpointError(fmt::format("{}: {} is {} where {} is expected", file.path().string(), name,
                                      name_of(found->second.dtype), name_of(dtype)));
  }
  return found->second;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, const std::vector<Announced>& tensors)
    : path_(std::move(path)), file_(path_, std::ios::binary) {
  Json header = Json::object();
  for (const Announced& tensor : tensors) {
    const int64_t begin = bytes_left_;
    bytes_left_ += bytes_of(tensor);
    header[tensor.name] = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, bytes_left_}}};
  }
  std::string text = dump_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the data
  const uint64_t length = text.size();
  file_.write(reinterpret_cast<const char*>(&length), sizeof length);
  file_ << text;
}

void SafetensorsWriter::append(const at::Tensor& rows) {
  const at::Tensor dense = rows.contiguous();
  const auto bytes = static_cast<int64_t>(dense.nbytes());
  file_.write(static_cast<const char*>(dense.const_data_ptr()), bytes);
  bytes_left_ -= bytes;
}

void SafetensorsWriter::finish() {
  file_.close();
  if (!file_) throw Error(fmt::format("{} cannot be written", path_.string()));
  if (bytes_left_ != 0) throw Error(fmt::format("{}: {} bytes are missing", path_.string(), bytes_left_));
}

std::vector<int32_t> TracedPrompt::inputs() const {
  std::vector<int32_t> tokens = token_ids;
  tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
  return tokens;
}

LogitsTrace::LogitsTrace(const std::filesystem::path& path, int64_t vocab_size) : file_(path) {
  for (int64_t p = 0; file_.tensors().contains(tensor_name(p, "token_ids")); ++p) {
    const TracedPrompt prompt{read_ids(tensor_name(p, "token_ids"), vocab_size),
                              read_ids(tensor_name(p, "greedy"), vocab_size)};
    const TensorInfo& logits = find(file_, tensor_name(p, "logits"), DType::F32);
    const std::vector<int64_t> expected{prompt.rows(), vocab_size};
    if (logits.shape != expected) {
      throw CheckpointError(fmt::format("{}: {} is {} where {} is expected", path.string(), tensor_name(p, "logits"),
                                        logits.shape, expected));
    }
    prompts_.push_back(prompt);
  }
  if (prompts_.empty()) throw CheckpointError(fmt::format("{}: no tensor prompt.0.token_ids", path.string()));
}

std::vector<int32_t> LogitsTrace::read_ids(const std::string& name, int64_t vocab_size) const {
  const TensorInfo& info = find(file_, name, DType::I64);
  if (info.shape.size() != 1 || info.shape.front() < 1) {
    throw CheckpointError(fmt::format("{}: {} is {} where one dimension of at least 1 is expected",
                                      file_.path().string(), name, info.shape));
  }
  std::vector<int64_t> stored(info.shape.front());
  std::memcpy(stored.data(), file_.data(info).data(), info.bytes());
  for (const int64_t id : stored) {
    if (id >= 0 && id < vocab_size) continue;
    throw CheckpointError(fmt::format("{}: {} holds {}, which is not in the vocabulary of {}", file_.path().string(),
                                      name, id, vocab_size));
  }
  return {stored.begin(), stored.end()};
}

at::Tensor LogitsTrace::logits(int64_t prompt, Range rows) const {
  return float_tensor(file_, tensor_name(prompt, "logits")).narrow(0, rows.begin, rows.size());
}

std::vector<SafetensorsWriter::Announced> trace_tensors(const std::vector<TracedPrompt>& prompts, int64_t vocab_size) {
  std::vector<SafetensorsWriter::Announced> tensors;
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto index = static_cast<int64_t>(p);
    const TracedPrompt& prompt = prompts[p];
    tensors.push_back({tensor_name(index, "token_ids"), DType::I64, {static_cast<int64_t>(prompt.token_ids.size())}});
    tensors.push_back({tensor_name(index, "greedy"), DType::I64, {static_cast<int64_t>(prompt.greedy.size())}});
    tensors.push_back({tensor_name(index, "logits"), DType::F32, {prompt.rows(), vocab_size}});
  }
  return tensors;
}

at::Tensor float_tensor(const SafetensorsFile& file, const std::string& name) {
  const TensorInfo& info = find(file, name, DType::F32);
  auto* data = const_cast<std::byte*>(file.data(info).data());  // from_blob takes no const; nothing writes to it
  return at::from_blob(data, info.shape, at::kFloat);
}

}  // namespace headway
