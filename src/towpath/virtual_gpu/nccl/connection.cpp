// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/nccl/connection.hpp"

#include <errno.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

constexpr int kBacklog = 4096;
constexpr int kInUse = -1;
constexpr std::size_t kPartBytes = std::size_t{64} << 10;

int new_socket() {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) {
    stop(std::string("a connection of the network has no socket: ") + strerror(errno) +
         "; raise the limit of open files (ulimit -n)");
  }
  return made;
}

// Other users of this host may connect to a socket without a file.
bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

// Stores words in the order of their addresses. Kernels poll the last word of a line, and read the
// others after it.
void store_in_order(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  const auto byte_by_byte = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) *static_cast<volatile std::byte*>(to++) = *from++;
    size_bytes -= count;
  };
  byte_by_byte(std::min(size_bytes, (8 - reinterpret_cast<std::uintptr_t>(to) % 8) % 8));
  for (; size_bytes >= 8; to += 8, from += 8, size_bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    *reinterpret_cast<volatile std::uint64_t*>(to) = word;
  }
  byte_by_byte(size_bytes);
}

}  // namespace

// --- sockets ------------------------------------------------------------------------------------

Listener::Listener() : socket_(new_socket()) {
  // The system gives a name without a file to a socket that is bound to no name.
  const sa_family_t family = AF_UNIX;
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&family), sizeof family) != 0 ||
      listen(socket_, kBacklog) != 0) {
    stop(std::string("a listener of the network has no address: ") + strerror(errno));
  }
}

Listener::~Listener() { close(socket_); }

NetworkAddress Listener::address() const {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  NetworkAddress address{};
  if (getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &size) != 0 ||
      size > address.socket_address.size()) {
    stop("a listener of the network has no address");
  }
  address.size_bytes = static_cast<std::uint16_t>(size);
  std::memcpy(address.socket_address.data(), &name, size);
  return address;
}

std::unique_ptr<Receiver> Listener::accept() {
  const int made = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (made < 0) return nullptr;
  if (is_of_this_user(made)) return std::make_unique<Receiver>(made);
  close(made);
  return nullptr;
}

Stream::~Stream() { close(socket_); }

std::size_t Stream::moved(ssize_t result) {
  if (result > 0) return static_cast<std::size_t>(result);
  const bool is_later = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (!is_later) is_closed_ = true;
  return 0;
}

std::size_t Stream::write(const void* bytes, std::size_t size_bytes) {
  if (size_bytes == 0) return 0;
  return moved(::send(socket_, bytes, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT));
}

std::size_t Stream::read(void* bytes, std::size_t size_bytes) {
  if (size_bytes == 0) return 0;
  return moved(::read(socket_, bytes, size_bytes));
}

// --- messages -----------------------------------------------------------------------------------

std::unique_ptr<Sender> Sender::connect(const NetworkAddress& address) {
  const int made = new_socket();
  const auto* const name = reinterpret_cast<const sockaddr*>(address.socket_address.data());
  if (::connect(made, name, address.size_bytes) == 0) {
    if (is_of_this_user(made)) return std::make_unique<Sender>(made);
    stop("a listener of the network belongs to another user");
  }
  const bool is_later = errno == EAGAIN || errno == EINTR;
  close(made);
  if (is_later) return nullptr;
  stop(std::string("the network cannot connect to a rank: ") + strerror(errno) +
       "; its process has ended");
}

void Sender::read_announcements() {
  auto* const bytes = reinterpret_cast<std::byte*>(&next_);
  for (;;) {
    const std::size_t moved = stream_.read(bytes + next_read_, sizeof next_ - next_read_);
    if (moved == 0) return;
    next_read_ += moved;
    if (next_read_ < sizeof next_) continue;
    announced_.push_back(next_);
    next_read_ = 0;
  }
}

NetworkRequest* Sender::send(const void* bytes, int size_bytes, int tag) {
  read_announcements();
  if (announced_.empty()) return nullptr;
  Announcement& oldest = announced_.front();
  const auto begin = oldest.tags.begin();
  const auto found = std::find(begin, begin + oldest.count, tag);
  if (found == begin + oldest.count) return nullptr;
  const auto buffer = static_cast<int>(found - begin);
  const int size = std::min(size_bytes, oldest.sizes[static_cast<std::size_t>(buffer)]);
  *found = kInUse;
  if (std::all_of(begin, begin + oldest.count, [](int each) { return each == kInUse; })) {
    announced_.pop_front();
  }
  auto* const request = new NetworkRequest{this, nullptr, 1, 1, {size}};
  messages_.push_back({{buffer, size}, static_cast<const std::byte*>(bytes), 0, request});
  advance();
  return request;
}

void Sender::advance() {
  while (!messages_.empty()) {
    Message& oldest = messages_.front();
    const auto* const header = reinterpret_cast<const std::byte*>(&oldest.header);
    constexpr std::size_t kHeaderBytes = sizeof oldest.header;
    const std::size_t all = kHeaderBytes + static_cast<std::size_t>(oldest.header.size_bytes);
    const bool is_header = oldest.sent < kHeaderBytes;
    const std::size_t moved =
        is_header ? stream_.write(header + oldest.sent, kHeaderBytes - oldest.sent)
                  : stream_.write(oldest.bytes + oldest.sent - kHeaderBytes, all - oldest.sent);
    oldest.sent += moved;
    if (oldest.sent == all) {
      oldest.request->left = 0;
      messages_.pop_front();
    } else if (moved == 0) {
      return;
    }
  }
}

NetworkRequest* Receiver::receive(const Announcement& announcement, void* const* buffers) {
  auto* const request =
      new NetworkRequest{nullptr, this, announcement.count, announcement.count, announcement.sizes};
  Buffers made{request, {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(announcement.count); ++i) {
    made.begin[i] = static_cast<std::byte*>(buffers[i]);
  }
  buffers_.push_back(made);
  unsent_.append(reinterpret_cast<const char*>(&announcement), sizeof announcement);
  advance();
  return request;
}

bool Receiver::read_header() {
  auto* const bytes = reinterpret_cast<std::byte*>(&header_);
  header_read_ += stream_.read(bytes + header_read_, sizeof header_ - header_read_);
  return header_read_ == sizeof header_;
}

bool Receiver::read_data() {
  Buffers& oldest = buffers_.front();
  const auto buffer = static_cast<std::size_t>(header_.buffer);
  const auto size = static_cast<std::size_t>(header_.size_bytes);
  while (data_read_ < size) {
    std::array<std::byte, kPartBytes> part;
    const std::size_t moved = stream_.read(part.data(), std::min(kPartBytes, size - data_read_));
    if (moved == 0) return false;
    store_in_order(oldest.begin[buffer] + data_read_, part.data(), moved);
    data_read_ += moved;
  }
  header_read_ = data_read_ = 0;
  oldest.request->sizes[buffer] = header_.size_bytes;
  if (--oldest.request->left == 0) buffers_.pop_front();
  return true;
}

void Receiver::advance() {
  unsent_.erase(0, stream_.write(unsent_.data(), unsent_.size()));
  while (!buffers_.empty() && read_header() && read_data()) {
  }
}

}  // namespace towpath::virtual_gpu
