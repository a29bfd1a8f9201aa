#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>

#include "cli/commands.h"
#include "cli/errors.h"
#include "headway/parallel/launch.h"

namespace headway {
namespace {

/// This process's rank as far as it can be told, for the report of an error.
GlobalRank rank_for_errors() {
  try {
    return resolve_launch_environment().rank;
  } catch (const LaunchError&) {
    return {0};
  }
}

/// CLI11 takes "" for an optional number as if the option were not given.
void refuse_empty_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_expected_min() == 0) continue;
      option->check(CLI::Validator([](std::string& value) { return value.empty() ? "its value is empty" : ""; }, ""));
    }
  }
}

int fail(const std::exception& error, int code) {
  print_rank_error(error, rank_for_errors());
  return code;
}

int run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return kExitSuccess;
  } catch (const CLI::RuntimeError& done) {
    return done.get_exit_code();
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return fail(error, kExitUsage);
  }
}

int run(int argc, char** argv) {
  try {
    CLI::App app("Headway: LLM inference in which attention has a tensor-parallel group of its own", "headway");
    app.set_version_flag("--version", HEADWAY_VERSION);
    app.require_subcommand(1);
    add_bench_command(app);
    add_generate_command(app);
    add_batch_command(app);
    add_plan_command(app);
    add_verify_command(app);
    refuse_empty_values(app);
    return run(app, argc, argv);
  } catch (const std::exception& error) {
    return fail(error, exit_code_of(error));
  }
}

}  // namespace
}  // namespace headway

int main(int argc, char** argv) {
  return headway::run(argc, argv);
}
