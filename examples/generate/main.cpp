// Continues a text with a Qwen2 model, alone or on the ranks of a launcher:
//   generate FOLDER TEXT          mpirun -np 2 generate FOLDER TEXT
#include <exception>
#include <iostream>

#include "headway/engine/llm_engine.h"
#include "headway/tokenizer/tokenizer.h"

using namespace headway;

void generate(const char* folder, const char* text) {
  const LaunchEnvironment launch = resolve_launch_environment();
  const ModelConfig config = ModelConfig::from_pretrained(folder);
  const ParallelConfig parallel = resolve_parallel_config(config, launch.world_size, {}, {});
  const auto state = ParallelState::create(launch, parallel.tp, parallel.attn_tp);
  const LoadedModel loaded = load_model(folder, config, parallel, *state);
  LLMEngine engine(*loaded.model, *state);
  if (!engine.is_driver()) return engine.follow();

  const Tokenizer tokenizer = Tokenizer::from_pretrained(folder);
  IncrementalDecoder decoder(tokenizer);
  engine.add_request(tokenizer.encode(text), {.max_tokens = 24});
  while (engine.has_unfinished()) {
    for (const RequestOutput& output : engine.step()) {
      for (const int32_t id : output.token_ids) std::cout << decoder.push(id) << std::flush;
    }
  }
  std::cout << decoder.finish() << std::endl;
}

int main(int argc, char** argv) try {
  if (argc != 3) throw ArgumentError("usage: generate FOLDER TEXT");
  generate(argv[1], argv[2]);
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
