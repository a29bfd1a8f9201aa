#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"

namespace headway {

/// A request of a batch file and where it stands there.
struct BatchEntry {
  std::string custom_id;
  int64_t line = 0;  ///< from 1
  std::streamoff offset = 0;
};

/// A file of requests in OpenAI's batch format: one JSON object a line, with custom_id, method, url and body. Only the
/// places of the requests are kept in memory.
class BatchInput {
 public:
  /// Reads the whole file. Throws UsageError naming the file and the line that is no JSON object, has no custom_id, or
  /// one that an earlier line has: results could not be told apart.
  explicit BatchInput(const std::filesystem::path& path);

  const std::vector<BatchEntry>& entries() const { return entries_; }

  /// The request that an entry stands for.
  Json read(const BatchEntry& entry);

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::vector<BatchEntry> entries_;
};

}  // namespace headway
