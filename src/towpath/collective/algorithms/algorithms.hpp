// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"

// The schedules that this project writes itself: one file per family. The comment of each gives its
// cost: S is the size of the whole array, R the number of ranks, C the number of channels;
// wire bytes are what one rank sends, before the protocol's own expansion.
//
// Every schedule runs in place as well as out of place, where it leaves the input as it was; those
// whose input is read by others till the end run out of place only. On a single rank it is a local
// copy.
//
//   AlgorithmOptions options;
//   options.ranks = 16;
//   options.channels = 8;
//   options.rings = rail_rings(2, 8, 8);
//   const Schedule schedule = ring_all_reduce(options);
//
// Wrong: several hosts with the natural ring order. All channels then leave a host by the same GPU,
// and so by one NIC of many.

namespace towpath::collective {

struct AlgorithmOptions {
  int ranks = 1;
  int channels = 1;
  Protocol protocol = Protocol::simple;
  int root = 0;                         // broadcast, reduce, gather and scatter
  int gpus_per_host = 1;                // trees: ranks that follow each other form a host's chain
  int chunks_per_channel = 4;           // chains and trees: what goes through them as a pipeline
  std::vector<std::vector<int>> rings;  // rings and chains: ranks in order, one ring per channel;
                                        // empty: 0, 1, 2, ... on each
  int columns = 0;            // grids: rank = row * columns + column; 0: one row of all ranks. With
                              // rings, rings[channel][rank] is taken instead.
  bool row_rings = false;     // grids: the last rank of a row is the first one's neighbour, too
  bool column_rings = false;  // and of a column
  std::vector<std::vector<int>> trees;  // tree_all_reduce: the parent of each rank, -1 for a tree's
                                        // root, one tree per channel; empty: two trees in turn
  int reducers = 1;                     // all_pairs_reduce_scatter: thread blocks that add up what
                                        // comes in on a channel, each a piece of it
  std::vector<std::uint32_t> pattern;   // all_to_all_v and send_recv: as in Schedule; empty: whole
                                        // parts, and each rank to the next
};

inline constexpr int kRanksMax = 262'144;
inline constexpr int kChannelsMax = 64;
inline constexpr int kChunksPerChannelMax = 256;
inline constexpr int kReducersMax = 16;

// What a machine must have for an algorithm, beside links.
enum class Reach : std::uint8_t {
  fifo,           // nothing
  memory,         // ranks load from and store to each other's memory: GPUs, processes of one host
  group_of_host,  // and a switch combines and copies for those of each host
  group,          // and a switch combines and copies for all of them
  multicast,      // what a rank sends to all is copied on its way: chips in a line or ring
};

std::string_view name_of(Reach reach);  // "memory"

// An algorithm, called like a function.
struct Algorithm {
  std::string_view name;
  Collective collective;
  Schedule (*make)(const AlgorithmOptions& options);
  std::string_view description;  // one line
  std::string_view cost;         // steps one after the other, and wire bytes per rank
  bool needs_grid = false;       // its ranks are those of a mesh or torus, row by row
  Reach reach = Reach::fifo;

  // Throws std::invalid_argument, one sentence, for options that are not possible.
  Schedule operator()(const AlgorithmOptions& options) const;
};

// The registry: one line per algorithm declares it and lists it. The first one of a collective is
// its default.
// clang-format off
#define TOWPATH_ALGORITHMS(ALGORITHM)      \
  ALGORITHM(ring_all_reduce)               \
  ALGORITHM(one_shot_all_reduce)           \
  ALGORITHM(two_shot_all_reduce)           \
  ALGORITHM(tree_all_reduce)               \
  ALGORITHM(double_binary_tree_all_reduce) \
  ALGORITHM(hierarchical_all_reduce)       \
  ALGORITHM(halving_doubling_all_reduce)   \
  ALGORITHM(simple_ring_all_reduce)        \
  ALGORITHM(line_all_reduce)               \
  ALGORITHM(grid_all_reduce)               \
  ALGORITHM(one_shot_pull_all_reduce)      \
  ALGORITHM(two_shot_pull_all_reduce)      \
  ALGORITHM(one_shot_multimem_all_reduce)  \
  ALGORITHM(two_shot_multimem_all_reduce)  \
  ALGORITHM(nvls_all_reduce)               \
  ALGORITHM(nvls_tree_all_reduce)          \
  ALGORITHM(ring_all_gather)               \
  ALGORITHM(line_all_gather)               \
  ALGORITHM(grid_all_gather)               \
  ALGORITHM(all_pairs_all_gather)          \
  ALGORITHM(bruck_all_gather)              \
  ALGORITHM(pat_all_gather)                \
  ALGORITHM(nvls_all_gather)               \
  ALGORITHM(multicast_all_gather)          \
  ALGORITHM(ring_reduce_scatter)           \
  ALGORITHM(half_ring_reduce_scatter)      \
  ALGORITHM(line_reduce_scatter)           \
  ALGORITHM(grid_reduce_scatter)           \
  ALGORITHM(all_pairs_reduce_scatter)      \
  ALGORITHM(pat_reduce_scatter)            \
  ALGORITHM(nvls_reduce_scatter)           \
  ALGORITHM(ring_broadcast)                \
  ALGORITHM(tree_broadcast)                \
  ALGORITHM(ring_reduce)                   \
  ALGORITHM(tree_reduce)                   \
  ALGORITHM(all_pairs_all_to_all)          \
  ALGORITHM(bruck_all_to_all)              \
  ALGORITHM(direct_gather)                 \
  ALGORITHM(binomial_gather)               \
  ALGORITHM(direct_scatter)                \
  ALGORITHM(binomial_scatter)              \
  ALGORITHM(all_pairs_all_to_all_v)        \
  ALGORITHM(direct_send_recv)              \
  ALGORITHM(doubling_barrier)
// clang-format on
#define TOWPATH_DECLARE_ALGORITHM(name) extern const Algorithm name;
TOWPATH_ALGORITHMS(TOWPATH_DECLARE_ALGORITHM)
#undef TOWPATH_DECLARE_ALGORITHM

std::span<const Algorithm> algorithms();

// Throws std::invalid_argument naming those that exist.
Schedule make_schedule(std::string_view algorithm, const AlgorithmOptions& options);

// Rings over hosts * gpus_per_host ranks, numbered host by host, for machines whose NIC i sits at
// GPU i of each host and reaches NIC i of the others over its own switch (a rail). Ring c leaves a
// host and enters the next one on the same rail; over gpus_per_host rings, every GPU sends to the
// network in exactly one.
//
// A host is entered and left by different GPUs, so the rails of a ring's hops differ from hop to
// hop round all hosts. Three rails are enough for any number of hosts, and two for an even one.
// With two GPUs per host and an odd number of hosts, one hop of each ring crosses between rails:
// two rails cannot alternate round an odd circle, and with one crossing they do, so it is the least
// possible.
std::vector<std::vector<int>> rail_rings(int hosts, int gpus_per_host, int channels);

}  // namespace towpath::collective
