// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/shared_slots.hpp"

#include <bit>
#include <utility>

#include "towpath/base/invariant.hpp"

namespace towpath::live {

SharedSlots::SharedSlots(int rank, std::vector<std::byte*> memory, std::uint64_t slots)
    : rank_(rank),
      memory_(std::move(memory)),
      slots_(slots),
      stride_(stride(ranks())),
      ended_(memory_.size(), 0) {
  TOWPATH_CHECK(std::has_single_bit(slots), "{} slots are a power of 2", slots);
}

bool SharedSlots::have_ended(std::uint64_t step) {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank_ && !has_ended(peer, step)) return false;
  }
  return true;
}

}  // namespace towpath::live
