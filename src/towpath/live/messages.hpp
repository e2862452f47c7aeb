// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <vector>

#include "towpath/live/call.hpp"
#include "towpath/live/channels.hpp"

// Messages with tags from rank to rank: the requests of kind send and receive.
//
// Messages of the same sender and tag are received in the order in which they were sent. A message
// that arrives before its receive is kept in memory of this process, so that it delays no other.

namespace towpath::live {

class Messages {
 public:
  // `ended` is called with each call that has completed or failed.
  Messages(Channels& channels, std::function<void(const CallPointer&)> ended);

  void post(const CallPointer& call);
  // True if any data moved.
  bool advance();
  // The calls that have not ended.
  std::vector<CallPointer> pending() const;
  // Removes a call. False if part of its message has already moved.
  bool cancel(const CallPointer& call);
  bool is_idle() const { return pending_ == 0; }

 private:
  struct Head {
    std::uint64_t tag;
    std::uint64_t size_bytes;
  };
  struct Sending {
    CallPointer call;
    std::uint64_t sent = 0;
    bool has_begun = false;
  };
  // A message that has begun to arrive: into the memory of a receive, or kept until there is one.
  struct Incoming {
    int source = transport::kNoPeer;
    std::uint64_t tag = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t arrived = 0;
    CallPointer receive;
    std::vector<std::byte> kept;
  };
  using IncomingPointer = std::shared_ptr<Incoming>;

  bool send_to(int peer);
  bool receive_from(int peer);
  void begin_incoming(int peer, const std::byte* head);
  void attach(const IncomingPointer& incoming, const CallPointer& call);
  void take(int peer, const std::byte* chunk);
  void finish(const CallPointer& call);
  void settle(const IncomingPointer& incoming);

  Channels& channels_;
  std::function<void(const CallPointer&)> ended_;
  std::vector<std::deque<Sending>> sending_;  // by rank
  std::vector<IncomingPointer> incoming_;     // by rank, or null
  std::list<IncomingPointer> unexpected_;     // without a receive, oldest first
  std::list<CallPointer> receives_;           // without a message, oldest first
  std::size_t pending_ = 0;
};

}  // namespace towpath::live
