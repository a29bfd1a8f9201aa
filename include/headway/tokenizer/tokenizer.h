#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway {

/// A stretch of text and whether it may hold special tokens: a chat template's own text may, a user's may not.
struct TextPart {
  std::string text;
  bool trusted;
};

/// Byte-level BPE from a Hugging Face tokenizer.json, with the ids that the `tokenizers` library gives. Any thread may
/// use it.
class Tokenizer {
 public:
  /// Reads tokenizer.json of `folder`; where there is none, vocab.json and merges.txt, if tokenizer_config.json says
  /// that they are a Qwen2Tokenizer's. Throws CheckpointError naming the file and what is not supported.
  static Tokenizer from_pretrained(const std::filesystem::path& folder);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// The ids of UTF-8 `text`; bytes that are no UTF-8 are read as U+FFFD, and bytes without a token left out. With
  /// `parse_special` false the text of a special token is encoded as plain text, so that user text cannot forge control
  /// tokens.
  std::vector<int32_t> encode(std::string_view text, bool parse_special = true) const;

  /// The ids of the parts joined, words running on from one part to the next. Special tokens count in trusted parts
  /// only; neither they nor other added tokens reach across the border of trusted and untrusted text.
  std::vector<int32_t> encode_parts(const std::vector<TextPart>& parts) const;

  /// The text of `ids`, valid UTF-8; bytes that form no character become U+FFFD, ids without a token become "".
  std::string decode(const std::vector<int32_t>& ids, bool skip_special = true) const;

  /// The raw bytes of one token; empty for an id without a token.
  std::string token_bytes(int32_t id) const;

  std::optional<int32_t> token_id(std::string_view token) const;
  bool is_special(int32_t id) const;
  /// That of `eos_token` in tokenizer_config.json. It ends a text beside the ids that the model's config names: of a
  /// chat model the two may differ.
  std::optional<int32_t> eos_token_id() const;
  int32_t vocab_size() const;  ///< largest id + 1

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Turns a stream of ids into text that never ends inside a character.
class IncrementalDecoder {
 public:
  explicit IncrementalDecoder(const Tokenizer& tokenizer, bool skip_special = true);

  /// The text that `id` completes; "" while a character is unfinished.
  std::string push(int32_t id);

  /// What is held back when the stream ends, as U+FFFD where it is no character.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string pending_;
};

}  // namespace headway
