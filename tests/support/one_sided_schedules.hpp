// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "towpath/collective/schedule/schedule.hpp"

// Small schedules with one-sided steps, written out for tests.

namespace towpath::collective::samples {

Operand own_chunk(Buffer buffer, std::uint32_t chunk);
Operand peer_chunk(int peer, Buffer buffer, std::uint32_t chunk);
Operand packets(Operand operand);

Access move_of(std::vector<Operand> sources, std::vector<Operand> destinations);
Access ends_with(std::vector<SignalEnd> ends);
void add(ThreadBlock& block, StepType type, const Access& access, std::uint32_t count = 1);

// Takes the n-th signal and the n-th wait on a channel out of every thread block of the rank.
void drop_signals(RankProgram& program, int channel, std::size_t n);

// On 2 ranks, rank 1's output gets rank 0's first of 2 chunks, by a get of rank 1 or by a put of
// rank 0 and its signal. It is no collective: for times only.
Schedule one_transfer(bool is_get);

// All-reduces of 2 ranks.
//   packets   each rank puts its chunks into the peer's scratch as packets; two thread blocks share
//             the range
//   gathered  one thread block gets the peer's chunk into scratch; another one, released by a
//             semaphore, adds it; a barrier ends both
//   piped     the same in pieces of so many bytes, with room for `depth` pieces in scratch
Schedule packet_all_reduce();
Schedule gathered_all_reduce();
Schedule piped_all_reduce(std::uint64_t unit_bytes, std::uint32_t depth);

}  // namespace towpath::collective::samples
