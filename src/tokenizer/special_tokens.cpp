#include "tokenizer/special_tokens.h"

namespace headway {

SpecialTokens special_tokens_of(const JsonField& tokenizer_config) {
  SpecialTokens tokens;
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    const auto token = tokenizer_config.find(name);
    if (!token) continue;
    tokens.emplace_back(name, token->json().is_object() ? token->at("content").string() : token->string());
  }
  return tokens;
}

}  // namespace headway
