// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "towpath/live/call.hpp"
#include "towpath/live/shared_call.hpp"
#include "towpath/live/task.hpp"
#include "towpath/transport/live_transport.hpp"

namespace towpath::live {

// Collectives between ranks that map each other's memory. Each rank publishes its data and reads
// the data of the others, so that a small call is one store and one load per peer:
//
//   up to slot_bytes()   in a slot next to the word that announces it
//   more                 in blocks through a ring of stages, one filled while another is read
//   large arrays         not staged: peers read them from this process's memory, if the system
//                        allows it and if that is faster
//   on the heap          not copied at all: peers read them there, and an all-reduce stores its
//                        result to all of them
//
// A probe in the first call, and in one call every kBytesPerProbe, measures the costs of a step and
// of a byte. The copy path of larger arrays is tuned on the calls themselves (CopyPaths).
class SharedCollectives {
 public:
  static bool serves(Kind kind) {
    return kind != Kind::exchange && kind != Kind::send && kind != Kind::receive;
  }

  // Every rank creates one, in the same order. A barrier must follow before the first call.
  explicit SharedCollectives(transport::LiveTransport& transport)
      : transport_(transport), call_(transport) {}
  SharedCollectives(const SharedCollectives&) = delete;
  SharedCollectives& operator=(const SharedCollectives&) = delete;

  // Starts a call. The request must exist until it is done.
  void begin(const Request& request);
  // True if any data moved. Throws Mismatch and transport::TransportError.
  bool advance();
  bool is_done() const { return request_ == nullptr; }
  // Throws Mismatch if a rank makes another call that no condition of this one depends on.
  void check_peers();
  // Drops the current call. No other call may follow.
  void cancel();
  // True if the current call depends on that rank.
  bool awaits(int peer) { return request_ != nullptr && call_.rank.awaits(peer); }

  // The measured costs. Empty before the first call.
  const std::optional<Costs>& costs() const { return call_.costs; }

 private:
  // At 10 GB/s every 6 ms: a virtual machine may move its processors, and the probe takes a
  // hundredth of that.
  static constexpr std::uint64_t kBytesPerProbe = 64 << 20;

  bool advance_task();
  void begin_next();
  void begin_probe();
  Task task_of(const Request& request);
  // The bytes of a call, the same on all ranks.
  std::uint64_t bytes_of(const Request& request) const;

  transport::LiveTransport& transport_;
  SharedCall call_;
  const Request* request_ = nullptr;
  // A hash of all calls, the stamp of their steps. A difference that no rank waits for, such as two
  // roots of a broadcast, is a Mismatch in the next call.
  std::uint64_t history_ = 0;
  bool is_probing_ = false;
  bool has_lapped_ = false;
  std::uint64_t bytes_until_probe_ = 0;
  Task task_;
};

}  // namespace towpath::live
