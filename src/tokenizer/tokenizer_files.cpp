#include "tokenizer/tokenizer_files.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "headway/base/error.h"
#include "tokenizer/tokenizer_json.h"

namespace headway {
namespace {

constexpr size_t kFileLimit = size_t{128} << 20;  // large vocabularies take 10 to 40 MB

/// The merges of a merges.txt, one a line, under an optional "#version" line.
Json read_merges_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw CheckpointError(fmt::format("{}: cannot be opened", path.string()));
  Json merges = Json::array();
  std::string line;
  for (bool first = true; std::getline(file, line); first = false) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !(first && line.starts_with("#version"))) merges.push_back(line);
  }
  return merges;
}

Json added_tokens_of(const JsonField& config) {
  Json list = Json::array();
  for (const auto& [key, value] : config.at("added_tokens_decoder").object().items()) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || !value.is_object()) {
      config.at("added_tokens_decoder").fail(fmt::format("has the entry \"{}\", which is no id with a token", key));
    }
    list.push_back(value);
    list.back()["id"] = id;
  }
  return list;
}

/// What tokenizer.json would say for a folder that has Qwen2's older files only.
Json qwen2_tokenizer_json(const std::filesystem::path& folder) {
  const std::filesystem::path config_path = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(config_path)) {
    throw CheckpointError(fmt::format("{}: has neither tokenizer.json nor tokenizer_config.json", folder.string()));
  }
  const Json config_json = read_json_file(config_path, kFileLimit);
  const JsonField config(config_json, config_path.string());
  const std::string tokenizer_class = config.at("tokenizer_class").string();
  if (tokenizer_class != "Qwen2Tokenizer" && tokenizer_class != "Qwen2TokenizerFast") {
    config.at("tokenizer_class")
        .fail(fmt::format("is \"{}\"; without a tokenizer.json beside vocab.json only Qwen2Tokenizer is supported",
                          tokenizer_class));
  }
  const Json split = {{"type", "Split"}, {"pattern", {{"Regex", kQwen2Pattern}}}, {"behavior", "Isolated"}};
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"model",
           {{"type", "BPE"},
            {"vocab", read_json_file(folder / "vocab.json", kFileLimit)},
            {"merges", read_merges_text(folder / "merges.txt")}}},
          {"added_tokens", added_tokens_of(config)},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level})}}},
          {"decoder", {{"type", "ByteLevel"}}}};
}

}  // namespace

TokenizerDefinition read_tokenizer_files(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  if (std::filesystem::exists(path)) {
    const Json json = read_json_file(path, kFileLimit);
    return parse_tokenizer_json(JsonField(json, path.string()));
  }
  if (std::filesystem::exists(folder / "vocab.json") && std::filesystem::exists(folder / "merges.txt")) {
    const Json json = qwen2_tokenizer_json(folder);
    return parse_tokenizer_json(JsonField(json, (folder / "vocab.json").string()));
  }
  throw CheckpointError(fmt::format("{}: has neither tokenizer.json nor vocab.json with merges.txt", folder.string()));
}

SpecialTokens read_special_tokens(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) return {};
  const Json json = read_json_file(path, kFileLimit);
  return special_tokens_of(JsonField(json, path.string()));
}

}  // namespace headway
