#include "parallel/store/store_opening.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "headway/base/error.h"
#include "parallel/launch/sockets.h"

namespace headway {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr char kLoopback[] = "127.0.0.1";
constexpr milliseconds kFilePause{5};

std::filesystem::path file_path(const LaunchEnvironment& launch) {
  if (!launch.store_file.empty()) return launch.store_file;
  std::string name = fmt::format("headway-{}-{}", ::geteuid(), launch.job_id);
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-' && letter != '.') letter = '_';
  }
  return std::filesystem::temp_directory_path() / name;
}

OpenedStore serve_by_file(const LaunchEnvironment& launch, milliseconds limit) {
  ListeningSocket socket = ListeningSocket::on_loopback();
  const int port = socket.port();
  auto store = JobStore::serve(std::move(socket), kLoopback, limit);
  return {std::move(store), "", std::make_unique<StoreFile>(file_path(launch), std::to_string(port))};
}

OpenedStore find_by_file(const LaunchEnvironment& launch, milliseconds limit) {
  const std::filesystem::path path = file_path(launch);
  const auto deadline = steady_clock::now() + limit;
  while (steady_clock::now() < deadline) {
    if (const auto port = StoreFile::read(path)) {
      return {JobStore::connect(kLoopback, std::stoi(*port), limit), "", nullptr};
    }
    std::this_thread::sleep_for(kFilePause);
  }
  throw LaunchError(
      fmt::format("rank {} of {} ({}) did not find rank 0 within {} ms: no rendezvous file {} appeared; ranks on "
                  "several hosts need MASTER_ADDR and MASTER_PORT",
                  launch.rank.value, launch.world_size, launch.source, limit.count(), path.string()));
}

std::shared_ptr<JobStore> store_at_address(const LaunchEnvironment& launch, milliseconds limit) {
  const std::string& host = launch.master_addr;
  const int port = *launch.master_port;
  if (launch.rank.value == 0 && !launch.agent_serves_store) {
    return JobStore::serve(ListeningSocket::at(host, port), host, limit);
  }
  try {
    return JobStore::connect(host, port, limit);
  } catch (const LaunchError& error) {
    throw LaunchError(fmt::format("rank {} of {} did not find {} at MASTER_ADDR, MASTER_PORT: {}", launch.rank.value,
                                  launch.world_size, launch.agent_serves_store ? "torchrun's store" : "rank 0",
                                  error.what()));
  }
}

/// The port is the job's for as long as the job runs, so the store stays open until the process ends; ranks that meet
/// again use other keys of the same store.
OpenedStore open_at_address(const LaunchEnvironment& launch, milliseconds limit) {
  struct Entry {
    std::shared_ptr<JobStore> store;
    int meetings = 0;
  };
  static std::mutex mutex;
  static auto* entries = new std::map<std::string, Entry>;
  const std::lock_guard lock(mutex);
  Entry& entry = (*entries)[fmt::format("{}:{}", launch.master_addr, *launch.master_port)];
  if (!entry.store) entry.store = store_at_address(launch, limit);
  return {entry.store, fmt::format("headway/{}/{}/", launch.job_id, entry.meetings++), nullptr};
}

}  // namespace

OpenedStore open_store(const LaunchEnvironment& launch, milliseconds limit) {
  if (!launch.master_addr.empty()) return open_at_address(launch, limit);
  return launch.rank.value == 0 ? serve_by_file(launch, limit) : find_by_file(launch, limit);
}

}  // namespace headway
