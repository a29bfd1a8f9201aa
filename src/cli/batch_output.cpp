#include "cli/batch_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/errors.h"

namespace headway {
namespace {

[[noreturn]] void refuse(const std::string& place) {
  throw UsageError(fmt::format("{}: not a result of a batch; give --output another file", place));
}

std::string custom_id_of(const std::string& line, const std::string& place) {
  try {
    const Json result = parse_json(line, place);
    if (!result.contains("response")) refuse(place);
    return result.at("custom_id").get<std::string>();
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception&) {
    refuse(place);
  }
}

/// Whether `text` may be what is left of a result whose writing was cut off.
bool may_be_cut_result(const std::string& text) {
  const std::string start = dump_json({{"custom_id", ""}}).substr(0, 14);  // {"custom_id":"
  return std::string_view(text).substr(0, start.size()) == std::string_view(start).substr(0, text.size());
}

}  // namespace

BatchOutput::BatchOutput(const std::filesystem::path& path) : path_(path) {
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) throw UsageError(fmt::format("--output {} cannot be opened: {}", path.string(), std::strerror(errno)));
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    close(file_);
    throw UsageError(fmt::format("--output {} is in use by another process", path.string()));
  }
  try {
    read_done();
  } catch (const UsageError&) {
    close(file_);
    throw;
  }
}

BatchOutput::~BatchOutput() {
  close(file_);
}

void BatchOutput::read_done() {
  std::ifstream lines(path_, std::ios::binary);
  std::string text;
  for (int64_t line = 1; std::getline(lines, text); ++line) {
    const std::string place = fmt::format("{}:{}", path_.string(), line);
    if (lines.eof()) {  // without its end a line may have been cut anywhere
      if (!may_be_cut_result(text)) refuse(place);
      return;
    }
    done_.insert(custom_id_of(text, place));
    whole_ += static_cast<off_t>(text.size()) + 1;
  }
}

void BatchOutput::cut_to_whole_lines() {
  if (cut_) return;
  if (ftruncate(file_, whole_) != 0) {
    throw Error(fmt::format("--output {} cannot be cut to {} bytes", path_.string(), whole_));
  }
  cut_ = true;
}

void BatchOutput::write(const Json& result) {
  cut_to_whole_lines();
  const std::string line = dump_json(result) + "\n";
  for (size_t written = 0; written < line.size();) {
    const ssize_t count = ::write(file_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(fmt::format("--output {}: {}", path_.string(), std::strerror(errno)));
    written += static_cast<size_t>(count);
  }
}

}  // namespace headway
