#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "headway/base/range.h"
#include "headway/weights/safetensors_file.h"

namespace headway {

/// Writes a safetensors file tensor by tensor, in the order announced; a tensor may come in parts along its first
/// dimension.
class SafetensorsWriter {
 public:
  struct Announced {
    std::string name;
    DType dtype = DType::F32;  ///< F32 or I64
    std::vector<int64_t> shape;
  };
  SafetensorsWriter(std::filesystem::path path, const std::vector<Announced>& tensors);

  void append(const at::Tensor& rows);
  void finish();  ///< throws Error naming the file if it is not whole

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  int64_t bytes_left_ = 0;
};

/// One prompt of a trace. Logits stand after each token of `token_ids` and of `greedy` but the last: row
/// token_ids.size() - 1 + i is what greedy[i] is the best of.
struct TracedPrompt {
  std::vector<int32_t> token_ids;
  std::vector<int32_t> greedy;

  int64_t rows() const { return static_cast<int64_t>(token_ids.size() + greedy.size()) - 1; }
  int64_t first_greedy_row() const { return static_cast<int64_t>(token_ids.size()) - 1; }
  std::vector<int32_t> inputs() const;  ///< the tokens that the logits stand after
};

/// What a model computed for some prompts: a safetensors file that holds for each prompt p from 0 on
///   prompt.<p>.token_ids  I64 [n]
///   prompt.<p>.greedy     I64 [m]
///   prompt.<p>.logits     F32 [n + m - 1, vocabulary]
class LogitsTrace {
 public:
  /// Throws CheckpointError naming the file, the tensor, what was expected and what is there.
  LogitsTrace(const std::filesystem::path& path, int64_t vocab_size);

  const std::vector<TracedPrompt>& prompts() const { return prompts_; }

  /// Rows of a prompt's logits, in the file's memory.
  at::Tensor logits(int64_t prompt, Range rows) const;

 private:
  std::vector<int32_t> read_ids(const std::string& name, int64_t vocab_size) const;

  SafetensorsFile file_;
  std::vector<TracedPrompt> prompts_;
};

/// The tensors of a trace of `prompts`, as SafetensorsWriter wants them announced.
std::vector<SafetensorsWriter::Announced> trace_tensors(const std::vector<TracedPrompt>& prompts, int64_t vocab_size);

/// A tensor of `file` in the file's memory, fp32. Throws CheckpointError if it is absent or another dtype.
at::Tensor float_tensor(const SafetensorsFile& file, const std::string& name);

}  // namespace headway
