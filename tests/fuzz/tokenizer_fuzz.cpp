// tokenizer.json: it is refused with a CheckpointError, or gives a tokenizer that turns any text into ids of its own
// vocabulary and back into valid UTF-8.
#include "fuzz/live_heap.h"
#include "headway/base/error.h"
#include "headway/tokenizer/tokenizer.h"
#include "support/temporary_folder.h"
#include "tokenizer/utf8.h"

namespace headway::test {
namespace {

constexpr std::string_view kText = "Hello world, (x):\n  12345 e\xcc\x81t\xc3\xa9 <|end|>\t\xf0\x9f\x98\x80 abab's\xff";

void use(const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids = tokenizer.encode(kText);
  for (const int32_t id : ids) require(0 <= id && id < tokenizer.vocab_size(), "ids lie in the vocabulary");
  for (const bool skip_special : {false, true}) {
    const std::string text = tokenizer.decode(ids, skip_special);
    require(to_valid_utf8(text) == text, "decoded text is valid UTF-8");
  }
  IncrementalDecoder decoder(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) streamed += decoder.push(id);
  require(streamed + decoder.finish() == tokenizer.decode(ids), "a stream gives the text of its ids");
}

void read(std::string_view json) {
  static const TemporaryFolder folder;
  folder.write("tokenizer.json", json);
  const LiveHeapLimit limit;
  try {
    use(Tokenizer::from_pretrained(folder.path()));
  } catch (const CheckpointError&) {
  } catch (const ArgumentError&) {  // a pattern that needs more steps than a match may take
  }
}

}  // namespace
}  // namespace headway::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headway::test::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
