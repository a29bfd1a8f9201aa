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
    add_generate_command(app);
    add_plan_command(app);
    add_verify_command(app);
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
