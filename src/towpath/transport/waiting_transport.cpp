// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/waiting_transport.hpp"

#include <fmt/format.h>

#include <utility>

namespace towpath::transport {

using namespace literals;
using Kind = TransportError::Kind;

namespace {

// The interval at which a waiting rank checks its peers.
constexpr Time kLookInterval = 1_ms;
// Polls before the clock is read, regardless of arrivals.
constexpr int kPollsPerLook = 1000;

}  // namespace

WaitingTransport::WaitingTransport(const LiveOptions& options, bool is_crowded)
    : rank_(options.rank),
      is_crowded_(is_crowded),
      spin_wait_(is_crowded),
      notice_(options.notice),
      on_look_(options.on_look) {}

Time WaitingTransport::now() const {
  const auto passed = std::chrono::steady_clock::now() - origin_;
  return Time::from_ps(std::chrono::nanoseconds(passed).count() * 1000);
}

void WaitingTransport::wait(SignalWait& wait) {
  throw_if_failed();
  if (!wait.is_waiting && is_ready(wait)) {
    if (wait.ready != nullptr) wait.ready(wait);
    return;
  }
  waits_.add(wait);
}

bool WaitingTransport::poll() {
  const bool any = take_arrivals();
  return waits_.look([this](const SignalWait& wait) { return is_ready(wait); }) || any;
}

bool WaitingTransport::progress() {
  throw_if_failed();
  if (poll()) return true;
  if (!looks_around(now())) return false;
  const std::optional<Found> found = find_failure_among_waits();
  if (!found) return false;
  if (poll()) return true;  // its last puts still count
  give_up(*found, "");
}

std::string WaitingTransport::pending() const {
  std::string lines = waits_.pending(*this);
  if (!lines.empty()) lines.pop_back();
  return lines;
}

void WaitingTransport::block_until(const std::function<bool()>& holds, Time timeout, int awaited,
                                   const std::function<std::string()>& what) {
  throw_if_failed();
  last_failure_.reset();
  note_activity();
  if (holds()) return;
  Time progressed = now();
  bool has_progressed = false;
  spin_wait_.renew();
  for (int polls = 1;; ++polls) {
    if (poll()) {
      spin_wait_.renew();
      has_progressed = true;
    }
    if (holds()) return;
    const bool spins = spin_wait_.spin();
    if (spins && polls % kPollsPerLook != 0) continue;
    const Time time = now();
    if (std::exchange(has_progressed, false)) {
      progressed = time;
      note_activity();
    }
    if (looks_around(time)) {
      std::optional<Found> found = find_failure(awaited);
      if (!found) found = find_failure_among_waits();
      // Its last puts still count.
      if (found && !poll() && !holds()) give_up(*found, what());
      continue;
    }
    if (time - progressed >= timeout) throw_deadline_exceeded(timeout, awaited, what());
    if (!spins) has_progressed |= rest(time, holds);
  }
}

bool WaitingTransport::looks_around(Time time) {
  if (time < next_look_) return false;
  next_look_ = time + kLookInterval;
  look_at_peers();
  if (on_look_) on_look_();
  return true;
}

// If several ranks gave up or died: a rank that names itself is the cause. Otherwise it is one that
// died without naming another, and the others ended because of it.
std::optional<RankFailure> WaitingTransport::find_failed_rank() const {
  std::optional<RankFailure> dead, blamed;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_) continue;
    Standing of = standing(rank);
    if (of.presence != Presence::failed && of.presence != Presence::dead) continue;
    if (of.blame && of.blame->culprit == rank) return of.blame;
    if (!of.blame && !dead) dead = RankFailure{rank, "died"};
    if (of.blame && !blamed) blamed = std::move(of.blame);
  }
  return dead ? dead : blamed;
}

std::optional<WaitingTransport::Found> WaitingTransport::find_failure(int awaited) const {
  std::optional<RankFailure> failure = find_failed_rank();
  if (!failure && notice_ != nullptr) failure = notice_->read();
  if (failure) return Found{std::move(*failure), true};
  if (awaited == kNoPeer || awaited == rank_) return std::nullopt;
  Standing of = standing(awaited);
  if (of.presence != Presence::left) return std::nullopt;
  if (of.blame) return Found{std::move(*of.blame), true};
  return Found{{awaited, "left"}, false};
}

std::optional<WaitingTransport::Found> WaitingTransport::find_failure_among_waits() const {
  std::optional<Found> found = find_failure(kNoPeer);
  for (const SignalWait* wait = waits_.first(); wait != nullptr && !found; wait = wait->next) {
    const bool has_left = wait->peer != kNoPeer && standing(wait->peer).presence == Presence::left;
    if (has_left) found = find_failure(wait->peer);
  }
  return found;
}

void WaitingTransport::give_up(const Found& found, const std::string& what) {
  const RankFailure& failure = found.failure;
  const std::string waits = waits_.describe_all(failure.culprit, what, *this);
  const auto here = waits.empty() ? fmt::format(", as rank {} found", rank_)
                                  : fmt::format(" while rank {} waited for {}", rank_, waits);
  const TransportError error(Kind::peer_died, failure.culprit,
                             fmt::format("{} {}{}", named(failure.culprit), failure.what, here));
  last_failure_ = failure;
  if (found.is_final) {
    note_final_failure(failure);
    final_error_ = error;
  }
  throw error;
}

void WaitingTransport::throw_deadline_exceeded(Time timeout, int awaited, const std::string& what) {
  Lateness late = find_late(timeout, awaited);
  if (late.culprit != kNoPeer) last_failure_ = RankFailure{late.culprit, std::move(late.did)};
  const std::string waits = waits_.describe_all(late.culprit, what, *this);
  throw TransportError(
      Kind::timeout, late.culprit,
      fmt::format("{} waited {:g} s without success{}{}{}{}", named(rank_), timeout.seconds(),
                  waits.empty() ? "" : " for ", waits, late.says.empty() ? "" : "; ", late.says));
}

RankFailure WaitingTransport::reason_for(const std::string& what, int culprit) const {
  const bool is_known = culprit != kNoPeer && last_failure_ && last_failure_->culprit == culprit;
  return is_known ? *last_failure_ : RankFailure{rank_, what};
}

}  // namespace towpath::transport
