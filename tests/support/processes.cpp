#include "support/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace headway::test {
namespace {

using std::chrono::steady_clock;

struct Process {
  pid_t pid = -1;
  int output = -1;
};

[[noreturn]] void run_child(int rank, int output, const std::function<std::string(int)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string text;
  try {
    text = body(rank);
  } catch (const std::exception& error) {
    text = std::string("error: ") + error.what();
  }
  [[maybe_unused]] const ssize_t written = ::write(output, text.data(), text.size());
  ::_exit(0);
}

Process start(int rank, const std::function<std::string(int)>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) run_child(rank, ends[1], body);
  ::close(ends[1]);
  return {pid, ends[0]};
}

/// Reads until the process closes its end; kills it when the deadline is over.
Outcome finish(const Process& process, steady_clock::time_point begun, steady_clock::time_point deadline) {
  Outcome outcome;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    pollfd waiting{process.output, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left, 0))) == 0) {
      outcome.late = true;
      ::kill(process.pid, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t length = ::read(process.output, buffer, sizeof(buffer));
    if (length <= 0) break;
    outcome.text.append(buffer, static_cast<size_t>(length));
  }
  ::close(process.output);
  int status = 0;
  ::waitpid(process.pid, &status, 0);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  outcome.seconds = std::chrono::duration<double>(steady_clock::now() - begun).count();
  return outcome;
}

}  // namespace

std::vector<Outcome> run_processes(int count, const std::function<std::string(int)>& body, std::chrono::seconds limit) {
  const auto begun = steady_clock::now();
  std::vector<Process> processes;
  for (int rank = 0; rank < count; ++rank) processes.push_back(start(rank, body));
  std::vector<Outcome> outcomes;
  for (const Process& process : processes) outcomes.push_back(finish(process, begun, begun + limit));
  return outcomes;
}

}  // namespace headway::test
