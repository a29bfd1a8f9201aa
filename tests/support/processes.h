#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace headway::test {

/// What one process of run_processes came to.
struct Outcome {
  std::string text;    ///< what its function returned, or "error: " and the message of the exception that left it
  int exit_code = -1;  ///< -1 if a signal ended it
  bool late = false;   ///< it was killed because the limit was over
  double seconds = 0;
};

/// Calls `body(rank)` in `count` processes forked from this one, which must have no other threads, and waits for them.
std::vector<Outcome> run_processes(int count, const std::function<std::string(int rank)>& body,
                                   std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace headway::test
