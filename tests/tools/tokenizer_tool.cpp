// Runs a tokenizer for the Python tests: reads one JSON value a line, writes one JSON value a line.
//   tokenizer_tool FOLDER encode        "text"      -> [id, ...]
//   tokenizer_tool FOLDER encode_plain  "text"      -> [id, ...]   special tokens as plain text
//   tokenizer_tool FOLDER decode        [id, ...]   -> ["text", ["piece", ...]]   whole, and as it streams
//   tokenizer_tool FOLDER chat          [messages, add_generation_prompt] -> [id, ...]
//   tokenizer_tool FOLDER render        [messages, add_generation_prompt] -> [["text", trusted], ...] or {"error": ...}
//   tokenizer_tool FOLDER bench FILE    prints MB per second of CPU time, the best of 5
#include <algorithm>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "headway/tokenizer/chat_template.h"
#include "headway/tokenizer/tokenizer.h"

namespace {

using Json = nlohmann::json;
using headway::ChatTemplate;
using headway::Tokenizer;

Json decode(const Tokenizer& tokenizer, const Json& input) {
  const auto ids = input.get<std::vector<int32_t>>();
  headway::IncrementalDecoder decoder(tokenizer, false);
  Json pieces = Json::array();
  for (const int32_t id : ids) pieces.push_back(decoder.push(id));
  pieces.push_back(decoder.finish());
  return {tokenizer.decode(ids, false), std::move(pieces)};
}

std::vector<headway::ChatMessage> messages_of(const Json& list) {
  std::vector<headway::ChatMessage> messages;
  for (const Json& message : list) messages.push_back({message.at("role"), message.at("content")});
  return messages;
}

Json render(const ChatTemplate& chat_template, const Json& input) {
  Json parts = Json::array();
  try {
    for (const headway::TextPart& part : chat_template.render_parts(messages_of(input[0]), input[1])) {
      parts.push_back({part.text, part.trusted});
    }
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
  return parts;
}

void for_each_line(const std::function<Json(const Json&)>& answer) {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(Json::parse(line)).dump() << '\n';
}

void bench(const Tokenizer& tokenizer, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  double best = 0;
  size_t count = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const std::clock_t start = std::clock();
    count = tokenizer.encode(text).size();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    best = std::max(best, static_cast<double>(text.size()) / 1e6 / seconds);
  }
  std::cout << best << " MB/s, " << count << " tokens\n";
}

void run_chat(const std::string& folder, bool only_render) {
  const auto chat_template = ChatTemplate::from_pretrained(folder);
  if (!chat_template) throw std::runtime_error(folder + " has no chat template");
  if (only_render) return for_each_line([&](const Json& input) { return render(*chat_template, input); });
  const Tokenizer tokenizer = Tokenizer::from_pretrained(folder);
  for_each_line([&](const Json& input) {
    return Json(headway::encode_chat(tokenizer, *chat_template, messages_of(input[0]), input[1]));
  });
}

void run_tokenizer(const std::string& folder, const std::string& mode, const std::string& file) {
  const Tokenizer tokenizer = Tokenizer::from_pretrained(folder);
  if (mode == "bench") return bench(tokenizer, file);
  if (mode == "decode") return for_each_line([&](const Json& ids) { return decode(tokenizer, ids); });
  for_each_line([&](const Json& text) { return Json(tokenizer.encode(text.get<std::string>(), mode == "encode")); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: tokenizer_tool FOLDER encode|encode_plain|decode|chat|render|bench [FILE]\n";
    return 2;
  }
  try {
    const std::string mode = argv[2];
    if (mode == "chat" || mode == "render") {
      run_chat(argv[1], mode == "render");
    } else {
      run_tokenizer(argv[1], mode, argc > 3 ? argv[3] : "");
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
