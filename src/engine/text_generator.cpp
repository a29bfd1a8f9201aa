#include "headway/engine/text_generator.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "engine/philox.h"
#include "engine/text_stream.h"
#include "headway/base/error.h"

namespace headway {

void TextParams::validate() const {
  sampling.validate();
  if (n < 1 || n > kMaxTexts) throw ArgumentError(fmt::format("n is {}; it must be in 1 to {}", n, kMaxTexts));
  for (const std::string& text : stop) {
    if (text.empty()) throw ArgumentError("stop has an empty string; every text would end at once");
  }
}

uint64_t seed_of_text(uint64_t seed, int64_t index) {
  if (index == 0) return seed;
  // The third word of the counter is 0 wherever tokens are drawn, so these bits are no token's.
  const auto bits = philox4x32({static_cast<uint32_t>(index), 0, 1, 0},
                               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{bits[0]} << 32 | bits[1];
}

struct TextGenerator::Impl {
  struct Text {
    RequestId request;  ///< of all the texts that were asked for together
    int64_t index;
    TextStream stream;
  };

  RequestId add(const std::vector<int32_t>& prompt, const TextParams& params) {
    const std::vector<RequestId> ids = add_to_engine(prompt, params);
    for (int64_t i = 0; i < params.n; ++i) texts.emplace(ids[i], Text{ids[0], i, TextStream(tokenizer, params)});
    members.emplace(ids[0], ids);
    return ids[0];
  }

  std::vector<RequestId> add_to_engine(const std::vector<int32_t>& prompt, const TextParams& params) {
    std::vector<RequestId> ids;
    try {
      for (int64_t i = 0; i < params.n; ++i) {
        SamplingParams sampling = params.sampling;
        if (sampling.seed) sampling.seed = seed_of_text(*sampling.seed, i);
        ids.push_back(engine.add_request(prompt, sampling));
      }
    } catch (const Error&) {
      for (const RequestId id : ids) engine.cancel(id);
      throw;
    }
    return ids;
  }

  void forget(RequestId id) {
    const auto text = texts.find(id);
    auto& ids = members.at(text->second.request);
    std::erase(ids, id);
    if (ids.empty()) members.erase(text->second.request);
    texts.erase(text);
  }

  TextOutput take(RequestOutput&& output) {
    const RequestId id = output.request;
    Text& text = texts.at(id);
    const bool engine_is_done = output.finish_reason.has_value();
    TextOutput result = text.stream.take(std::move(output));
    result.index = text.index;
    result.output.request = text.request;
    if (!result.output.finish_reason) return result;
    if (!engine_is_done) engine.cancel(id);
    forget(id);
    return result;
  }

  LLMEngine& engine;
  const Tokenizer* tokenizer;
  std::map<RequestId, Text> texts;                      ///< by the engine's ids
  std::map<RequestId, std::vector<RequestId>> members;  ///< the engine's ids of a request's unfinished texts
};

TextGenerator::TextGenerator(LLMEngine& engine, const Tokenizer* tokenizer)
    : impl_(std::make_unique<Impl>(Impl{engine, tokenizer, {}, {}})) {}

TextGenerator::~TextGenerator() = default;

RequestId TextGenerator::add(const std::vector<int32_t>& prompt, const TextParams& params) {
  params.validate();
  if (!params.stop.empty() && impl_->tokenizer == nullptr) {
    throw ArgumentError("stop needs a tokenizer, and the model has none; stop_token_ids work without");
  }
  return impl_->add(prompt, params);
}

bool TextGenerator::cancel(RequestId request) {
  const auto found = impl_->members.find(request);
  if (found == impl_->members.end()) return false;
  for (const RequestId id : found->second) {
    impl_->engine.cancel(id);
    impl_->texts.erase(id);
  }
  impl_->members.erase(found);
  return true;
}

bool TextGenerator::has_unfinished() const {
  return !impl_->texts.empty();
}

std::vector<TextOutput> TextGenerator::step() {
  std::vector<TextOutput> outputs;
  for (RequestOutput& output : impl_->engine.step()) {
    if (impl_->texts.contains(output.request)) outputs.push_back(impl_->take(std::move(output)));
  }
  return outputs;
}

}  // namespace headway
