#pragma once

namespace CLI {
class App;
}

// One function per command: each adds its subcommand, whose callback runs it. A callback throws an Error, or
// CLI::RuntimeError with an exit code when all has been said.
namespace headway {

/// Rates of prefill and decode beside what the machine could give.
void add_bench_command(CLI::App& app);

void add_generate_command(CLI::App& app);

/// Answers a file of requests.
void add_batch_command(CLI::App& app);

/// What each rank of a layout would hold and send, from config.json alone.
void add_plan_command(CLI::App& app);

/// Compares the logits and tokens of layouts with those of one rank.
void add_verify_command(CLI::App& app);

}  // namespace headway
