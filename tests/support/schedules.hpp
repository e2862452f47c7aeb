// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/collective/schedule/schedule.hpp"

// Small schedules written out for tests, independent of the shipped algorithms. Together they use
// every step type, dependencies, nop chains, scratch and several channels. All are right, in place
// and out of place, unless they say otherwise.

namespace towpath::collective::samples {

// A chunk of a buffer; the range of a step begins at one.
struct Chunk {
  Buffer buffer;
  std::uint32_t number;
};

// A step with its ranges; the dependency is set by after().
Step make_step(StepType type, Chunk source, Chunk destination, std::uint32_t count = 1);
Step after(Step step, int block, int on_step);

Schedule empty_schedule(Collective collective, int ranks, std::uint32_t chunks);

// Adds a thread block to `rank` and returns it; the reference lasts until the next one is added.
ThreadBlock& add_block(Schedule& schedule, int rank, int send_peer, int receive_peer,
                       int channel = 0);

// One ring per channel, every other one in reverse.
Schedule ring_all_reduce(int ranks, int channels);
Schedule ring_all_gather(int ranks, int channels);
Schedule ring_reduce_scatter(int ranks);

// Every rank sends part p to rank p, which reduces what it collected in scratch, in a thread block
// of its own behind a chain of nops, and sends the sum back. Each part is `count` chunks that go in
// one step.
Schedule two_shot_all_reduce(int ranks, std::uint32_t count);

// Each pair exchanges `count` chunks: both ends send all of them, then receive.
Schedule pairwise_all_to_all(int ranks, std::uint32_t count);

// The same in single steps, which is right but not in place, and hangs when `count` transfers take
// more slots than there are.
Schedule stepwise_all_to_all(int ranks, std::uint32_t count);

Schedule chain_broadcast(int ranks, std::uint32_t chunks);

// A ring in which one thread block receives and another sends on what the first one says has come.
Schedule relayed_all_gather(int ranks);

// All send to rank 0, which collects one chunk of each at a time in a single scratch chunk per
// peer: the next may only come when the one before has been added.
Schedule one_slot_reduce(int ranks, std::uint32_t chunks);

// Sums along the ranks and back, in a thread block each: in place, only the way there and back
// keeps the second from storing what the first has yet to read.
Schedule there_and_back_all_reduce(int ranks, std::uint32_t chunks);

}  // namespace towpath::collective::samples
