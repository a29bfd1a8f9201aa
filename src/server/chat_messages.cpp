#include "server/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "server/api_error.h"
#include "server/body_reader.h"

namespace headway {
namespace {

constexpr std::array<std::string_view, 5> kRoles{"system", "developer", "user", "assistant", "tool"};

std::string read_part(const Json& part, const std::string& where) {
  BodyReader reader(part, where + ".");
  const std::string type = reader.string("type").value_or("");
  if (type != "text") {
    throw ApiError(400, "unsupported_content", fmt::format("{} has type \"{}\"; only text is served", where, type),
                   where);
  }
  reader.require("text");
  const auto text = reader.string("text");  // refuses what is no string
  reader.refuse_others();
  return *text;
}

std::string read_content(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw invalid_request(where, fmt::format("{} must be a text or a list of parts", where));
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) text += read_part(content[i], fmt::format("{}[{}]", where, i));
  return text;
}

ChatMessage read_message(const Json& message, const std::string& where) {
  BodyReader reader(message, where + ".");
  reader.require("role");
  ChatMessage result{*reader.string("role"), read_content(reader.require("content"), where + ".content")};
  if (std::find(kRoles.begin(), kRoles.end(), result.role) == kRoles.end()) {
    throw invalid_request(where + ".role", fmt::format("{}.role is \"{}\"; it must be one of system, developer, user, "
                                                       "assistant, tool",
                                                       where, result.role));
  }
  reader.refuse_others();
  if (result.role == "developer") result.role = "system";  // its newer name, which templates leave out silently
  return result;
}

}  // namespace

std::vector<ChatMessage> read_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty()) {
    throw invalid_request("messages", "messages must be a list of at least one message");
  }
  std::vector<ChatMessage> result;
  for (size_t i = 0; i < messages.size(); ++i) {
    result.push_back(read_message(messages[i], fmt::format("messages[{}]", i)));
  }
  return result;
}

}  // namespace headway
