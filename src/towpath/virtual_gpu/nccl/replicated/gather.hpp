// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NCCL's init.cc is compiled with this header before it, and with bootstrapAllGather as another
// name of towpath_all_gather: the ranks of the first node bring their entries, and the entries of
// all other nodes are made from them. The types of entries are local to init.cc, so this is a
// template.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "nccl.h"

namespace towpath::virtual_gpu {

struct Shape {
  int nodes, ranks_per_node;
  bool is_alternating;  // every second node has its rings in the other direction, as RCCL's models
};

// Collects the entries of the first node's ranks, in each of its threads.
void gather_in_node(void* state, void* data, std::size_t entry_bytes);
Shape shape_of(void* state);

template <typename Entry, typename = void>
struct HasGraphRanks : std::false_type {};
template <typename Entry>
struct HasGraphRanks<Entry, std::void_t<decltype(std::declval<Entry&>().topoRanks)>>
    : std::true_type {};
template <typename Entry, typename = void>
struct HasHost : std::false_type {};
template <typename Entry>
struct HasHost<Entry, std::void_t<decltype(std::declval<Entry&>().hostHash)>> : std::true_type {};

template <std::size_t count>
void add_to_ranks(int (&ranks)[count], int first_rank) {
  for (int& rank : ranks) {
    if (rank >= 0) rank += first_rank;
  }
}

template <typename Ranks>
void reverse_rings(Ranks& ranks) {
  std::swap(ranks.ringRecv, ranks.ringSend);
  std::swap(ranks.ringPrev, ranks.ringNext);
}

template <typename Ranks>
void move_ranks(Ranks& ranks, int first_rank) {
  add_to_ranks(ranks.ringRecv, first_rank);
  add_to_ranks(ranks.ringSend, first_rank);
  add_to_ranks(ranks.ringPrev, first_rank);
  add_to_ranks(ranks.ringNext, first_rank);
  add_to_ranks(ranks.treeToParent, first_rank);
  add_to_ranks(ranks.treeToChild0, first_rank);
  add_to_ranks(ranks.treeToChild1, first_rank);
  add_to_ranks(ranks.nvlsHeads, first_rank);
}

// An entry of the first node as the same GPU of another node brings it.
template <typename Entry>
void move_to_node(Entry& entry, int node, int first_rank, bool is_reversed) {
  constexpr std::uint64_t kHashStep = 0x9e3779b97f4a7c15;
  if constexpr (HasGraphRanks<Entry>::value) {
    if (is_reversed) reverse_rings(entry.topoRanks);
    move_ranks(entry.topoRanks, first_rank);
  }
  if constexpr (HasHost<Entry>::value) {
    entry.rank += first_rank;
    entry.hostHash += static_cast<std::uint64_t>(node) * kHashStep;
    entry.pidHash += static_cast<std::uint64_t>(node) * kHashStep;
  }
}

}  // namespace towpath::virtual_gpu

template <typename Entry>
ncclResult_t towpath_all_gather(void* state, Entry* entries, std::size_t entry_bytes) {
  using namespace towpath::virtual_gpu;
  gather_in_node(state, entries, entry_bytes);
  const Shape shape = shape_of(state);
  for (int node = 1; node < shape.nodes; ++node) {
    const int first = node * shape.ranks_per_node;
    for (int local = 0; local < shape.ranks_per_node; ++local) {
      std::memcpy(&entries[first + local], &entries[local], sizeof(Entry));  // also of arrays
      move_to_node(entries[first + local], node, first, shape.is_alternating && node % 2 == 1);
    }
  }
  return ncclSuccess;
}
