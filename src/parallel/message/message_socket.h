#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headway {

/// A connected TCP socket. Errors are CommunicationErrors that say what went wrong, not with whom.
class MessageSocket {
 public:
  using Limit = std::optional<std::chrono::milliseconds>;  ///< nothing: none

  explicit MessageSocket(int descriptor) : descriptor_(descriptor) {}
  MessageSocket(MessageSocket&& other) noexcept;
  MessageSocket& operator=(MessageSocket&& other) noexcept;
  ~MessageSocket();

  /// Makes the connection fail within seconds, even if nothing is sent, once the other host is out of reach.
  void watch_the_other_host();

  void send(const void* data, size_t bytes, Limit limit);
  void receive(void* data, size_t bytes, Limit limit);
  /// Whether something can be received within `limit`.
  bool wait(Limit limit);
  /// Throws if the other side has closed the connection or is out of reach.
  void check();

 private:
  int descriptor_;
};

/// A listening TCP socket on any free port.
class MessageListener {
 public:
  MessageListener();
  MessageListener(const MessageListener&) = delete;
  MessageListener& operator=(const MessageListener&) = delete;
  ~MessageListener();

  int port() const { return port_; }
  /// The next connection, or nothing when `limit` is over.
  std::optional<MessageSocket> accept(std::chrono::milliseconds limit);

 private:
  int descriptor_;
  int port_;
};

/// The addresses, in digits, under which other hosts may reach this one, loopback last; those of one network interface
/// if `interface` is not empty. Throws CommunicationError if there are none.
std::vector<std::string> own_addresses(const std::string& interface);

/// A connection to an address in digits, or nothing if there was none within `limit`.
std::optional<MessageSocket> connect_to(const std::string& address, int port, std::chrono::milliseconds limit);

}  // namespace headway
