// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "towpath/os/spin_wait.hpp"
#include "towpath/transport/live_transport.hpp"
#include "towpath/transport/signal_waits.hpp"

// Shared by live transports: the waits of a rank, and the detection of a wait that cannot end.

namespace towpath::transport {

enum class Presence : std::uint32_t { here, left, failed, dead };

// The state of a rank as seen by another one.
struct Standing {
  Presence presence = Presence::here;
  std::optional<RankFailure> blame = {};  // the reason that it published
};

// A rank waits by polling. About every millisecond it also checks its peers. A wait that cannot end
// throws a TransportError. After the failure of a rank every later call throws it again.
class WaitingTransport : public LiveTransport {
 public:
  int rank() const override { return rank_; }
  bool is_crowded() const override { return is_crowded_; }
  // Since the creation of this transport: 64 bits of picoseconds are 106 days.
  Time now() const override;
  void wait(SignalWait& wait) override;
  void cancel(SignalWait& wait) override { waits_.remove(wait); }
  bool progress() override;
  std::string pending() const override;
  void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                   const std::function<std::string()>& what) override;

 protected:
  // `is_crowded`: more ranks than cores, so spinning takes time from a peer.
  WaitingTransport(const LiveOptions& options, bool is_crowded);

  // --- implemented by a transport ----------------------------------------------------------------
  virtual Standing standing(int rank) const = 0;
  // A rank in a sentence: "rank 2 (pid 17)".
  virtual std::string named(int rank) const = 0;
  // Takes all arrivals. Returns true if there were any.
  virtual bool take_arrivals() = 0;
  // Called before standing().
  virtual void look_at_peers() {}
  // Yields the processor for a while. Returns true if anything arrived.
  virtual bool rest(Time now, const std::function<bool()>& holds) = 0;
  // The group cannot continue because of that failure.
  virtual void note_final_failure(const RankFailure& failure) { static_cast<void>(failure); }
  // The report of a wait that took too long.
  struct Lateness {
    int culprit = kNoPeer;
    std::string did;   // a predicate about the culprit, for the others
    std::string says;  // the end of the sentence: "rank 2 (pid 17) is stopped"
  };
  virtual Lateness find_late(Time timeout, int awaited) = 0;

  // --- used by a transport -----------------------------------------------------------------------
  void throw_if_failed() const {
    if (final_error_) throw *final_error_;
  }
  bool poll();
  os::SpinWait& spin_wait() { return spin_wait_; }
  // The failure that ended the last wait, if any.
  const std::optional<RankFailure>& last_failure() const { return last_failure_; }
  // The failure that abandon() publishes.
  RankFailure reason_for(const std::string& what, int culprit) const;

 private:
  // A failure, and whether it ends the group. A rank that left normally only matters to ranks that
  // wait for it.
  struct Found {
    RankFailure failure;
    bool is_final;
  };

  bool is_ready(const SignalWait& wait) const {
    return holds(wait.comparison, signal_fetch(wait.signal), wait.value);
  }
  bool looks_around(Time time);
  std::optional<RankFailure> find_failed_rank() const;
  std::optional<Found> find_failure(int awaited) const;
  std::optional<Found> find_failure_among_waits() const;
  [[noreturn]] void give_up(const Found& found, const std::string& what);
  [[noreturn]] void throw_deadline_exceeded(Time timeout, int awaited, const std::string& what);

  int rank_;
  std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  bool is_crowded_;
  os::SpinWait spin_wait_;
  std::shared_ptr<const FailureNotice> notice_;
  std::function<void()> on_look_;
  SignalWaits waits_;
  Time next_look_;
  std::optional<TransportError> final_error_;  // every later call throws it again
  std::optional<RankFailure> last_failure_;
};

}  // namespace towpath::transport
