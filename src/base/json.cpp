#include "base/json.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>
#include <vector>

#include "headway/base/error.h"

namespace headway {
namespace {

/// Builds the value and refuses what nlohmann's own parser would accept: unbounded nesting and repeated keys. (Its
/// parser with a callback could refuse them too, but takes time that grows with the square of a list's length.)
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(std::string_view source, int max_depth) : source_(source), max_depth_(max_depth) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }

  bool start_object(size_t /*elements*/) override { return open(Json::object()); }
  bool start_array(size_t /*elements*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (open_.back()->contains(value)) {
      throw CheckpointError(fmt::format("{}: duplicate key \"{}\"", source_, value));
    }
    key_ = std::move(value);
    return true;
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/, const Json::exception& error) override {
    throw CheckpointError(fmt::format("{}: not valid JSON: {}", source_, error.what()));
  }

 private:
  /// Where a value that comes now belongs.
  Json& place() {
    if (open_.empty()) return root_;
    Json& parent = *open_.back();
    return parent.is_array() ? parent.emplace_back() : parent[std::move(key_)];
  }

  template <typename Value>
  bool add(Value value) {
    place() = std::move(value);
    return true;
  }

  bool open(Json container) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      throw CheckpointError(fmt::format("{}: JSON is nested deeper than {} levels", source_, max_depth_));
    }
    Json& value = place();
    value = std::move(container);
    open_.push_back(&value);  // its parent does not change until it is closed
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view source_;
  int max_depth_;
  Json root_;
  std::vector<Json*> open_;  ///< the containers that are being filled, from the outermost to the innermost
  std::string key_;          ///< of the value that comes next
};

}  // namespace

Json parse_json(std::string_view text, std::string_view source, int max_depth) {
  // The parser would take a NUL byte for the end and ignore what follows.
  if (text.find('\0') != std::string_view::npos) {
    throw CheckpointError(fmt::format("{}: not valid JSON: it has a NUL byte", source));
  }
  StrictBuilder builder(source, max_depth);
  Json::sax_parse(text, &builder);
  return builder.take();
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
