#include "parallel/store/job_store.h"

#include <c10/util/Flags.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "headway/base/error.h"
#include "parallel/launch/sockets.h"
#include "parallel/store/limited_call.h"

C10_DECLARE_int(caffe2_log_level);

namespace headway {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestPause{1};
constexpr milliseconds kLongestPause{20};

/// Keeps torch from writing a stack trace for what we report in our own words.
class QuietTorchLog {
 public:
  QuietTorchLog() : level_(std::exchange(FLAGS_caffe2_log_level, kErrorsOnly)) {}
  ~QuietTorchLog() { FLAGS_caffe2_log_level = level_; }

 private:
  static constexpr int kErrorsOnly = 2;
  int level_;
};

/// Calls the store, which has no limits of its own for some calls, and turns its errors into ours. `call` must own all
/// that it uses.
template <typename Call>
auto guarded(const std::string& address, milliseconds limit, Call call) {
  const QuietTorchLog quiet;
  try {
    auto result = call_within(limit, std::move(call));
    if (result) return *std::move(result);
  } catch (const c10::Error& error) {
    throw LaunchError(fmt::format("the store of the job at {}: {}", address, error.what_without_backtrace()));
  } catch (const std::exception& error) {
    throw LaunchError(fmt::format("the store of the job at {}: {}", address, error.what()));
  }
  throw LaunchError(fmt::format("the store of the job at {} did not answer within {} ms", address, limit.count()));
}

c10d::TCPStoreOptions options_for(int port, milliseconds limit) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.waitWorkers = false;
  options.timeout = std::max(limit, milliseconds(1000));  // c10d counts connection limits in whole seconds
  return options;
}

std::shared_ptr<JobStore> open_store(const std::string& host, const c10d::TCPStoreOptions& options,
                                     milliseconds limit) {
  const std::string address = fmt::format("{}:{}", host, options.port);
  auto store = guarded(address, limit, [=] { return c10::make_intrusive<c10d::TCPStore>(host, options); });
  return std::make_shared<JobStore>(std::move(store), address, options.isServer, limit);
}

}  // namespace

std::shared_ptr<JobStore> JobStore::serve(ListeningSocket socket, const std::string& host, milliseconds limit) {
  c10d::TCPStoreOptions options = options_for(socket.port(), limit);
  options.isServer = true;
  options.masterListenFd = socket.release();
  return open_store(host, options, limit);
}

std::shared_ptr<JobStore> JobStore::connect(const std::string& host, int port, milliseconds limit) {
  wait_until_listening(host, port, limit);
  return open_store(host, options_for(port, limit), limit);
}

JobStore::JobStore(c10::intrusive_ptr<c10d::Store> store, std::string address, bool serves, milliseconds limit)
    : store_(std::move(store)), address_(std::move(address)), serves_(serves), limit_(limit) {}

JobStore::~JobStore() = default;

void JobStore::set(const std::string& key, const std::string& value) {
  guarded(address_, limit_, [store = store_, key, value] {
    store->set(key, value);
    return true;
  });
}

bool JobStore::has(const std::string& key) {
  return guarded(address_, limit_, [store = store_, key] { return store->check({key}); });
}

std::string JobStore::get(const std::string& key) {
  return guarded(address_, limit_, [store = store_, key] { return store->get_to_str(key); });
}

int64_t JobStore::add(const std::string& key, int64_t amount) {
  return guarded(address_, limit_, [store = store_, key, amount] { return store->add(key, amount); });
}

bool JobStore::wait(const std::string& key, Deadline deadline) {
  for (milliseconds pause = kShortestPause; !has(key); pause = std::min(2 * pause, kLongestPause)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace headway
