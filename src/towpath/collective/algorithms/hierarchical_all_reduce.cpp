// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Hierarchical all-reduce: 2(G-1) + 2(H-1) steps one after the other for H hosts of G GPUs, 2 S
// (R-1)/R bytes on the wire per rank, of which 2 S (H-1)/R between hosts. A ring in each host
// leaves every GPU with the host's sum of one part, a ring over the GPUs of each rail sums these,
// and a second ring in each host hands them out. That ring has channels of its own, so that thread
// blocks of all three work at the same time.
#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// One rank's share of one channel: G parts of H chunks.
struct Share {
  RankProgram& program;
  int rank;
  int gpus;
  int hosts;
  int channel;

  int host() const { return rank / gpus; }
  int gpu() const { return rank % gpus; }
  // The chunk of the part of the GPU `back` places before this one.
  std::uint32_t chunk(int back, int index) const {
    const int part = (gpu() + 2 * gpus - back) % gpus;
    return static_cast<std::uint32_t>((channel * gpus + part) * hosts + index);
  }
  int next_gpu() const { return host() * gpus + (gpu() + 1) % gpus; }
  int previous_gpu() const { return host() * gpus + (gpu() + gpus - 1) % gpus; }
};

// The host's sum of the own part, chunk by chunk; that of a chunk is G steps after the last one's.
void add_sums_in_host(const Share& share) {
  ThreadBlock& block =
      add_block(share.program, share.previous_gpu(), share.next_gpu(), share.channel);
  for (int index = 0; index < share.hosts; ++index) {
    block.steps.push_back(step(StepType::send, input(share.chunk(1, index))));
    for (int back = 2; back < share.gpus; ++back) {
      block.steps.push_back(step(StepType::receive_reduce_send, input(share.chunk(back, index))));
    }
    const std::uint32_t own = share.chunk(share.gpus, index);
    block.steps.push_back(publishing(step(StepType::receive_reduce_copy, input(own), output(own))));
  }
}

// A ring all-reduce of the part's chunks over the GPUs of the rail.
void add_rail(const Share& share) {
  const int hosts = share.hosts;
  const int ranks = hosts * share.gpus;
  const bool has_sums = share.gpus > 1;
  ThreadBlock& block = add_block(share.program, (share.rank + ranks - share.gpus) % ranks,
                                 (share.rank + share.gpus) % ranks, share.channel);
  const std::uint32_t sums = last_block(share.program) - 1;
  const auto add = [&](StepType type, int back) {
    const int index = (share.host() + 2 * hosts - back) % hosts;
    const std::uint32_t chunk = share.chunk(0, index);
    const bool is_summing = back <= hosts;
    Step next = step(type, is_summing && !has_sums ? input(chunk) : output(chunk), output(chunk));
    if (is_summing && has_sums) {
      next = after(sums, static_cast<std::uint32_t>((index + 1) * share.gpus - 1), next);
    }
    next.publishes = has_sums && back >= hosts;
    block.steps.push_back(next);
  };
  add(StepType::send, 1);
  for (int back = 2; back < hosts; ++back) add(StepType::receive_reduce_send, back);
  add(StepType::receive_reduce_copy_send, hosts);
  for (int back = hosts + 1; back < 2 * hosts - 1; ++back) add(StepType::receive_copy_send, back);
  add(StepType::receive, 2 * hosts - 1);
}

// Chunk by chunk in the order in which the rail, or the host, has summed them.
void add_results_in_host(const Share& share, int channel) {
  const int hosts = share.hosts;
  const std::uint32_t summing = last_block(share.program);
  ThreadBlock& block = add_block(share.program, share.previous_gpu(), share.next_gpu(), channel);
  for (int turn = 0; turn < hosts; ++turn) {
    const int index = (share.host() + hosts - turn) % hosts;
    const int done = hosts > 1 ? hosts - 1 + turn : share.gpus - 1;
    block.steps.push_back(after(summing, static_cast<std::uint32_t>(done),
                                step(StepType::send, output(share.chunk(0, index)))));
    for (int back = 1; back < share.gpus - 1; ++back) {
      block.steps.push_back(step(StepType::receive_copy_send, output(share.chunk(back, index))));
    }
    block.steps.push_back(step(StepType::receive, output(share.chunk(share.gpus - 1, index))));
  }
}

Schedule make(const AlgorithmOptions& options) {
  check_quadratic(options);
  Schedule schedule = schedule_without_blocks(
      "hierarchical_all_reduce", Collective::all_reduce, options,
      static_cast<std::uint32_t>(options.ranks) * static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  const int hosts = options.ranks / options.gpus_per_host;
  if (options.gpus_per_host > 1) take_two_channels_each(schedule);
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) {
      const Share share{schedule.ranks[static_cast<std::size_t>(rank)], rank, options.gpus_per_host,
                        hosts, channel};
      if (share.gpus > 1) add_sums_in_host(share);
      if (hosts > 1) add_rail(share);
      if (share.gpus > 1) add_results_in_host(share, options.channels + channel);
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm hierarchical_all_reduce{
    .name = "hierarchical_all_reduce",
    .collective = Collective::all_reduce,
    .make = make,
    .description =
        "summed round each host, then between hosts on every rail, then handed out in each host",
    .cost = "2(G-1)+2(H-1) steps, 2S(R-1)/R bytes, 2S(H-1)/R of them between hosts",
};

}  // namespace towpath::collective
