#include <utility>

#include "headway/tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace headway {

IncrementalDecoder::IncrementalDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer), skip_special_(skip_special) {}

std::string IncrementalDecoder::push(int32_t id) {
  if (skip_special_ && tokenizer_.is_special(id)) return "";
  pending_ += tokenizer_.token_bytes(id);
  return take_settled_utf8(pending_);
}

std::string IncrementalDecoder::finish() {
  return to_valid_utf8(std::exchange(pending_, {}));
}

}  // namespace headway
