// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/live/call.hpp"
#include "towpath/live/channel_collective.hpp"
#include "towpath/live/shared_collectives.hpp"
#include "towpath/live/status_page.hpp"
#include "towpath/os/process.hpp"
#include "towpath/transport/live_transport.hpp"

namespace towpath::live {

// Collectives over a transport, one after the other: through shared memory if ranks map each
// other's memory, by puts otherwise. A Group adds messages, threads, and calls in the background.
//
//   Collectives collectives(transport);
//   transport.barrier(timeout);  // all have made theirs
//   collectives.run(request, timeout);
class Collectives {
 public:
  static std::uint64_t heap_bytes(int ranks) {
    return Channels::heap_bytes(ranks) + StatusPage::kBytes + SharedRank::heap_bytes(ranks);
  }
  static std::uint32_t signals(int ranks) {
    return Channels::signals(ranks) + StatusPage::signals(ranks) + 1;
  }

  // Every rank creates one, in the same order, on the symmetric heap. `serves_exchanges`: true if
  // calls of Kind::exchange are possible, which always use puts.
  explicit Collectives(transport::LiveTransport& transport, bool serves_exchanges = false);
  ~Collectives();
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // Blocks. Throws std::invalid_argument for a request that is invalid by itself, and
  // TransportError if a rank died, left, is late, or makes another call.
  void run(const Request& request, Time timeout);
  // A barrier of ranks that make the same statement, such as the size of an allocation. Blocks.
  // Throws TransportError: a disagreement if a rank states something else, or makes another call.
  void synchronize(std::string statement, Time timeout);
  // The statement of a call that runs without this object. Does not block and sends nothing.
  void announce(std::string statement);
  // For a wait in an announced call. Asks each rank that answers. Throws TransportError: a
  // disagreement if the last calls of a rank differ from the last calls of this one.
  void compare_calls();

  // --- one call, driven by the caller ------------------------------------------------------------
  // The request must exist until the call is done.
  void begin(const Request& request);
  // True if any data moved. Throws Mismatch and TransportError.
  bool advance();
  bool is_done() const { return request_ == nullptr; }
  // True if the current call depends on that rank.
  bool awaits(int peer);
  // For longer waits. Throws Mismatch if a rank makes another call, even if none of its data has
  // arrived.
  void check_peers();
  // Drops the current call. No other call may follow.
  void cancel();

  StatusPage& status() { return status_; }

 private:
  void wait(const Request& request, Time timeout);
  void begin_waits(const Request& request);
  void check_last_calls() const;
  void cancel_waits(bool are_all_over);
  [[noreturn]] void throw_disagreement(const Request& request, int peer);

  transport::LiveTransport& transport_;
  os::ForkMark fork_;
  StatusPage status_;
  std::optional<SharedCollectives> shared_;
  std::optional<Channels> channels_;
  const Request* request_ = nullptr;
  Request announced_;
  std::unique_ptr<ChannelCollective> by_puts_;  // the current call, unless `shared_` runs it
  transport::Signal never_;                     // is never raised
  std::vector<transport::SignalWait> waits_;    // by rank
};

}  // namespace towpath::live
