// Runs a tokenizer for the Python tests: reads one JSON value a line, writes one JSON value a line.
//   tokenizer_tool FOLDER encode        "text"     -> [id, ...]
//   tokenizer_tool FOLDER encode_plain  "text"     -> [id, ...]   special tokens as plain text
//   tokenizer_tool FOLDER decode        [id, ...]  -> ["text", ["piece", ...]]   whole, and as it streams
//   tokenizer_tool FOLDER bench FILE               prints MB/s, the best of 5
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "headway/tokenizer/tokenizer.h"

namespace {

using Json = nlohmann::json;
using headway::Tokenizer;

Json decode(const Tokenizer& tokenizer, const Json& input) {
  const auto ids = input.get<std::vector<int32_t>>();
  headway::IncrementalDecoder decoder(tokenizer, false);
  Json pieces = Json::array();
  for (const int32_t id : ids) pieces.push_back(decoder.push(id));
  pieces.push_back(decoder.finish());
  return {tokenizer.decode(ids, false), std::move(pieces)};
}

void for_each_line(const std::function<Json(const Json&)>& answer) {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(Json::parse(line)).dump() << '\n';
}

void bench(const Tokenizer& tokenizer, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  double best = 0;
  size_t count = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    count = tokenizer.encode(text).size();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(text.size()) / 1e6 / elapsed.count());
  }
  std::cout << best << " MB/s, " << count << " tokens\n";
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    std::cerr << "usage: tokenizer_tool FOLDER encode|encode_plain|decode|bench [FILE]\n";
    return 2;
  }
  const Tokenizer tokenizer = Tokenizer::from_pretrained(arguments[1]);
  if (arguments[2] == "bench") {
    bench(tokenizer, arguments.at(3).c_str());
  } else if (arguments[2] == "decode") {
    for_each_line([&](const Json& ids) { return decode(tokenizer, ids); });
  } else {
    const bool parse_special = arguments[2] == "encode";
    for_each_line([&](const Json& text) { return Json(tokenizer.encode(text.get<std::string>(), parse_special)); });
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
