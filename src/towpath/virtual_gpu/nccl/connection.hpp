// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

// Connections of a network between ranks of one or several processes on this host, for one user.
// The receiver announces its buffers, and the sender fills them. Each connection is a Unix socket
// without a file, so that nothing stays behind. No call waits. A connection is used by one thread
// at a time.

namespace towpath::virtual_gpu {

inline constexpr int kReceivesMax = 8;  // buffers of a request

class Sender;
class Receiver;

// A message that is sent, or buffers that are filled.
struct NetworkRequest {
  Sender* sender;  // the connection, which is one of the two
  Receiver* receiver;
  int count;  // of buffers
  int left;   // of buffers that are not yet done
  std::array<int, kReceivesMax> sizes;
};

// The address of a listener, which the sender gets from the program.
struct NetworkAddress {
  std::uint16_t size_bytes;
  std::array<char, 30> socket_address;
};

class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  NetworkAddress address() const;
  // Null if no sender has come.
  std::unique_ptr<Receiver> accept();

 private:
  int socket_;
};

// The socket of a connection.
class Stream {
 public:
  explicit Stream(int socket) : socket_(socket) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Bytes that moved. None do after the other end is closed.
  std::size_t write(const void* bytes, std::size_t size_bytes);
  std::size_t read(void* bytes, std::size_t size_bytes);
  bool is_closed() const { return is_closed_; }

 private:
  std::size_t moved(ssize_t result);

  int socket_;
  bool is_closed_ = false;
};

// The buffers of a request, as the receiver announces them.
struct Announcement {
  int count;
  std::array<int, kReceivesMax> tags, sizes;
};

// The begin of a message.
struct MessageHeader {
  int buffer;  // of the oldest request that is not full
  int size_bytes;
};

class Sender {
 public:
  explicit Sender(int socket) : stream_(socket) {}
  // Null if the listener cannot take it now.
  static std::unique_ptr<Sender> connect(const NetworkAddress& address);

  // Null as long as the receiver has no buffer with this tag in its oldest request.
  NetworkRequest* send(const void* bytes, int size_bytes, int tag);
  void advance();
  bool is_closed() const { return stream_.is_closed(); }

 private:
  struct Message {
    MessageHeader header;
    const std::byte* bytes;
    std::size_t sent;  // of the header and the bytes
    NetworkRequest* request;
  };
  void read_announcements();

  Stream stream_;
  Announcement next_{};
  std::size_t next_read_ = 0;
  std::deque<Announcement> announced_;  // a tag is negative if its buffer is in use
  std::deque<Message> messages_;
};

class Receiver {
 public:
  explicit Receiver(int socket) : stream_(socket) {}

  NetworkRequest* receive(const Announcement& announcement, void* const* buffers);
  void advance();
  bool is_closed() const { return stream_.is_closed(); }

 private:
  struct Buffers {
    NetworkRequest* request;
    std::array<std::byte*, kReceivesMax> begin;
  };
  bool read_header();
  // False if the socket has no more bytes.
  bool read_data();

  Stream stream_;
  std::string unsent_;  // of announcements
  std::deque<Buffers> buffers_;
  MessageHeader header_{};
  std::size_t header_read_ = 0, data_read_ = 0;
};

}  // namespace towpath::virtual_gpu
