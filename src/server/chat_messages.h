#pragma once

#include <vector>

#include "base/json.h"
#include "headway/tokenizer/chat_template.h"

namespace headway {

/// The conversation of a chat request. A content is a text or a list of text parts, which are joined. Throws ApiError
/// naming the message and the field for anything else.
std::vector<ChatMessage> read_messages(const Json& messages);

}  // namespace headway
