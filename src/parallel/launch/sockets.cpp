#include "parallel/launch/sockets.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "headway/base/error.h"
#include "parallel/store/limited_call.h"

namespace headway {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kRetryPause{20};
constexpr milliseconds kResolveLimit{10000};

struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// The addresses of `host`, or the reason why there are none. Name servers may take longer than `limit`.
AddressList resolve(const std::string& host, int port, milliseconds limit, std::string& reason) {
  int code = EAI_AGAIN;
  auto found = call_within(limit, [host, port]() -> std::pair<int, addrinfo*> {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* addresses = nullptr;
    const int result = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses);
    return {result, result == 0 ? addresses : nullptr};
  });
  if (found) code = found->first;
  if (code != 0) reason = ::gai_strerror(code);
  return {found ? found->second : nullptr, &::freeaddrinfo};
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

int port_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

int bound_socket(const sockaddr* address, socklen_t length) {
  const int descriptor = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  const int on = 1;
  const int off = 0;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->sa_family == AF_INET6) ::setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(descriptor, address, length) == 0) return descriptor;
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  return -1;
}

/// Binds to the port on all interfaces, of both address families where the machine has both.
int bound_to_all_interfaces(int port) {
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  const int descriptor = bound_socket(reinterpret_cast<sockaddr*>(&any6), sizeof(any6));
  if (descriptor >= 0 || errno == EADDRINUSE) return descriptor;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(static_cast<uint16_t>(port));
  return bound_socket(reinterpret_cast<sockaddr*>(&any4), sizeof(any4));
}

/// Whether a connection to the address is accepted within `limit`; `reason` says why not.
bool accepts(const addrinfo& address, milliseconds limit, std::string& reason) {
  const Descriptor descriptor{::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  int error = 0;
  if (descriptor.value < 0) {
    error = errno;
  } else if (::connect(descriptor.value, address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
    pollfd waiting{descriptor.value, POLLOUT, 0};
    if (error == EINPROGRESS) {
      socklen_t length = sizeof(error);
      error = ETIMEDOUT;
      if (::poll(&waiting, 1, static_cast<int>(limit.count())) == 1) {
        ::getsockopt(descriptor.value, SOL_SOCKET, SO_ERROR, &error, &length);
      }
    }
  }
  if (error != 0) reason = std::strerror(error);
  return error == 0;
}

}  // namespace

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), port_(other.port_) {}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int ListeningSocket::release() {
  return std::exchange(descriptor_, -1);
}

ListeningSocket ListeningSocket::on_loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = bound_socket(reinterpret_cast<sockaddr*>(&address), sizeof(address));
  if (descriptor < 0) throw LaunchError(fmt::format("no port of 127.0.0.1 can be bound: {}", std::strerror(errno)));
  return {descriptor, port_of(descriptor)};
}

ListeningSocket ListeningSocket::at(const std::string& host, int port) {
  std::string reason;
  const AddressList addresses = resolve(host, port, kResolveLimit, reason);
  if (!addresses) throw LaunchError(fmt::format("MASTER_ADDR={} cannot be resolved: {}", host, reason));
  const int descriptor = is_loopback(addresses->ai_addr) ? bound_socket(addresses->ai_addr, addresses->ai_addrlen)
                                                         : bound_to_all_interfaces(port);
  if (descriptor < 0) {
    throw LaunchError(
        fmt::format("rank 0 cannot listen at {}:{} (MASTER_ADDR, MASTER_PORT): {}", host, port, std::strerror(errno)));
  }
  return {descriptor, port};
}

void wait_until_listening(const std::string& host, int port, milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  std::string reason;
  const auto left = [&] {
    return std::max(std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()), kRetryPause);
  };
  while (true) {
    const AddressList addresses = resolve(host, port, left(), reason);
    for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
      if (accepts(*address, left(), reason)) return;
    }
    if (steady_clock::now() + kRetryPause >= deadline) break;
    std::this_thread::sleep_for(kRetryPause);
  }
  throw LaunchError(fmt::format("{}:{} accepted no connection within {} ms: {}", host, port, limit.count(), reason));
}

std::string local_address_towards(const std::string& host) {
  constexpr int kAnyPort = 9;  // nothing is sent: connecting a datagram socket only picks the route
  std::string reason;
  const AddressList addresses = resolve(host, kAnyPort, kResolveLimit, reason);
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    const Descriptor descriptor{::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    if (descriptor.value < 0 || ::connect(descriptor.value, address->ai_addr, address->ai_addrlen) != 0) {
      reason = std::strerror(errno);
      continue;
    }
    sockaddr_storage local{};
    socklen_t length = sizeof(local);
    char digits[NI_MAXHOST];
    ::getsockname(descriptor.value, reinterpret_cast<sockaddr*>(&local), &length);
    if (::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, digits, sizeof(digits), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      return digits;
    }
  }
  throw LaunchError(fmt::format("there is no route to MASTER_ADDR={}: {}", host, reason));
}

bool has_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* entry = list; entry && !found; entry = entry->ifa_next) {
    const bool internet =
        entry->ifa_addr && (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6);
    found = internet && name == entry->ifa_name && (entry->ifa_flags & IFF_UP);
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace headway
