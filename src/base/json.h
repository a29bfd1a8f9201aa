#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headway {

using Json = nlohmann::json;

/// Parses `text`, refusing nesting deeper than `max_depth` and duplicate keys. `source` is named in the
/// CheckpointError.
Json parse_json(std::string_view text, std::string_view source, int max_depth = 64);

/// Reads and parses a file of at most `max_bytes`; throws CheckpointError naming the file.
Json read_json_file(const std::filesystem::path& path, size_t max_bytes = size_t{256} << 20);

/// The text of a JSON value, with invalid UTF-8 replaced instead of thrown on.
std::string dump_json(const Json& value, int indent = -1);

}  // namespace headway
