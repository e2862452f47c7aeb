// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "towpath/live/shared_collectives.hpp"
#include "towpath/transport/streaming.hpp"

// What SharedCollectives measures, as a part of its first call: all ranks do the same, tell each
// other what they measured, and go on with the figures of the slowest.

namespace towpath::live {

namespace {

constexpr std::uint64_t kProbeBytes = 32 << 10;
// Each figure is the least of so many: what comes in between only makes a pass longer.
constexpr int kPasses = 4;
constexpr int kSteps = 16;
// Less than a line takes from memory: the cores share a cache, and what is stored through it gets
// across sooner. Steps take 20 to 80 ns there, 130 to 310 where they do not. The probe's bytes
// alone took near cores for far ones every fifth time: they depend on where calls left the stages.
constexpr double kNearStepSeconds = 100e-9;
// More peers would make a probe of many ranks long.
constexpr int kProbePeersMost = 3;

int probe_peers(int ranks) { return std::min(kProbePeersMost, ranks - 1); }

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// Told to all: each rank's figures become the greatest of all ranks'.
void SharedCollectives::show_figures(std::uint64_t step, const Figures& figures) {
  std::memcpy(slots_.inline_bytes(step), &figures, sizeof(figures));
  slots_.publish(step, stamp_);
}

SharedCollectives::Figures SharedCollectives::greatest(std::uint64_t step) const {
  Figures all{};
  for (int rank = 0; rank < ranks_; ++rank) {
    Figures theirs;
    std::memcpy(&theirs, slots_.inline_bytes(rank, step), sizeof(theirs));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], theirs[i]);
  }
  return all;
}

// Copies what the next ranks staged.
void SharedCollectives::read_probe(std::uint64_t place) {
  for (int next = 1; next <= probe_peers(ranks_); ++next) {
    std::memcpy(probe_bytes_.data() + kProbeBytes, stage((rank_ + next) % ranks_, place),
                kProbeBytes);
  }
}

// How long a step without bytes takes, and a byte that a peer staged; whether a block gets from
// rank to rank sooner through memory than from cache to cache, by both: stores of this rank and
// reads of what others stored the same way.
Task SharedCollectives::run_probe() {
  // Each step of ranks that share cores is a change of the process, whatever the time.
  const int steps = is_crowded_ && costs_ ? 0 : kSteps;
  double step_s = steps == 0 ? costs_->step_s : 1;
  for (int i = 0; i < steps; ++i) {
    const std::uint64_t step = ++step_;
    co_await until_free(step);
    const auto begin = std::chrono::steady_clock::now();
    slots_.publish(step, stamp_);
    co_await until_arrived(step);
    slots_.end(step);
    step_s = std::min(step_s, seconds_since(begin));
  }
  probe_bytes_.resize(2 * kProbeBytes);
  std::array<double, 2> least_s{1, 1};
  double read_s = 1;
  for (int pass = 0; pass < 2 * kPasses; ++pass) {
    const bool streams = pass % 2 == 1;
    const std::uint64_t step = ++step_;
    co_await until_stage_free(step, kProbeBytes);
    const std::uint64_t place = stages_.take(kProbeBytes, step);
    const auto begin = std::chrono::steady_clock::now();
    copy(stage(rank_, place), probe_bytes_.data(), kProbeBytes, streams);
    const double staged_s = seconds_since(begin) / kProbeBytes;
    slots_.publish(step, stamp_);
    co_await until_arrived(step);
    const auto arrived = std::chrono::steady_clock::now();
    read_probe(place);
    const double taken_s = seconds_since(arrived) / probe_peers(ranks_) / kProbeBytes;
    slots_.end(step);
    double& least = least_s[streams ? 1 : 0];
    least = std::min(least, staged_s + taken_s);
    read_s = std::min(read_s, taken_s);
  }
  const std::uint64_t step = ++step_;
  co_await until_free(step);
  show_figures(step, {static_cast<float>(least_s[0]), static_cast<float>(least_s[1]),
                      static_cast<float>(read_s), static_cast<float>(step_s)});
  co_await until_arrived(step);
  const Figures all = greatest(step);
  slots_.end(step);
  streams_ = all[3] > kNearStepSeconds && all[1] < all[0];
  costs_ = Costs{.step_s = all[3], .read_s_per_byte = all[2]};
  // Ranks that share cores wait for each other more than for bytes, and the probe says little.
  if (!is_crowded_) ways_.expect(streams_ ? Way::streamed : Way::staged);
}

// A lap of the ring: brings its memory into being, in all processes, and into the caches where
// later laps find it.
Task SharedCollectives::run_first_lap() {
  probe_bytes_.resize(2 * kProbeBytes);
  for (std::uint64_t block = 0; block < StageRing::largest_blocks(ranks_); ++block) {
    const std::uint64_t step = ++step_;
    co_await until_stage_free(step, kTwoShotBytes);
    const std::uint64_t place = stages_.take(kTwoShotBytes, step);
    std::memset(stage(rank_, place), 0, kTwoShotBytes);
    slots_.publish(step, stamp_);
    co_await until_arrived(step);
    for (std::uint64_t at = 0; at < kTwoShotBytes; at += kProbeBytes) read_probe(place + at);
    slots_.end(step);
  }
}

// Whether all ranks can read the memory of other processes.
Task SharedCollectives::run_read_probe() {
  probe_bytes_.resize(2 * kProbeBytes);
  std::uint64_t step = ++step_;
  co_await until_free(step);
  show(step,
       {.place = Place::process, .first = reinterpret_cast<std::uintptr_t>(probe_bytes_.data())});
  co_await until_arrived(step);
  const int peer = (rank_ + 1) % ranks_;
  const auto* const there = reinterpret_cast<const std::byte*>(shown(peer, step).first);
  const bool is_refused = !transport_.read_private(peer, there, probe_bytes_.data(), 1);
  slots_.end(step);
  step = ++step_;
  co_await until_free(step);
  show_figures(step, {is_refused ? 1.0F : 0.0F});
  co_await until_arrived(step);
  reads_private_ = greatest(step)[0] == 0;
  slots_.end(step);
}

}  // namespace towpath::live
