#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headway/tokenizer/tokenizer.h"
#include "support/temporary_folder.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer_json.h"

namespace headway::test {

using Json = nlohmann::json;

/// A tokenizer.json whose bytes are their own ids and whose merges make these tokens:
///   256 he, 257 ll, 258 hell, 259 hello, 260 " w", 261 or, 262 " wor", 263 ld, 264 " world", 265 ->, 266 ):,
///   267 (x, 268 "):\n", 269 12, 270 e-acute in composed form, 271 ab, 272 abab
/// Added are 300 <|end|> and 301 <|user|>, which are special, and 302 <call>, which is not.
inline Json small_tokenizer_json() {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_level_characters()[byte]] = byte;
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"h", "e"},   {"l", "l"}, {"he", "ll"},   {"hell", "o"}, {"Ġ", "w"},  {"o", "r"},
      {"Ġw", "or"}, {"l", "d"}, {"Ġwor", "ld"}, {"-", ">"},    {")", ":"},  {"(", "x"},
      {"):", "Ċ"},  {"1", "2"}, {"Ã", "©"},     {"a", "b"},    {"ab", "ab"}};
  Json merge_list = Json::array();
  int id = 256;
  for (const auto& [left, right] : merges) {
    vocabulary[left + right] = id++;
    merge_list.push_back(left + " " + right);
  }
  const auto added = [](int token_id, const char* content, bool special) {
    return Json{{"id", token_id},  {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", special}};
  };
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", {added(300, "<|end|>", true), added(301, "<|user|>", true), added(302, "<call>", false)}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merge_list}}},
          {"decoder", {{"type", "ByteLevel"}}}};
}

/// Words and normal form as Qwen2 has them.
inline Json qwen2_like_json() {
  Json json = small_tokenizer_json();
  json["normalizer"] = {{"type", "NFC"}};
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]})");
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = kQwen2Pattern;
  json["post_processor"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}};
  return json;
}

/// Words as SmolLM2 has them.
inline Json smollm2_like_json() {
  Json json = small_tokenizer_json();
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})");
  json["post_processor"] = nullptr;
  return json;
}

inline Tokenizer load_tokenizer(const Json& json) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", json.dump());
  return Tokenizer::from_pretrained(folder.path());
}

using Ids = std::vector<int32_t>;

}  // namespace headway::test
