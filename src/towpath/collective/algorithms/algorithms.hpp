// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"

// Built-in algorithms, one file per family. Each comment gives the cost: S is the size of the whole
// array, R the number of ranks, C the number of channels. Wire bytes are sent bytes per rank,
// before the protocol's expansion.
//
// Schedules run in place and out of place, and leave the input unchanged out of place. Schedules
// whose input is read by other ranks until the end run out of place only. A single rank makes a
// local copy.
//
//   AlgorithmOptions options;
//   options.ranks = 16;
//   options.channels = 8;
//   options.rings = rail_rings(2, 8, 8);
//   const Schedule schedule = ring_all_reduce(options);
//
// Wrong: several hosts with the natural ring order. All channels then leave a host through the same
// GPU, and thus through one of many NICs.

namespace towpath::collective {

struct AlgorithmOptions {
  int ranks = 1;
  int channels = 1;
  Protocol protocol = Protocol::simple;
  int root = 0;                         // broadcast, reduce, gather and scatter
  int gpus_per_host = 1;                // trees: consecutive ranks form a host's chain
  int chunks_per_channel = 4;           // chains and trees: pipeline depth
  std::vector<std::vector<int>> rings;  // rings and chains: ranks in order, one ring per channel;
                                        // empty: 0, 1, 2, ... on each
  int columns = 0;            // grids: rank = row * columns + column; 0: one row of all ranks.
                              // Overridden by rings[channel][rank] if present.
  bool row_rings = false;     // grids: the ends of each row are joined
  bool column_rings = false;  // the ends of each column are joined
  std::vector<std::vector<int>> trees;  // tree_all_reduce: the parent of each rank, -1 for a tree's
                                        // root, one tree per channel; empty: two alternating trees
  int reducers = 1;                     // all_pairs_reduce_scatter: reducing thread blocks per
                                        // channel, each for a piece of the input
  std::vector<std::uint32_t> pattern;   // all_to_all_v and send_recv: as in Schedule; empty: whole
                                        // parts, and each rank to the next
};

inline constexpr int kRanksMax = 262'144;
inline constexpr int kChannelsMax = 64;
inline constexpr int kChunksPerChannelMax = 256;
inline constexpr int kReducersMax = 16;

// Requirements of an algorithm in addition to links.
enum class Reach : std::uint8_t {
  fifo,           // none
  memory,         // ranks load from and store to each other's memory: GPUs, processes of one host
  group_of_host,  // also a switch that combines and multicasts within each host
  group,          // also a switch that combines and multicasts among all ranks
  multicast,      // data to all ranks is copied en route: chips in a line or ring, GPUs
                  // behind a switch that multicasts
};

std::string_view name_of(Reach reach);  // "memory"

constexpr std::int64_t chunk_per_channel(const AlgorithmOptions& options) {
  return options.channels;
}
constexpr std::int64_t chunk_per_part(const AlgorithmOptions& options) {
  return std::int64_t{options.ranks} * options.channels;
}
constexpr std::int64_t pipeline_chunks(const AlgorithmOptions& options) {
  return std::int64_t{options.channels} * options.chunks_per_channel;
}

// A callable algorithm with its description.
struct Algorithm {
  std::string_view name;
  Collective collective;
  // Adds the thread blocks to a schedule of at least two ranks without any.
  void (*build)(Schedule& schedule, const AlgorithmOptions& options);
  std::string_view description;  // one line
  std::string_view cost;         // sequential steps, and wire bytes per rank
  // Number of chunks. By default each channel has one of every rank's part.
  std::int64_t (*chunks)(const AlgorithmOptions& options) = chunk_per_part;
  bool is_quadratic = false;     // has about ranks * ranks * channels steps or operands
  bool builds_one_rank = false;  // also builds for one rank, which otherwise makes a local copy
  bool needs_grid = false;       // its ranks form a mesh or torus in row-major order
  Reach reach = Reach::fifo;

  // Throws std::invalid_argument with one sentence if the options are invalid.
  Schedule operator()(const AlgorithmOptions& options) const;
};

// The registry: one line per algorithm declares and lists it. The first algorithm of a collective
// is its default.
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
  ALGORITHM(one_shot_push_all_reduce)      \
  ALGORITHM(two_shot_pull_push_all_reduce) \
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
  ALGORITHM(send_receive_all_to_all)       \
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

// Throws std::invalid_argument with the existing names if there is no such algorithm.
Schedule make_schedule(std::string_view algorithm, const AlgorithmOptions& options);

// Rings over hosts * gpus_per_host ranks, numbered host by host, for machines in which NIC i is
// next to GPU i of each host and reaches NIC i of the other hosts over its switch (a rail). Ring c
// leaves a host and enters the next one on the same rail. Over gpus_per_host rings, every GPU sends
// to the network in exactly one.
//
// A host is entered and left through different GPUs, so consecutive hops of a ring use different
// rails. Three rails suffice for any number of hosts, two for an even number. With two GPUs per
// host and an odd number of hosts, one hop of each ring crosses between rails. This is minimal: two
// rails cannot alternate around an odd cycle, but can with one crossing.
std::vector<std::vector<int>> rail_rings(int hosts, int gpus_per_host, int channels);

}  // namespace towpath::collective
