#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace c10d {
class Store;
}

namespace headway {

class ListeningSocket;
using Deadline = std::chrono::steady_clock::time_point;

/// Keys and values that all ranks of a job share. One rank, or torchrun's agent, serves it over TCP. Calls throw
/// LaunchError naming the address if the server is gone or does not answer.
class JobStore {
 public:
  /// Serves a store on `socket` and connects to it at `host`.
  static std::shared_ptr<JobStore> serve(ListeningSocket socket, const std::string& host,
                                         std::chrono::milliseconds limit);
  /// Connects to a store that is served elsewhere; waits for it to appear.
  static std::shared_ptr<JobStore> connect(const std::string& host, int port, std::chrono::milliseconds limit);

  JobStore(c10::intrusive_ptr<c10d::Store> store, std::string address, bool serves, std::chrono::milliseconds limit);
  ~JobStore();

  void set(const std::string& key, const std::string& value);
  bool has(const std::string& key);
  std::string get(const std::string& key);  ///< the key must have been set
  int64_t add(const std::string& key, int64_t amount);
  /// Whether the key was set before the deadline.
  bool wait(const std::string& key, Deadline deadline);

  const std::string& address() const { return address_; }  ///< host:port
  bool serves() const { return serves_; }                  ///< whether it ends with this process
  const c10::intrusive_ptr<c10d::Store>& c10d() const { return store_; }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  std::string address_;
  bool serves_;
  std::chrono::milliseconds limit_;  ///< of each call
};

}  // namespace headway
