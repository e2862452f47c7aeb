// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "towpath/live/shared_call.hpp"

// Measurements as part of a call: all ranks make the same ones, exchange the results, and use those
// of the slowest rank.

namespace towpath::live {

namespace {

constexpr std::uint64_t kProbeBytes = 32 << 10;
// The minimum of several passes counts, because an interruption only makes a pass longer.
constexpr int kPasses = 4;
constexpr int kSteps = 16;
// If a line takes less time than from memory, the cores share a cache, and stores through it arrive
// sooner. Steps take 20 to 80 ns there, and 130 to 310 ns elsewhere. The bytes of the probe are not
// sufficient: they misclassified near cores as far ones every fifth time, because they depend on
// the cache that holds the stages.
constexpr double kNearStepSeconds = 100e-9;
// More peers would make a probe of many ranks long.
constexpr int kProbePeersMost = 3;

int probe_peers(int ranks) { return std::min(kProbePeersMost, ranks - 1); }

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

using Measured = std::array<float, 4>;

// The greatest of all ranks' results.
Measured greatest(const SharedRank& rank, std::uint64_t step) {
  Measured all{};
  for (int peer = 0; peer < rank.ranks(); ++peer) {
    const auto theirs = rank.published<Measured>(peer, step);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], theirs[i]);
  }
  return all;
}

// Copies the stages of the next ranks.
void read_stages(const SharedRank& rank, std::uint64_t place, std::byte* to) {
  for (int next = 1; next <= probe_peers(rank.ranks()); ++next) {
    std::memcpy(to, rank.stage((rank.rank() + next) % rank.ranks(), place), kProbeBytes);
  }
}

}  // namespace

// The duration of a step without bytes, the duration of the read of a staged byte, and whether a
// block moves between ranks faster through memory than from cache to cache: a store of this rank
// and a read of a peer's store.
Task run_probe(SharedCall& call) {
  SharedRank& rank = call.rank;
  // A step of ranks that share cores is a context switch, whatever the duration.
  const int steps = rank.is_crowded() && call.costs ? 0 : kSteps;
  double step_s = steps == 0 ? call.costs->step_s : 1;
  for (int i = 0; i < steps; ++i) {
    const std::uint64_t step = rank.next_step();
    co_await rank.until_free(step);
    const auto begin = std::chrono::steady_clock::now();
    rank.publish(step);
    co_await rank.until_arrived(step);
    rank.end(step);
    step_s = std::min(step_s, seconds_since(begin));
  }
  const std::vector<std::byte> from(kProbeBytes);
  std::vector<std::byte> to(kProbeBytes);
  std::array<double, 2> least_s{1, 1};
  double read_s = 1;
  for (int pass = 0; pass < 2 * kPasses; ++pass) {
    const bool streams = pass % 2 == 1;
    const std::uint64_t step = rank.next_step();
    co_await rank.until_stage_free(step, kProbeBytes);
    const std::uint64_t place = rank.take_stage(kProbeBytes, step);
    const auto begin = std::chrono::steady_clock::now();
    CopyPaths::copy(rank.stage(rank.rank(), place), from.data(), kProbeBytes, streams);
    const double staged_s = seconds_since(begin) / kProbeBytes;
    rank.publish(step);
    co_await rank.until_arrived(step);
    const auto arrived = std::chrono::steady_clock::now();
    read_stages(rank, place, to.data());
    const double taken_s = seconds_since(arrived) / probe_peers(rank.ranks()) / kProbeBytes;
    rank.end(step);
    double& least = least_s[streams ? 1 : 0];
    least = std::min(least, staged_s + taken_s);
    read_s = std::min(read_s, taken_s);
  }
  const std::uint64_t step = rank.next_step();
  co_await rank.until_free(step);
  rank.publish(step, Measured{static_cast<float>(least_s[0]), static_cast<float>(least_s[1]),
                              static_cast<float>(read_s), static_cast<float>(step_s)});
  co_await rank.until_arrived(step);
  const Measured all = greatest(rank, step);
  rank.end(step);
  call.costs = Costs{.step_s = all[3], .read_s_per_byte = all[2]};
  call.paths.prefer_streaming(all[3] > kNearStepSeconds && all[1] < all[0]);
}

Task run_first_lap(SharedCall& call) {
  SharedRank& rank = call.rank;
  constexpr std::uint64_t kBytes = StageRing::kBlockBytesMost;
  std::vector<std::byte> to(kProbeBytes);
  for (std::uint64_t block = 0; block < StageRing::largest_blocks(rank.ranks()); ++block) {
    const std::uint64_t step = rank.next_step();
    co_await rank.until_stage_free(step, kBytes);
    const std::uint64_t place = rank.take_stage(kBytes, step);
    std::memset(rank.stage(rank.rank(), place), 0, kBytes);
    rank.publish(step);
    co_await rank.until_arrived(step);
    for (std::uint64_t at = 0; at < kBytes; at += kProbeBytes) {
      read_stages(rank, place + at, to.data());
    }
    rank.end(step);
  }
}

Task run_read_probe(SharedCall& call) {
  SharedRank& rank = call.rank;
  std::byte there{};
  std::byte here{};
  std::uint64_t step = rank.next_step();
  co_await rank.until_free(step);
  rank.publish(step, Descriptor{.location = Descriptor::Location::process,
                                .first = reinterpret_cast<std::uintptr_t>(&there)});
  co_await rank.until_arrived(step);
  const int peer = (rank.rank() + 1) % rank.ranks();
  const bool is_refused = !rank.try_read(peer, rank.published(peer, step).first, {&here, 1});
  rank.end(step);
  step = rank.next_step();
  co_await rank.until_free(step);
  rank.publish(step, Measured{is_refused ? 1.0F : 0.0F});
  co_await rank.until_arrived(step);
  call.paths.allow_reads(greatest(rank, step)[0] == 0);
  rank.end(step);
}

}  // namespace towpath::live
