// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/verify/verify_walk.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace towpath::collective {
namespace {

std::uint32_t checked_slots(std::uint32_t asked, const FifoLimits& fifo) {
  if (asked == 0) return fifo.slots;
  if (asked % fifo.slots_per_transfer != 0) {
    throw std::invalid_argument(fmt::format("{} slots do not hold whole transfers; each takes {}",
                                            asked, fifo.slots_per_transfer));
  }
  return asked;
}

}  // namespace

Network::Network(const Schedule& schedule_of_network, const SlotCounts& slots)
    : schedule(schedule_of_network), wiring(wire(schedule)) {
  const FifoLimits fifo = fifo_limits(schedule);
  const std::uint32_t within_host = checked_slots(slots.within_host, fifo);
  const std::uint32_t between_hosts = checked_slots(slots.between_hosts, fifo);
  const auto host_of = [&slots](int rank) {
    return slots.ranks_per_host > 0 ? rank / slots.ranks_per_host : 0;
  };
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    first_block.push_back(static_cast<std::uint32_t>(blocks.size()));
    int number = 0;
    for (const ThreadBlock& block : schedule.ranks[static_cast<std::size_t>(rank)].blocks) {
      blocks.push_back({&block, rank, number++, kNone, kNone});
    }
  }
  first_block.push_back(static_cast<std::uint32_t>(blocks.size()));
  for (std::uint32_t sender = 0; sender < blocks.size(); ++sender) {
    Block& from = blocks[sender];
    const BlockWiring& ends = wiring.of(from.rank)[static_cast<std::size_t>(from.number)];
    if (ends.send_block == kNone) continue;
    const std::uint32_t receiver = block_of(from.program->send_peer, ends.send_block);
    from.outgoing = blocks[receiver].incoming = static_cast<std::int32_t>(connections.size());
    const bool is_within_host = host_of(from.rank) == host_of(from.program->send_peer);
    connections.push_back({sender, receiver, is_within_host ? within_host : between_hosts});
  }
}

Memory::Memory(const Schedule& schedule, bool in_place, std::uint32_t cells_per_chunk)
    : cells_per_chunk_(cells_per_chunk) {
  std::size_t next = 0;
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    first_.push_back(next);
    const auto add = [&](std::uint32_t chunks) {
      const std::size_t begin = next;
      next += std::size_t{chunks} * cells_per_chunk;
      return begin;
    };
    if (in_place) {
      const std::size_t shared = add(schedule.chunks);
      for (const Buffer buffer : {Buffer::input, Buffer::output}) {
        base_.push_back(shared +
                        std::size_t{shared_chunk(schedule, rank, buffer, 0)} * cells_per_chunk);
      }
    } else {
      base_.push_back(add(chunks_in(schedule, rank, Buffer::input)));
      base_.push_back(add(chunks_in(schedule, rank, Buffer::output)));
    }
    const std::uint32_t scratch = chunks_in(schedule, rank, Buffer::scratch);
    base_.push_back(add(scratch));
    const bool has_second = schedule.has_double_scratch;
    second_scratch_.push_back(has_second ? add(scratch) - base_.back() : 0);
  }
  first_.push_back(next);
}

Extent::Extent(const Schedule& schedule, const Chunking& chunking) {
  const std::uint64_t parts = chunking.elements() / chunking.part_elements();
  chunks_per_part = schedule.chunks / static_cast<std::uint32_t>(parts);
  whole = static_cast<std::uint32_t>(chunking.part_elements() / chunking.chunk_elements());
  ragged_elements = chunking.part_elements() % chunking.chunk_elements();
}

}  // namespace towpath::collective
