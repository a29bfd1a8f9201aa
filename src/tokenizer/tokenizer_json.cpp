#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <set>

#include "tokenizer/byte_level.h"
#include "tokenizer/regex.h"

namespace headway {
namespace {

constexpr int64_t kIdLimit = int64_t{1} << 21;  // far above any vocabulary; keeps a wrong id from allocating by itself

// What ByteLevel cuts text by if it is told to: GPT-2's pattern.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string type_of(const JsonField& component) {
  return component.at("type").string();
}

[[noreturn]] void refuse_type(const JsonField& component, std::string_view supported) {
  component.fail(fmt::format("is of type \"{}\", which is not supported (only {})", type_of(component), supported));
}

void refuse_unless(const JsonField& component, std::string_view key, bool otherwise, bool wanted) {
  if (component.boolean_or(key, otherwise) != wanted) {
    component.fail(fmt::format("has {} = {}, which is not supported", key, !wanted));
  }
}

/// Calls `read` for a component, or for each in turn of those that a Sequence under `key` holds.
template <typename Read>
void for_each_component(const JsonField& component, std::string_view key, Read read) {
  if (type_of(component) != "Sequence") return read(component);
  const JsonField list = component.at(key);
  for (size_t i = 0; i < list.size(); ++i) read(list.at(i));
}

std::optional<int32_t> id_of(const Json& value) {
  if (!value.is_number_integer() || value < 0 || value >= kIdLimit) return std::nullopt;
  return value.get<int32_t>();
}

int32_t checked_id(const JsonField& field) {
  const auto id = id_of(field.json());
  if (!id) field.fail(fmt::format("is not an id from 0 to {}", kIdLimit - 1));
  return *id;
}

class Parser {
 public:
  explicit Parser(const JsonField& file) : file_(file) {}

  TokenizerDefinition parse() {
    const JsonField model = file_.at("model");
    check_model(model);
    read_vocabulary(model.at("vocab"));
    if (const auto added = file_.find("added_tokens")) read_added_tokens(*added);
    read_byte_ids(model);
    read_merges(model.at("merges"));
    if (const auto normalizer = file_.find("normalizer")) read_normalizer(*normalizer);
    read_pre_tokenizer(file_.at("pre_tokenizer"));
    check_decoder(file_.at("decoder"));
    if (const auto post_processor = file_.find("post_processor")) check_post_processor(*post_processor);
    check_forgery();
    return std::move(definition_);
  }

 private:
  void check_model(const JsonField& model) {
    if (model.string_or("type", "BPE") != "BPE") refuse_type(model, "BPE");
    if (const auto dropout = model.find("dropout"); dropout && dropout->json() != 0.0) {
      dropout->fail("is not supported: it makes ids random");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model.string_or(key, "").empty()) model.at(key).fail("is not supported");
    }
    definition_.ignore_merges = model.boolean_or("ignore_merges", false);
  }

  void read_vocabulary(const JsonField& vocabulary) {
    definition_.vocabulary.reserve(vocabulary.object().size());
    for (const auto& [token, value] : vocabulary.object().items()) {
      const int32_t id = id_of(value) ? *id_of(value) : checked_id(vocabulary.at(token));  // the place only for errors
      add_id(id, vocabulary, token);
      definition_.vocabulary.emplace(token, id);
    }
  }

  void add_id(int32_t id, const JsonField& place, std::string_view token) {
    if (taken_ids_[static_cast<size_t>(id)]) {
      place.fail(fmt::format("gives \"{}\" the id {} of another token", token, id));
    }
    taken_ids_[static_cast<size_t>(id)] = true;
  }

  void read_added_tokens(const JsonField& list) {
    std::set<std::string> seen;
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonField entry = list.at(i);
      AddedToken token{.content = entry.at("content").string(),
                       .id = checked_id(entry.at("id")),
                       .special = entry.boolean_or("special", false),
                       .normalized = entry.boolean_or("normalized", true),
                       .lstrip = entry.boolean_or("lstrip", false),
                       .rstrip = entry.boolean_or("rstrip", false),
                       .single_word = entry.boolean_or("single_word", false)};
      if (token.content.empty()) entry.fail("has no content");
      if (!seen.insert(token.content).second) entry.fail(fmt::format("lists \"{}\" once more", token.content));
      const auto known = definition_.vocabulary.find(token.content);
      if (known == definition_.vocabulary.end()) {
        add_id(token.id, entry, token.content);
      } else if (known->second != token.id) {
        entry.fail(fmt::format("gives \"{}\" id {}, model.vocab {}", token.content, token.id, known->second));
      }
      definition_.added_tokens.push_back(std::move(token));
    }
  }

  /// A byte without a token is left out of the ids, as the tokenizers library does, unless the file wants it replaced.
  void read_byte_ids(const JsonField& model) {
    const auto& characters = byte_level_characters();
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = definition_.vocabulary.find(characters[byte]);
      definition_.byte_ids[byte] = found == definition_.vocabulary.end() ? -1 : found->second;
      if (definition_.byte_ids[byte] >= 0) continue;
      const bool replaced = model.find("unk_token") || model.boolean_or("byte_fallback", false);
      if (replaced) {
        model.fail(fmt::format("has no token for byte {:#04x}; unk_token and byte_fallback are not supported", byte));
      }
    }
  }

  void read_merges(const JsonField& merges) {
    definition_.merges.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right] = merge_parts(merges, i);
      const auto id = [&, i = i](const std::string& token) {
        const auto found = definition_.vocabulary.find(token);
        if (found == definition_.vocabulary.end()) {
          merges.at(i).fail(fmt::format("needs the token \"{}\", which model.vocab does not have", token));
        }
        return found->second;
      };
      definition_.merges.push_back({id(left), id(right), id(left + right)});
    }
  }

  /// A merge is written as "left right" or as ["left", "right"].
  static std::pair<std::string, std::string> merge_parts(const JsonField& merges, size_t index) {
    const Json& merge = merges.json()[index];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
        return {text.substr(0, space), text.substr(space + 1)};
      }
    }
    merges.at(index).fail("is not a pair of tokens");
  }

  void read_normalizer(const JsonField& normalizer) {
    for_each_component(normalizer, "normalizers", [this](const JsonField& one) {
      if (type_of(one) != "NFC") refuse_type(one, "NFC");
      definition_.nfc = true;
    });
    for (const AddedToken& token : definition_.added_tokens) {
      if (definition_.nfc && token.special && token.normalized) {
        file_.fail(
            fmt::format("has the special token \"{}\" with normalized = true beside a normalizer, which is not "
                        "supported",
                        token.content));
      }
    }
  }

  void read_pre_tokenizer(const JsonField& pre_tokenizer) {
    bool byte_level = false;
    for_each_component(pre_tokenizer, "pretokenizers", [&](const JsonField& one) {
      if (byte_level) one.fail("comes after ByteLevel, which is not supported");
      const std::string type = type_of(one);
      if (type == "Split") {
        add_pattern(split_pattern(one));
      } else if (type == "Digits") {
        add_pattern(one.boolean_or("individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
      } else if (type == "ByteLevel") {
        byte_level = true;
        refuse_unless(one, "add_prefix_space", true, false);
        if (one.boolean_or("use_regex", true)) add_pattern(kByteLevelPattern);
      } else {
        refuse_type(one, "Split, Digits, ByteLevel and a Sequence of them");
      }
    });
    if (!byte_level) pre_tokenizer.fail("has no ByteLevel; only byte-level vocabularies are supported");
  }

  static std::string split_pattern(const JsonField& split) {
    if (split.at("behavior").string() != "Isolated") split.at("behavior").fail("is not \"Isolated\"");
    refuse_unless(split, "invert", false, false);
    return split.at("pattern").at("Regex").string();
  }

  void add_pattern(std::string_view pattern) {
    definition_.split_patterns.push_back(pcre2_pattern(pattern, "tokenizer.json"));
  }

  static void check_decoder(const JsonField& decoder) {
    if (type_of(decoder) != "ByteLevel") refuse_type(decoder, "ByteLevel");
  }

  /// ByteLevel only shifts offsets here. Others add tokens to every text, which is the chat template's business.
  static void check_post_processor(const JsonField& post_processor) {
    for_each_component(post_processor, "processors", [](const JsonField& one) {
      if (type_of(one) != "ByteLevel") refuse_type(one, "ByteLevel");
    });
  }

  /// No plain text may come out as a special token.
  void check_forgery() const {
    std::set<int32_t> special;
    for (const AddedToken& token : definition_.added_tokens) {
      if (token.special) special.insert(token.id);
    }
    const auto check = [&](int32_t id) {
      if (special.contains(id)) file_.fail(fmt::format("lets the merges make the special token {}", id));
    };
    for (const int32_t id : definition_.byte_ids) check(id);
    for (const Merge& merge : definition_.merges) check(merge.merged);
  }

  const JsonField& file_;
  TokenizerDefinition definition_;
  std::vector<bool> taken_ids_ = std::vector<bool>(kIdLimit);
};

}  // namespace

TokenizerDefinition parse_tokenizer_json(const JsonField& file) {
  return Parser(file).parse();
}

}  // namespace headway
