// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// One core multicasts blocks of data to all others of a chip, with a handshake for each block: what
// a matrix multiplication does with the rows and columns of its inputs. Then the same with two
// mistakes in it, and what is said about them.

#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <vector>

#include "small_chips.hpp"
#include "towpath/tenstorrent/cluster/chip_program.hpp"

using towpath::machine::Coordinate;
using towpath::tenstorrent::ChipProgram;
using towpath::tenstorrent::DataMovementCore;
using towpath::tenstorrent::NocMulticastAddress;
using towpath::tenstorrent::ProgramResult;

namespace {

constexpr int kSide = 4;
constexpr int kReceivers = kSide * kSide - 1;
constexpr int kBlocks = 8;
constexpr std::uint64_t kBlockBytes = 4096;
constexpr Coordinate kSender{0, 0};

enum class Mistake { none, no_flush, nobody_is_ready };

struct Places {
  std::uint64_t source;       // in the sender's L1
  std::uint64_t destination;  // of block 0, in every receiver's L1
  std::size_t ready;          // semaphore: how many receivers wait for the next block
  std::size_t valid;          // semaphore: which block has arrived
};

void send(DataMovementCore& core, const Places& at, Mistake mistake) {
  const std::uint64_t ready = core.get_semaphore(at.ready);
  const std::uint64_t valid = core.get_semaphore(at.valid);
  const auto all = [&](std::uint64_t offset) {
    return core.get_noc_multicast_addr(0, 0, kSide - 1, kSide - 1, offset);
  };
  for (int block = 0; block < kBlocks; ++block) {
    core.store(at.source, std::vector<std::byte>(kBlockBytes, static_cast<std::byte>(block + 1)));
    core.noc_semaphore_wait(ready, kReceivers);
    core.noc_semaphore_set(ready, 0);
    core.noc_async_write_multicast(at.source, all(at.destination + block * kBlockBytes),
                                   kBlockBytes, kReceivers, {.is_linked = true});
    // On the same VC, so that it cannot overtake the data.
    core.noc_semaphore_set(valid, block + 1);
    core.noc_semaphore_set_multicast(valid, all(valid), kReceivers);
    if (mistake != Mistake::no_flush) core.noc_async_writes_flushed();
  }
  core.noc_async_write_barrier();
}

void receive(DataMovementCore& core, const Places& at, Mistake mistake) {
  for (int block = 0; block < kBlocks; ++block) {
    if (mistake != Mistake::nobody_is_ready) {
      core.noc_semaphore_inc(core.get_noc_addr(kSender.x, kSender.y, core.get_semaphore(at.ready)),
                             1);
    }
    core.noc_semaphore_wait_min(core.get_semaphore(at.valid), block + 1);
  }
  core.noc_async_atomic_barrier();
}

// Whether every receiver has every block.
bool is_complete(ChipProgram& program, const Places& at) {
  for (const Coordinate worker : program.network().chip().workers) {
    for (int block = 0; worker != kSender && block < kBlocks; ++block) {
      std::vector<std::byte> bytes(kBlockBytes);
      program.memory(worker).read(at.destination + block * kBlockBytes, bytes);
      if (bytes != std::vector<std::byte>(kBlockBytes, static_cast<std::byte>(block + 1))) {
        return false;
      }
    }
  }
  return true;
}

void run(Mistake mistake) {
  ChipProgram program(towpath::examples::square_of_workers(kSide), {});
  const Places at{.source = program.allocate(kBlockBytes),
                  .destination = program.allocate(kBlocks * kBlockBytes),
                  .ready = program.create_semaphore(0),
                  .valid = program.create_semaphore(0)};
  for (const Coordinate worker : program.network().chip().workers) {
    program.create_kernel({.core = worker, .name = worker == kSender ? "send" : "receive"},
                          [=](DataMovementCore& core) {
                            worker == kSender ? send(core, at, mistake)
                                              : receive(core, at, mistake);
                          });
  }
  const ProgramResult result = program.run();
  fmt::print("{} blocks of {} bytes to {} workers: {} cycles, {:.1f} bytes per cycle to each\n",
             kBlocks, kBlockBytes, kReceivers, result.cycles,
             static_cast<double>(kBlocks * kBlockBytes) / static_cast<double>(result.cycles));
  fmt::print("every worker has every block: {}\n", is_complete(program, at) ? "yes" : "no");
}

void run_with(const char* title, Mistake mistake) {
  fmt::print("\n{}:\n", title);
  try {
    run(mistake);
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
  }
}

}  // namespace

int main() {
  run(Mistake::none);
  run_with("The sender does not wait until a block has left before it stores the next",
           Mistake::no_flush);
  run_with("The receivers do not say that they are ready", Mistake::nobody_is_ready);
}
