#include "cli/errors.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "cli/terminal.h"

namespace headway {
namespace {

constexpr std::chrono::seconds kEchoOfAnotherRank{2};
constexpr std::chrono::seconds kEchoOfCommunication{3};

std::chrono::seconds holding_time(const std::exception& error, GlobalRank rank) {
  std::chrono::seconds time{0};
  if (rank.value != 0) time += kEchoOfAnotherRank;
  if (dynamic_cast<const CommunicationError*>(&error) != nullptr) time += kEchoOfCommunication;
  return time;
}

/// What happened, without the stack trace that torch appends.
std::string message_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  return dynamic_cast<const UsageError*>(&error) != nullptr ? kExitUsage : kExitFailure;
}

void print_error(const std::string& message) {
  const char* prefix = colours_on(STDERR_FILENO) ? "\x1b[1;31mheadway: error:\x1b[0m" : "headway: error:";
  write_line(STDERR_FILENO, fmt::format("{} {}", prefix, message));
}

void print_rank_error(const std::exception& error, GlobalRank rank) {
  std::this_thread::sleep_for(holding_time(error, rank));
  print_error(rank.value == 0 ? message_of(error) : fmt::format("rank {}: {}", rank.value, message_of(error)));
}

}  // namespace headway
