#pragma once

#include <chrono>
#include <string>

namespace headway {

/// A bound TCP socket that does not listen yet; closed unless released.
class ListeningSocket {
 public:
  /// Any free port of the loopback interface.
  static ListeningSocket on_loopback();
  /// The given port: of the loopback interface if `host` means that one, else of all interfaces. Throws LaunchError
  /// naming host and port if it is taken.
  static ListeningSocket at(const std::string& host, int port);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int port() const { return port_; }
  int release();

 private:
  ListeningSocket(int descriptor, int port) : descriptor_(descriptor), port_(port) {}

  int descriptor_;
  int port_;
};

/// Tries every address of `host` until one accepts a connection. Throws LaunchError naming host, port and the last
/// reason when `limit` is over.
void wait_until_listening(const std::string& host, int port, std::chrono::milliseconds limit);

/// The address of this machine from which `host` is reached, in digits.
std::string local_address_towards(const std::string& host);

/// Whether this machine has a network interface of that name with an address.
bool has_interface(const std::string& name);

}  // namespace headway
