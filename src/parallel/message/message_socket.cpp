#include "parallel/message/message_socket.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "headway/base/error.h"

namespace headway {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

[[noreturn]] void throw_error(int code) {
  throw CommunicationError(std::strerror(code));
}

/// Waits for the events; false when `limit` is over.
bool poll_for(int descriptor, short events, MessageSocket::Limit limit) {
  const auto deadline = Clock::now() + limit.value_or(milliseconds{0});
  while (true) {
    pollfd waiting{descriptor, events, 0};
    int left = -1;
    if (limit) left = std::max<int>(0, std::chrono::ceil<milliseconds>(deadline - Clock::now()).count());
    const int ready = ::poll(&waiting, 1, left);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw_error(errno);
  }
}

void set_option(int descriptor, int level, int option, int value) {
  ::setsockopt(descriptor, level, option, &value, sizeof(value));
}

/// Moves all bytes by calls of `move`, which returns what ::send and ::recv return.
template <typename Move>
void move_all(int descriptor, short events, size_t bytes, MessageSocket::Limit limit, const Move& move) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t moved = move(done);
    if (moved > 0) {
      done += moved;
    } else if (moved == 0) {
      throw CommunicationError("the connection was closed");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!poll_for(descriptor, events, limit)) {
        throw CommunicationError(fmt::format("nothing moved for {} ms", limit->count()));
      }
    } else if (errno != EINTR) {
      throw_error(errno);
    }
  }
}

bool is_usable(const ifaddrs& entry, const std::string& interface) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return false;
  if (!interface.empty() && interface != entry.ifa_name) return false;
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  return entry.ifa_addr->sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

std::string in_digits(const sockaddr* address) {
  char text[NI_MAXHOST] = "";
  const socklen_t length = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  ::getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

MessageSocket::MessageSocket(MessageSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

MessageSocket& MessageSocket::operator=(MessageSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

MessageSocket::~MessageSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MessageSocket::watch_the_other_host() {
  set_option(descriptor_, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor_, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor_, IPPROTO_TCP, TCP_KEEPIDLE, 2);         // seconds without traffic before asking
  set_option(descriptor_, IPPROTO_TCP, TCP_KEEPINTVL, 2);        // seconds between questions
  set_option(descriptor_, IPPROTO_TCP, TCP_KEEPCNT, 2);          // questions without an answer
  set_option(descriptor_, IPPROTO_TCP, TCP_USER_TIMEOUT, 6000);  // milliseconds with unanswered data
}

void MessageSocket::send(const void* data, size_t bytes, Limit limit) {
  move_all(descriptor_, POLLOUT, bytes, limit, [&](size_t done) {
    return ::send(descriptor_, static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

void MessageSocket::receive(void* data, size_t bytes, Limit limit) {
  move_all(descriptor_, POLLIN, bytes, limit, [&](size_t done) {
    return ::recv(descriptor_, static_cast<char*>(data) + done, bytes - done, MSG_DONTWAIT);
  });
}

bool MessageSocket::wait(Limit limit) {
  return poll_for(descriptor_, POLLIN, limit);
}

void MessageSocket::check() {
  char byte = 0;
  const ssize_t seen = ::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (seen == 0) throw CommunicationError("the connection was closed");
  if (seen < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) throw_error(errno);
}

MessageListener::MessageListener() : descriptor_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_storage any{};
  socklen_t length = sizeof(sockaddr_in6);
  if (descriptor_ >= 0) {
    set_option(descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    any.ss_family = AF_INET6;
  } else {  // a machine without IPv6
    descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    any.ss_family = AF_INET;
    length = sizeof(sockaddr_in);
  }
  if (descriptor_ < 0) throw_error(errno);
  auto* address = reinterpret_cast<sockaddr*>(&any);
  if (::bind(descriptor_, address, length) != 0 || ::listen(descriptor_, SOMAXCONN) != 0 ||
      ::getsockname(descriptor_, address, &length) != 0) {
    const int code = errno;
    ::close(descriptor_);
    throw_error(code);
  }
  port_ = ntohs(any.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&any)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&any)->sin_port);
}

MessageListener::~MessageListener() {
  ::close(descriptor_);
}

std::optional<MessageSocket> MessageListener::accept(milliseconds limit) {
  if (!poll_for(descriptor_, POLLIN, limit)) return std::nullopt;
  const int connection = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0) return std::nullopt;
  return MessageSocket(connection);
}

std::vector<std::string> own_addresses(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw_error(errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<std::string> outer;
  std::vector<std::string> loopback;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!is_usable(*entry, interface)) continue;
    (entry->ifa_flags & IFF_LOOPBACK ? loopback : outer).push_back(in_digits(entry->ifa_addr));
  }
  outer.insert(outer.end(), loopback.begin(), loopback.end());
  if (outer.empty()) {
    throw CommunicationError(interface.empty() ? "this host has no network address"
                                               : fmt::format("network interface '{}' has no address", interface));
  }
  return outer;
}

std::optional<MessageSocket> connect_to(const std::string& address, int port, milliseconds limit) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const int descriptor = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return std::nullopt;
  MessageSocket socket(descriptor);
  if (::connect(descriptor, found->ai_addr, found->ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS || !poll_for(descriptor, POLLOUT, limit)) return std::nullopt;
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return std::nullopt;
  return socket;
}

}  // namespace headway
