#include "parallel/launch/settings_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace headway {
namespace {

constexpr char kAbsent[] = "(not set)";

std::string value_of(const Settings& settings, const std::string& name) {
  for (const auto& [other, value] : settings) {
    if (other == name) return value;
  }
  return kAbsent;
}

std::vector<std::string> names_of(const std::vector<Settings>& by_rank) {
  std::vector<std::string> names;
  for (const Settings& settings : by_rank) {
    for (const auto& [name, value] : settings) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// "tp is 4 on ranks 0, 2 and 2 on rank 1", or nothing if all ranks have the same value.
std::string describe_difference(const std::vector<Settings>& by_rank, const std::string& name) {
  std::vector<std::pair<std::string, std::vector<size_t>>> holders;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const std::string value = value_of(by_rank[rank], name);
    const auto same = [&](const auto& entry) { return entry.first == value; };
    auto found = std::find_if(holders.begin(), holders.end(), same);
    if (found == holders.end()) found = holders.insert(holders.end(), {value, {}});
    found->second.push_back(rank);
  }
  if (holders.size() == 1) return "";
  std::vector<std::string> parts;
  for (const auto& [value, ranks] : holders) {
    parts.push_back(fmt::format("{} on rank{} {}", value, ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", ")));
  }
  return fmt::format("{} is {}", name, fmt::join(parts, " and "));
}

}  // namespace

Settings settings_of_text(const std::string& text) {
  Settings settings;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t split = line.find('=');
    if (split == std::string::npos) {
      settings.emplace_back(fmt::format("line {}", settings.size() + 1), line);
    } else {
      settings.emplace_back(line.substr(0, split), line.substr(split + 1));
    }
  }
  return settings;
}

std::string encode_settings(const Settings& settings) {
  std::string bytes;
  nlohmann::json::to_cbor(settings, bytes);
  return bytes;
}

Settings decode_settings(const std::string& bytes) {
  return nlohmann::json::from_cbor(bytes).get<Settings>();
}

std::string describe_differences(const std::vector<Settings>& by_rank) {
  std::vector<std::string> differences;
  for (const std::string& name : names_of(by_rank)) {
    const std::string difference = describe_difference(by_rank, name);
    if (!difference.empty()) differences.push_back(difference);
  }
  return fmt::format("{}", fmt::join(differences, "; "));
}

}  // namespace headway
