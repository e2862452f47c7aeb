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

// What live transports share: how a rank waits, and how it finds out that it waits in vain.

namespace towpath::transport {

enum class Presence : std::uint32_t { here, left, failed, dead };

// How a rank stands, as another one sees it.
struct Standing {
  Presence presence = Presence::here;
  std::optional<Loss> blame = {};  // why it gave up, as it said
};

// A rank waits by looking, again and again, for what comes. About every millisecond it also looks
// how its peers stand. A wait that can not end throws a TransportError; after the loss of a rank
// every later call throws it again.
class WaitingTransport : public LiveTransport {
 public:
  int rank() const override { return rank_; }
  bool is_crowded() const override { return is_crowded_; }
  // Since this transport was made: 64 bits of picoseconds are 106 days.
  Time now() const override;
  void wait(SignalWait& wait) override;
  void cancel(SignalWait& wait) override { waits_.remove(wait); }
  bool progress() override;
  std::string pending() const override;
  void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                   const std::function<std::string()>& what) override;

 protected:
  // `is_crowded`: there are more ranks than cores, so that spinning keeps a peer from working.
  WaitingTransport(const LiveOptions& options, bool is_crowded);

  // --- what a transport knows --------------------------------------------------------------------
  virtual Standing standing(int rank) const = 0;
  // A rank in a sentence: "rank 2 (pid 17)".
  virtual std::string named(int rank) const = 0;
  // Takes what has come; true when there was anything.
  virtual bool take_news() = 0;
  // Called before ranks' standing is asked for.
  virtual void look_at_peers() {}
  // Gives the processor away for a while; true when something has come meanwhile.
  virtual bool rest(Time now, const std::function<bool()>& holds) = 0;
  // This group can not go on because of that loss.
  virtual void note_final_loss(const Loss& loss) { static_cast<void>(loss); }
  // What a wait that took too long says.
  struct Lateness {
    int culprit = kNoPeer;
    std::string did;   // the culprit, to be told to the others
    std::string says;  // the end of the sentence: "rank 2 (pid 17) is stopped"
  };
  virtual Lateness find_late(Time timeout, int awaited) = 0;

  // --- what it gets ------------------------------------------------------------------------------
  void throw_if_failed() const {
    if (failure_) throw *failure_;
  }
  bool poll();
  os::SpinWait& spin_wait() { return spin_wait_; }
  // What ended the last wait, if an error about a peer did.
  const std::optional<Loss>& last_loss() const { return last_loss_; }
  // What abandon() tells the others.
  Loss reason_for(const std::string& what, int culprit) const;

 private:
  // A loss, and whether this group can never go on after it: a rank that left in good order may not
  // be missed by those who do not wait for it.
  struct Found {
    Loss loss;
    bool is_final;
  };

  bool is_ready(const SignalWait& wait) const {
    return holds(wait.comparison, signal_fetch(wait.signal), wait.value);
  }
  bool looks_around(Time time);
  std::optional<Loss> find_failure() const;
  std::optional<Found> find_loss(int awaited) const;
  std::optional<Found> find_loss_among_waits() const;
  [[noreturn]] void give_up(const Found& found, const std::string& what);
  [[noreturn]] void throw_deadline_exceeded(Time timeout, int awaited, const std::string& what);

  int rank_;
  std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  bool is_crowded_;
  os::SpinWait spin_wait_;
  std::shared_ptr<const News> news_;
  std::function<void()> on_look_;
  SignalWaits waits_;
  Time next_look_;
  std::optional<TransportError> failure_;  // every later call throws it again
  std::optional<Loss> last_loss_;
};

}  // namespace towpath::transport
