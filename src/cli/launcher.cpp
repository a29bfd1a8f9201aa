#include "cli/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/errors.h"
#include "cli/private_folder.h"
#include "parallel/launch/launch_variables.h"

namespace headway {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{2};
constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kSignalBase = 128;  // how shells report a death by signal

[[noreturn]] void throw_errno(const char* what) {
  throw LaunchError(fmt::format("{}: {}", what, std::strerror(errno)));
}

/// Blocks, for as long as it lives, the signals that the supervisor waits for.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGCHLD);
    for (int signal : kForwarded) sigaddset(&set_, signal);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }

  /// The next of them, or 0 when `limit` has passed.
  int wait(std::chrono::milliseconds limit) const {
    const timespec time{limit.count() / 1000, limit.count() % 1000 * 1000000};
    const int signal = sigtimedwait(&set_, nullptr, &time);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (arguments.empty()) throw LaunchError("/proc/self/cmdline cannot be read");
  return arguments;
}

/// This program with other arguments.
std::vector<std::string> with_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{own_arguments().front()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::vector<std::string> child_environment(GlobalRank rank, int ranks, const std::string& store_file) {
  const auto added = child_launch_variables(rank, ranks, store_file);
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  for (const auto& [name, value] : added) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

std::vector<char*> as_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Runs in the child between fork and exec: only async-signal-safe calls.
[[noreturn]] void become_rank(pid_t parent, const sigset_t& mask, char* const* arguments, char* const* environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kSignalBase + SIGKILL);  // it died before the kernel was asked to tell
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execve("/proc/self/exe", arguments, environment);
  _exit(kExitFailure);
}

struct Child {
  GlobalRank rank;
  pid_t pid = 0;
  bool running = true;
};

class Supervisor {
 public:
  /// `arguments` begin with the program's name.
  Supervisor(int ranks, std::vector<std::string> arguments, std::optional<std::chrono::seconds> limit = {})
      : arguments_(std::move(arguments)) {
    if (limit) time_limit_ = Clock::now() + *limit;
    for (int rank = 0; rank < ranks; ++rank) start({rank}, ranks);
  }

  ~Supervisor() {
    for (const Child& child : children_) {
      if (!child.running) continue;
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
  }

  int run() {
    while (any_running()) {
      const int signal = signals_.wait(patience());
      if (signal != 0 && signal != SIGCHLD) forward(signal);
      reap();
      if (time_limit_ && Clock::now() >= *time_limit_) run_out_of_time();
      if (deadline_ && Clock::now() >= *deadline_) signal_all(SIGKILL);
    }
    return exit_code_;
  }

 private:
  void start(GlobalRank rank, int ranks) {
    auto environment = child_environment(rank, ranks, (store_.path() / "store").string());
    const auto argument_pointers = as_pointers(arguments_);
    const auto environment_pointers = as_pointers(environment);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw_errno("fork");
    if (pid == 0) become_rank(parent, signals_.before(), argument_pointers.data(), environment_pointers.data());
    children_.push_back({rank, pid});
  }

  bool any_running() const {
    return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running; });
  }

  std::chrono::milliseconds patience() const {
    if (!deadline_ && !time_limit_) return std::chrono::hours(1);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>((deadline_ ? *deadline_ : *time_limit_) - Clock::now());
    return std::clamp(left, std::chrono::milliseconds(1), std::chrono::milliseconds(100));
  }

  void reap() {
    for (Child& child : children_) {
      int status = 0;
      if (!child.running || waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
      child.running = false;
      if (status != 0) fail(child, status);
    }
  }

  /// Only the first failure counts: the others follow from it or from our ending them.
  void fail(const Child& child, int status) {
    if (deadline_) return;
    exit_code_ = WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status)) report_signal(child, WTERMSIG(status));
    end_all();
  }

  void run_out_of_time() {
    if (deadline_) return;
    exit_code_ = kExitFailure;
    print_error("the ranks have not ended within their time limit; ending them");
    end_all();
  }

  void end_all() {
    signal_all(SIGTERM);
    deadline_ = Clock::now() + kGrace;
  }

  void report_signal(const Child& child, int signal) const {
    if (signal == asked_to_end_ || signal == SIGPIPE) return;  // no news to whoever sent it or closed the pipe
    print_error(fmt::format("rank {} (process {}) was ended by signal {} ({}); ending the other ranks",
                            child.rank.value, child.pid, signal, strsignal(signal)));
  }

  void forward(int signal) {
    asked_to_end_ = signal;
    signal_all(signal);
  }

  void signal_all(int signal) const {
    for (const Child& child : children_) {
      if (child.running) kill(child.pid, signal);
    }
  }

  BlockedSignals signals_;
  PrivateFolder store_;  ///< for the file by which the ranks find each other
  std::vector<std::string> arguments_;
  std::vector<Child> children_;
  std::optional<Clock::time_point> time_limit_;  ///< when ranks that still run are ended
  std::optional<Clock::time_point> deadline_;    ///< when ranks that linger after a failure are killed
  int asked_to_end_ = 0;                         ///< the signal that was passed on
  int exit_code_ = kExitSuccess;
};

}  // namespace

void remove_store_folder(const LaunchEnvironment& launch) {
  if (launch.source != "headway" || launch.rank.value != 0) return;
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::path(launch.store_file).parent_path(), ignored);
}

int run_ranks(int ranks) {
  return Supervisor(ranks, own_arguments()).run();
}

int run_ranks(int ranks, const std::vector<std::string>& arguments, std::chrono::seconds limit) {
  return Supervisor(ranks, with_arguments(arguments), limit).run();
}

}  // namespace headway
