#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <unordered_set>

#include "base/json.h"

namespace headway {

/// The file of a batch's results, one JSON object a line. A line is written whole or, if the process dies meanwhile,
/// is cut off by the next one to write to the file. Nothing is changed before the first write.
class BatchOutput {
 public:
  /// Opens or creates the file and reads whose results it has. Throws UsageError if another process writes to it, or a
  /// line of it is not a result.
  explicit BatchOutput(const std::filesystem::path& path);
  ~BatchOutput();
  BatchOutput(const BatchOutput&) = delete;
  BatchOutput& operator=(const BatchOutput&) = delete;

  /// The custom_ids of the results that were there when the file was opened.
  const std::unordered_set<std::string>& done() const { return done_; }

  void write(const Json& result);

 private:
  void read_done();
  void cut_to_whole_lines();

  std::filesystem::path path_;
  int file_ = -1;
  off_t whole_ = 0;  ///< bytes of the whole lines that were there when the file was opened
  bool cut_ = false;
  std::unordered_set<std::string> done_;
};

}  // namespace headway
