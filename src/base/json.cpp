#include "base/json.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <vector>

#include "headway/base/error.h"

namespace headway {
namespace {

/// Refuses what nlohmann's parser would accept: unbounded nesting and repeated keys.
class StrictCallback {
 public:
  StrictCallback(std::string_view source, int max_depth) : source_(source), max_depth_(max_depth) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= max_depth_) {
        throw CheckpointError(fmt::format("{}: JSON is nested deeper than {} levels", source_, max_depth_));
      }
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second)
        throw CheckpointError(fmt::format("{}: duplicate key \"{}\"", source_, key));
    }
    return true;
  }

 private:
  std::string_view source_;
  int max_depth_;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view source, int max_depth) {
  // The parser would take a NUL byte for the end and ignore what follows.
  if (text.find('\0') != std::string_view::npos) {
    throw CheckpointError(fmt::format("{}: not valid JSON: it has a NUL byte", source));
  }
  try {
    return Json::parse(text, StrictCallback(source, max_depth));
  } catch (const Json::exception& error) {
    throw CheckpointError(fmt::format("{}: not valid JSON: {}", source, error.what()));
  }
}

Json read_json_file(const std::filesystem::path& path, size_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw CheckpointError(fmt::format("{}: cannot be opened", path.string()));
  std::error_code no_size;
  const auto size = std::filesystem::file_size(path, no_size);
  if (!no_size && size > max_bytes) {
    throw CheckpointError(fmt::format("{}: {} bytes, more than the {} accepted here", path.string(), size, max_bytes));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return parse_json(text, path.string());
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headway
