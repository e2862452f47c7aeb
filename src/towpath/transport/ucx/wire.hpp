// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "towpath/os/admission.hpp"
#include "towpath/os/keyed_digest.hpp"
#include "towpath/transport/ucx/ucp_library.hpp"

// Messages between the ranks of a job, over UCX's active messages: TCP, RDMA or shared memory. A
// message is a header and bytes. The receiver provides the destination of the bytes.

namespace towpath::transport::ucx {

enum class MessageKind : std::uint32_t {
  here,         // presence: the sender is ready, or was asked
  ask,          // request for presence
  put,          // bytes for the heap, then a signal
  query,        // request a notification when this number of puts is visible
  acknowledge,  // this number of puts is visible
  get,          // send these bytes of the heap
  reply,        // the bytes of a get
  left,         // the sender ends in good order
  failed,       // the sender gives up; the bytes are the reason
};

// A message's header. The key is derived from the job's token. Messages without it are ignored.
struct Header {
  os::KeyedDigest key{};
  MessageKind kind = MessageKind::put;
  std::int32_t source = 0;
  std::uint64_t number = 0;  // of a put among the puts to this peer; of a get; or a number of puts
  std::uint64_t after = 0;   // puts of the sender that are visible before this one
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t word = 0;  // of a signal
  std::uint64_t value = 0;
  std::int32_t culprit = -1;  // of a failure
  bool has_signal = false;
  bool adds = false;
};

// The bytes of a received message, until they are fetched.
class Incoming {
 public:
  const Header& header() const { return header_; }
  // True if the bytes came with the header. Otherwise they wait at the sender.
  bool is_here() const { return descriptor_ == nullptr; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  friend class Wire;
  Header header_;
  std::span<const std::byte> bytes_;
  std::vector<std::byte> kept_;
  void* descriptor_ = nullptr;
};

class Wire {
 public:
  struct Handlers {
    // A message of the job has arrived. It may be taken with receive(), now or later.
    std::function<void(Incoming& message)> arrived;
    // A peer is no longer reachable.
    std::function<void(int peer)> lost;
  };

  // `devices`: of UCX, "lo" or "eth0,mlx5_0:1"; empty for all. No process can connect by TCP before
  // admit(). Throws std::runtime_error on a UCX error.
  explicit Wire(const std::string& devices);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // This rank's address for others.
  std::vector<std::byte> address() const;
  // The number of interfaces at which UCX listens.
  std::size_t tcp_interfaces() const { return listeners_.size(); }
  // These hosts may connect by TCP, or all without a list.
  void admit(const std::optional<std::vector<os::Ipv4Address>>& hosts);
  // Enables sending and receiving.
  void connect(int rank, const std::vector<std::vector<std::byte>>& addresses,
               const os::KeyedDigest& key, Handlers handlers);

  // Calls `sent` once the bytes may be overwritten, possibly before it returns. Messages to a lost
  // peer are dropped.
  void send(int peer, Header header, std::span<const std::byte> bytes, std::function<void()> sent);
  // Copies a message's bytes to memory of their size and calls `done`, possibly before it returns.
  void receive(Incoming& message, std::byte* to, std::function<void()> done);
  // Keeps a message beyond `arrived`.
  Incoming keep(Incoming& message);

  // Returns true if a message was received or sent.
  bool progress();
  // True if all messages have left this process.
  bool is_flushed() const { return sending_ == 0; }
  // Closes the connections, healthy ones after their last message. Waits at most a second.
  void close();

 private:
  struct Sending;
  struct Receiving;
  struct Connection {
    Wire* wire = nullptr;
    int peer = 0;
    ucp_ep_h endpoint = nullptr;
    bool is_lost = false;
  };

  // Handles a received message, with its bytes or with a handle to fetch them.
  ucs_status_t take(const void* header, void* data, std::size_t size_bytes, bool waits_at_sender);
  static void on_sent(void* request, ucs_status_t status, void* sending);
  static void on_received(void* request, ucs_status_t status, std::size_t size_bytes,
                          void* receiving);
  static void on_error(void* connection, ucp_ep_h endpoint, ucs_status_t status);

  void find_listeners(const std::vector<os::TcpListener>& before);
  void connect_to(int peer, const std::vector<std::byte>& address);
  void lose(Connection& connection);

  const UcpLibrary& ucp_;
  const pid_t owner_ = ::getpid();
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<os::TcpListener> listeners_;  // of UCX
  os::KeyedDigest key_{};
  int rank_ = 0;
  Handlers handlers_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by rank; none to itself
  std::vector<Connection*> failed_;                       // not yet reported
  std::vector<std::function<void()>> sent_;               // not yet called
  std::uint64_t sending_ = 0;
  std::uint64_t events_ = 0;  // messages received or sent
  bool is_kept_ = false;      // the message being handled
};

}  // namespace towpath::transport::ucx
