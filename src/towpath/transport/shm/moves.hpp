// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/transport.hpp"

// Moves between ranks whose memories are mapped: copies, and a store that announces them to other
// ranks.

namespace towpath::transport::shm {

// Reads, reduces and stores the payload of a Move. `heap`: of the peer, or null.
void carry(const Move& move, std::byte* heap);
// Raises the signal of a Move, the peer's `word`, after the payload.
void raise(const Move& move, std::atomic_ref<std::uint64_t> word);

// Throws std::out_of_range for a place or rank that does not exist.
void check_direct(const DirectMove& move, const SymmetricHeap& heap, int ranks);
// Loads, combines and stores the operands of a DirectMove, by loops over the ranks of a group.
// `heap_of` gives the heap of a rank.
void carry(const DirectMove& move, const std::function<std::byte*(int rank)>& heap_of);

}  // namespace towpath::transport::shm
