// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::transport::shm {

// Throws std::out_of_range for a place or rank that there is not.
void check_direct(const DirectMove& move, const SymmetricHeap& heap, int ranks);

// Loads, combines and stores what a DirectMove says, by loops over ranks where it names a group.
// `heap_of` gives the heap of a rank.
void carry(const DirectMove& move, const std::function<std::byte*(int rank)>& heap_of);

}  // namespace towpath::transport::shm
