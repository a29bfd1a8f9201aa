#pragma once

#include <string>
#include <utility>
#include <vector>

namespace headway {

/// Named values that must be equal on all ranks.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// One setting for each line of `text`: "name=value", or a line without a name.
Settings settings_of_text(const std::string& text);

std::string encode_settings(const Settings& settings);
Settings decode_settings(const std::string& bytes);

/// What differs between the ranks' settings, such as "tp is 4 on ranks 0, 2 and 2 on rank 1"; empty if nothing does.
std::string describe_differences(const std::vector<Settings>& by_rank);

}  // namespace headway
