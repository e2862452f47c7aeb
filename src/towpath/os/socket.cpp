// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace towpath::os {
namespace {

constexpr std::size_t kDescriptorsMax = 2;

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Address {
  sockaddr_un value{};
  socklen_t size;

  // The leading zero byte makes the name abstract: no file, removed with the socket.
  explicit Address(const std::string& name)
      : size(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    value.sun_family = AF_UNIX;
    std::memcpy(value.sun_path + 1, name.data(), std::min(name.size(), kAddressLengthMax));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

FileDescriptor new_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) throw_system_error("cannot open a Unix socket");
  return socket;
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

}  // namespace

Deadline deadline_after(Time timeout) {
  // A bound of three months cannot overflow.
  const auto bound = std::min(timeout, Time::from_seconds(365.0 * 24 * 3600 / 4));
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(bound.ps() / 1000));
}

// Abstract addresses have no permissions, so the peer's user is checked.
bool is_same_user(const FileDescriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

Outcome wait_for(const FileDescriptor& socket, short events, Deadline deadline) {
  while (true) {
    pollfd entry{socket.number(), events, 0};
    const int ready = ::poll(&entry, 1, milliseconds_until(deadline));
    if (ready > 0) return Outcome::done;
    if (ready == 0 && Clock::now() >= deadline) return Outcome::late;
    if (ready < 0 && errno != EINTR) throw_system_error("cannot wait for a socket");
  }
}

FileDescriptor bind_to(const std::string& address) {
  FileDescriptor socket = new_socket();
  const Address at(address);
  if (::bind(socket.number(), at.get(), at.size) != 0) {
    if (errno == EADDRINUSE) return {};
    throw_system_error("cannot name a Unix socket");
  }
  return socket;
}

void listen_on(const FileDescriptor& socket) {
  if (::listen(socket.number(), SOMAXCONN) != 0) throw_system_error("cannot listen");
}

FileDescriptor listen_at(const std::string& address) {
  FileDescriptor listener = bind_to(address);
  if (listener.is_open()) listen_on(listener);
  return listener;
}

FileDescriptor connect_to(const std::string& address) {
  FileDescriptor socket = new_socket();
  const Address at(address);
  if (::connect(socket.number(), at.get(), at.size) != 0) {
    if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return {};
    throw_system_error("cannot connect a Unix socket");
  }
  return is_same_user(socket) ? std::move(socket) : FileDescriptor();
}

FileDescriptor accept_from(const FileDescriptor& listener) {
  FileDescriptor socket(
      ::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return socket.is_open() && is_same_user(socket) ? std::move(socket) : FileDescriptor();
}

Outcome send_message(const FileDescriptor& socket, const void* message, std::size_t size_bytes,
                     const std::vector<int>& descriptors, Deadline deadline) {
  iovec part{const_cast<void*>(message), size_bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))]{};
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), bytes);
  }
  while (::sendmsg(socket.number(), &header, MSG_NOSIGNAL) < 0) {
    if (errno == EAGAIN) {
      if (wait_for(socket, POLLOUT, deadline) == Outcome::late) return Outcome::late;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Outcome::closed;
    } else if (errno != EINTR) {
      throw_system_error("cannot send to a rank");
    }
  }
  return Outcome::done;
}

Outcome receive_message(const FileDescriptor& socket, void* message, std::size_t size_bytes,
                        std::vector<FileDescriptor>& descriptors, Deadline deadline) {
  iovec part{message, size_bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))]{};
  while (true) {
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    const ssize_t received = ::recvmsg(socket.number(), &header, MSG_CMSG_CLOEXEC);
    if (received >= 0) {
      for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; ++i) {
          int number;
          std::memcpy(&number, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
          descriptors.emplace_back(number);
        }
      }
      return static_cast<std::size_t>(received) == size_bytes ? Outcome::done : Outcome::closed;
    }
    // The peer closed with unread data from this side. Reported once, before the peer's data.
    if (errno == ECONNRESET) continue;
    if (errno != EAGAIN && errno != EINTR) throw_system_error("cannot receive from a rank");
    if (wait_for(socket, POLLIN, deadline) == Outcome::late) return Outcome::late;
  }
}

std::vector<std::size_t> wait_readable(const std::vector<const FileDescriptor*>& sockets,
                                       Deadline deadline) {
  std::vector<pollfd> entries;
  for (const FileDescriptor* socket : sockets) entries.push_back({socket->number(), POLLIN, 0});
  std::vector<std::size_t> readable;
  while (readable.empty()) {
    const int ready = ::poll(entries.data(), entries.size(), milliseconds_until(deadline));
    if (ready < 0 && errno != EINTR) throw_system_error("cannot wait for the ranks");
    if (ready <= 0 && Clock::now() >= deadline) break;
    for (std::size_t i = 0; ready > 0 && i < entries.size(); ++i) {
      if (entries[i].revents != 0) readable.push_back(i);
    }
  }
  return readable;
}

}  // namespace towpath::os
