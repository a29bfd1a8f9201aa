#pragma once

#include <exception>
#include <string>

#include "headway/base/error.h"
#include "headway/parallel/ranks.h"

namespace headway {

enum ExitCode { kExitSuccess = 0, kExitFailure = 1, kExitUsage = 2 };

/// Options or a prompt that cannot be served: nothing that a second try would change.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Calls `check`; what it refuses (ConfigError, ArgumentError) becomes a UsageError.
template <typename Check>
auto as_usage(const Check& check) {
  try {
    return check();
  } catch (const ConfigError& error) {
    throw UsageError(error.what());
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
}

/// The exit code that tells of `error`.
ExitCode exit_code_of(const std::exception& error);

/// Prints "headway: error: ..." to standard error, in colour on a terminal.
void print_error(const std::string& message);

/// Prints the error of one of several ranks so that a job says once what went wrong. Errors that are probably echoes
/// are held back, long enough for the launcher to end this process if the cause is known already: those of ranks
/// other than 0, which usually fail alike, and broken communication, which follows from another rank's failure.
void print_rank_error(const std::exception& error, GlobalRank rank);

}  // namespace headway
