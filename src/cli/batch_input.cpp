#include "cli/batch_input.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "cli/errors.h"

namespace headway {
namespace {

std::string custom_id_of(const std::string& line, const std::string& place) {
  Json json;
  try {
    json = parse_json(line, place);
  } catch (const CheckpointError& error) {
    throw UsageError(error.what());
  }
  const auto id = json.is_object() ? json.find("custom_id") : json.end();
  if (!json.is_object() || id == json.end() || !id->is_string() || id->get<std::string>().empty()) {
    throw UsageError(fmt::format("{}: not an object with a custom_id", place));
  }
  return id->get<std::string>();
}

}  // namespace

BatchInput::BatchInput(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary) {
  if (!file_ || std::filesystem::is_directory(path)) {
    throw UsageError(fmt::format("--input {} cannot be read", path.string()));
  }
  std::unordered_map<std::string, int64_t> lines;  // by custom_id
  std::string text;
  std::streamoff offset = 0;
  for (int64_t line = 1; std::getline(file_, text); ++line) {
    const std::streamoff begin = std::exchange(offset, offset + static_cast<std::streamoff>(text.size()) + 1);
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    BatchEntry entry{custom_id_of(text, fmt::format("{}:{}", path.string(), line)), line, begin};
    const auto [earlier, is_new] = lines.emplace(entry.custom_id, line);
    if (!is_new) {
      throw UsageError(fmt::format("{}:{}: custom_id \"{}\" is that of line {} as well", path.string(), line,
                                   entry.custom_id, earlier->second));
    }
    entries_.push_back(std::move(entry));
  }
  file_.clear();
}

Json BatchInput::read(const BatchEntry& entry) {
  std::string text;
  file_.seekg(entry.offset);
  if (!std::getline(file_, text)) throw Error(fmt::format("{}:{} cannot be read again", path_.string(), entry.line));
  return parse_json(text, fmt::format("{}:{}", path_.string(), entry.line));
}

}  // namespace headway
