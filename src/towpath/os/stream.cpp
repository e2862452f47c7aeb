// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/stream.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace towpath::os {
namespace {

constexpr int kOn = 1;
constexpr std::chrono::seconds kAttempt{1};

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A socket address in the system's format.
struct Place {
  sockaddr_storage value{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

Place abstract_place(const std::string& name) {
  if (name.size() > kAddressLengthMax) {
    throw std::invalid_argument(
        fmt::format("the address \"{}\" has {} bytes; it must have at most {}", name, name.size(),
                    kAddressLengthMax));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The leading zero byte makes the name abstract: no file, removed with the socket.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  Place place;
  place.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  std::memcpy(&place.value, &address, sizeof(address));
  return place;
}

std::vector<Place> network_places(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (status != 0) {
    throw std::invalid_argument(
        fmt::format("\"{}\" is not an address: {}", address, ::gai_strerror(status)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<Place> places;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Place place;
    place.size = each->ai_addrlen;
    std::memcpy(&place.value, each->ai_addr, each->ai_addrlen);
    places.push_back(place);
  }
  return places;
}

// At least one address.
std::vector<Place> places_of(const std::string& address) {
  if (is_network_address(address)) return network_places(address);
  return {abstract_place(address)};
}

FileDescriptor new_stream(const Place& place) {
  const int family = place.value.ss_family;
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) throw_system_error("cannot open a socket");
  if (family != AF_UNIX) {
    ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof(kOn));
  }
  return socket;
}

bool is_trusted(const FileDescriptor& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return false;
  return own.ss_family != AF_UNIX || is_same_user(socket);
}

FileDescriptor connect_to(const Place& place, Deadline deadline) {
  FileDescriptor socket = new_stream(place);
  if (::connect(socket.number(), place.get(), place.size) != 0) {
    if (errno != EINPROGRESS) return {};
    if (wait_for(socket, POLLOUT, deadline) != Outcome::done) return {};
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return {};
  }
  return is_trusted(socket) ? std::move(socket) : FileDescriptor();
}

bool has_same_host(const sockaddr& one, const sockaddr& other) {
  if (one.sa_family != other.sa_family) return false;
  if (one.sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(one).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr;
  }
  return one.sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6&>(one).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(other).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

}  // namespace

bool is_network_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return false;
  return std::all_of(address.begin() + static_cast<std::ptrdiff_t>(colon) + 1, address.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

FileDescriptor listen_stream(const std::string& address) {
  const Place place = places_of(address).front();
  FileDescriptor socket = new_stream(place);
  if (place.value.ss_family != AF_UNIX) {
    ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof(kOn));
  }
  if (::bind(socket.number(), place.get(), place.size) != 0 ||
      ::listen(socket.number(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE) return {};
    if (errno == EADDRNOTAVAIL) {
      throw std::invalid_argument(fmt::format("'{}' is not an address of this host", address));
    }
    throw_system_error(fmt::format("cannot listen at \"{}\"", address));
  }
  return socket;
}

FileDescriptor listen_anywhere(const std::string& host, std::string& address) {
  const bool is_bare_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  const std::string named = is_bare_ipv6 ? fmt::format("[{}]", host) : host;
  FileDescriptor socket = listen_stream(named + ":0");
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (!socket.is_open() ||
      ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    throw_system_error(fmt::format("cannot listen on \"{}\"", host));
  }
  // The port has the same offset in both families.
  address = fmt::format("{}:{}", named, ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port));
  return socket;
}

FileDescriptor connect_stream(const std::string& address, Deadline deadline) {
  for (const Place& place : places_of(address)) {
    // Bounds each attempt, so that an unresponsive address blocks neither the next one nor the
    // caller, which retries.
    const Deadline soon = std::min(deadline, Clock::now() + kAttempt);
    FileDescriptor socket = connect_to(place, soon);
    if (socket.is_open()) return socket;
  }
  return {};
}
FileDescriptor accept_stream(const FileDescriptor& listener) {
  FileDescriptor socket(
      ::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open() || !is_trusted(socket)) return {};
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof(kOn));
  return socket;
}

// The system chooses the local address of a datagram socket without sending anything.
std::string interface_towards(const std::string& address) {
  const Place there = network_places(address).front();
  const FileDescriptor socket(::socket(there.value.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Place here;
  here.size = sizeof(here.value);
  ifaddrs* list = nullptr;
  if (!socket.is_open() || ::connect(socket.number(), there.get(), there.size) != 0 ||
      ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&here.value), &here.size) != 0 ||
      ::getifaddrs(&list) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && has_same_host(*entry->ifa_addr, *here.get())) {
      return entry->ifa_name;
    }
  }
  return {};
}

Outcome send_bytes(const FileDescriptor& socket, std::span<const std::byte> bytes,
                   Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (wait_for(socket, POLLOUT, deadline) == Outcome::late) return Outcome::late;
    } else if (errno != EINTR) {
      return Outcome::closed;
    }
  }
  return Outcome::done;
}

Outcome receive_bytes(const FileDescriptor& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket.number(), bytes.data(), bytes.size(), 0);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(received));
    } else if (received < 0 && errno == EAGAIN) {
      if (wait_for(socket, POLLIN, deadline) == Outcome::late) return Outcome::late;
    } else if (received == 0 || errno != EINTR) {
      return Outcome::closed;
    }
  }
  return Outcome::done;
}

}  // namespace towpath::os
