#include <gtest/gtest.h>

#include <random>

#include "headway/base/error.h"
#include "support/expect_error.h"
#include "unit/tokenizer/small_tokenizer.h"

namespace headway::test {
namespace {

std::string load_error(const Json& json) {
  return error_of<CheckpointError>([&] { load_tokenizer(json); });
}

/// The error for a Qwen2-like file in which the JSON pointer `place` reads `value`.
std::string error_with(const char* place, Json value) {
  Json json = qwen2_like_json();
  json[Json::json_pointer(place)] = std::move(value);
  return load_error(json);
}

TEST(TokenizerFiles, RefuseByNameWhatIsNotSupported) {
  EXPECT_THAT(error_with("/model/type", "Unigram"), HasAll("tokenizer.json", "model", "Unigram"));
  EXPECT_THAT(error_with("/model/dropout", 0.1), HasAll("model.dropout"));
  EXPECT_THAT(error_with("/model/end_of_word_suffix", "</w>"), HasAll("model.end_of_word_suffix"));
  EXPECT_THAT(error_with("/normalizer", Json{{"type", "Lowercase"}}), HasAll("normalizer", "Lowercase"));
  EXPECT_THAT(error_with("/normalizer", Json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFKC"}]})")),
              HasAll("normalizer.normalizers[0]", "NFKC"));
  EXPECT_THAT(error_with("/pre_tokenizer/pretokenizers/0/type", "Metaspace"),
              HasAll("pre_tokenizer.pretokenizers[0]", "Metaspace"));
  EXPECT_THAT(error_with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), HasAll("behavior", "Isolated"));
  EXPECT_THAT(error_with("/pre_tokenizer/pretokenizers/0/invert", true), HasAll("invert"));
  EXPECT_THAT(error_with("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), HasAll("add_prefix_space"));
  EXPECT_THAT(error_with("/decoder/type", "WordPiece"), HasAll("decoder", "WordPiece"));
  EXPECT_THAT(error_with("/post_processor/type", "TemplateProcessing"), HasAll("post_processor", "TemplateProcessing"));
  EXPECT_THAT(error_with("/added_tokens/0/normalized", true), HasAll("<|end|>", "normalized"));
  Json without_byte = qwen2_like_json();
  without_byte["model"]["vocab"].erase(byte_level_characters()[0xC0]);
  without_byte["model"]["byte_fallback"] = true;
  EXPECT_THAT(load_error(without_byte), HasAll("0xc0", "byte_fallback"));
}

TEST(TokenizerFiles, RefuseWhatIsMalformed) {
  for (const char* key : {"model", "pre_tokenizer", "decoder"}) {
    Json json = qwen2_like_json();
    json.erase(key);
    EXPECT_THAT(load_error(json), HasAll("tokenizer.json", key));
  }
  EXPECT_THAT(error_with("/model/vocab/he", 257), HasAll("model.vocab", "257"));
  EXPECT_THAT(error_with("/model/vocab/he", -1), HasAll("model.vocab.he"));
  EXPECT_THAT(error_with("/model/vocab/he", 1.5), HasAll("model.vocab.he"));
  EXPECT_THAT(error_with("/model/vocab/he", uint64_t{1} << 63), HasAll("model.vocab.he"));
  EXPECT_THAT(error_with("/model/merges/2", "he xx"), HasAll("model.merges[2]", "xx"));
  EXPECT_THAT(error_with("/model/merges/2", "hell"), HasAll("model.merges[2]"));
  EXPECT_THAT(error_with("/model/merges/2", Json{"he"}), HasAll("model.merges[2]"));
  EXPECT_THAT(error_with("/model/merges/2", "a he"), HasAll("model.merges[2]", "ahe"));
  EXPECT_THAT(error_with("/added_tokens/1/id", 300), HasAll("added_tokens[1]", "300"));
  EXPECT_THAT(error_with("/added_tokens/1/content", "<|end|>"), HasAll("added_tokens[1]", "<|end|>"));
  EXPECT_THAT(error_with("/added_tokens/1/content", ""), HasAll("added_tokens[1]"));
  EXPECT_THAT(error_with("/added_tokens/1/content", "hello"), HasAll("added_tokens[1]", "hello", "301", "259"));
  EXPECT_THAT(error_with("/added_tokens/1/special", "yes"), HasAll("added_tokens[1].special"));
  EXPECT_THAT(error_with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "a("), HasAll("a("));
}

TEST(TokenizerFiles, RefuseMergesThatMakeASpecialToken) {
  Json json = qwen2_like_json();
  json["added_tokens"][0].update({{"content", "hello"}, {"id", 259}});
  EXPECT_THAT(load_error(json), HasAll("special", "259"));
}

TEST(TokenizerFiles, RefusePatternsThatMeanSomethingElseToThisEngine) {
  for (const char* construct : {".", "^a", "a$", "\\w", "\\h", "\\R", "[a&&b]", "[[:alpha:]]", "\\p{Han}", "\\p{^L}",
                                "(?i)a", "(?<n>a)", "a{,3}", "a{2}+", "(*UTF)a", "[\\s-x]", "[]a]"}) {
    const std::string error = error_with("/pre_tokenizer/pretokenizers/0/pattern/Regex", construct);
    EXPECT_THAT(error, HasAll(construct, "not supported")) << construct;
  }
}

TEST(TokenizerFiles, DamagedFilesEndInAnErrorOrLoad) {
  const std::string whole = qwen2_like_json().dump();
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = whole;
    if (round % 4 == 0) damaged.resize(random() % whole.size());
    for (int i = 0; i < 3 && !damaged.empty(); ++i)
      damaged[random() % damaged.size()] = "0\"{}[],:-\\\xFFz"[random() % 12];
    const TemporaryFolder folder;
    folder.write("tokenizer.json", damaged);
    try {
      Tokenizer::from_pretrained(folder.path()).encode("hello <|end|> 12");
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
}

// Fault case F11: vocab.json and merges.txt stand in for tokenizer.json where they are a Qwen2 tokenizer's.
TEST(TokenizerFiles, VocabularyAndMergesOfQwen2GiveTheSameIds) {
  const Json json = qwen2_like_json();
  std::string merges = "#version: 0.2\n";
  for (const std::string merge : json["model"]["merges"]) merges += merge + "\n";
  Json config = {{"tokenizer_class", "Qwen2Tokenizer"}, {"added_tokens_decoder", Json::object()}};
  for (const Json& token : json["added_tokens"]) {
    config["added_tokens_decoder"][std::to_string(token["id"].get<int>())] = token;
  }
  const TemporaryFolder folder;
  folder.write("vocab.json", json["model"]["vocab"].dump());
  folder.write("merges.txt", merges);
  folder.write("tokenizer_config.json", config.dump());
  const Tokenizer older = Tokenizer::from_pretrained(folder.path());
  const Tokenizer newer = load_tokenizer(json);
  for (const char* text : {"hello world", "(x):\n 123", "cafe\u0301 <|end|><call>", "\n\n  a"}) {
    EXPECT_EQ(older.encode(text), newer.encode(text)) << text;
  }
  EXPECT_EQ(older.encode("hello<|end|>"), (Ids{259, 300}));

  config["tokenizer_class"] = "GPT2Tokenizer";
  folder.write("tokenizer_config.json", config.dump());
  EXPECT_THAT(error_of<CheckpointError>([&] { Tokenizer::from_pretrained(folder.path()); }),
              HasAll("tokenizer_config.json", "GPT2Tokenizer", "tokenizer.json"));
  std::filesystem::remove(folder / "tokenizer_config.json");
  EXPECT_THAT(error_of<CheckpointError>([&] { Tokenizer::from_pretrained(folder.path()); }),
              HasAll("tokenizer.json", "tokenizer_config.json"));
}

TEST(TokenizerFiles, AFolderWithoutATokenizerIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of<CheckpointError>([&] { Tokenizer::from_pretrained(folder.path()); }),
              HasAll(folder.path().c_str(), "tokenizer.json"));
}

std::optional<int32_t> eos_id_with(const std::string& tokenizer_config) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", qwen2_like_json().dump());
  if (!tokenizer_config.empty()) folder.write("tokenizer_config.json", tokenizer_config);
  return Tokenizer::from_pretrained(folder.path()).eos_token_id();
}

// Fault case F01, the part of the tokenizer.
TEST(TokenizerFiles, NameTheTokenThatEndsAText) {
  EXPECT_EQ(eos_id_with(R"({"eos_token": "<|end|>", "bos_token": "<|user|>"})"), 300);
  EXPECT_EQ(eos_id_with(R"({"eos_token": {"content": "<|user|>", "special": true}})"), 301);
  EXPECT_EQ(eos_id_with(R"({"eos_token": null})"), std::nullopt);
  EXPECT_EQ(eos_id_with(R"({"eos_token": "<|none|>"})"), std::nullopt);
  EXPECT_EQ(eos_id_with(""), std::nullopt);
}

}  // namespace
}  // namespace headway::test
