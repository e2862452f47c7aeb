// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/wiring.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace towpath::collective {
namespace {

// Per rank: (peer, channel) -> thread block.
using Ends = std::vector<std::map<std::pair<int, int>, int>>;

void number_ends(const Schedule& schedule, Wiring& wiring, Ends& senders, Ends& receivers) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& blocks = schedule.ranks[rank].blocks;
    wiring.ranks[rank].resize(blocks.size());
    std::int32_t fifos = 0;
    std::int32_t credits = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const ThreadBlock& block = blocks[b];
      if (block.receive_peer != kNone) {
        wiring.ranks[rank][b].fifo = fifos++;
        receivers[rank][{block.receive_peer, block.channel}] = static_cast<int>(b);
      }
      if (block.send_peer != kNone) {
        wiring.ranks[rank][b].credit = credits++;
        senders[rank][{block.send_peer, block.channel}] = static_cast<int>(b);
      }
      for (const Step& step : block.steps) {
        if (!is_one_sided(step.type)) wiring.count_max = std::max(wiring.count_max, step.count);
      }
    }
    wiring.fifos = std::max(wiring.fifos, static_cast<std::uint32_t>(fifos));
    wiring.credits = std::max(wiring.credits, static_cast<std::uint32_t>(credits));
  }
}

int find(const Ends& ends, int at_rank, int peer, int channel) {
  const auto& of_rank = ends[static_cast<std::size_t>(at_rank)];
  const auto found = of_rank.find({peer, channel});
  return found == of_rank.end() ? kNone : found->second;
}

}  // namespace

Wiring wire(const Schedule& schedule) {
  Wiring wiring;
  wiring.one_sided = wire_one_sided(schedule);
  wiring.ranks.resize(schedule.ranks.size());
  Ends senders(schedule.ranks.size());
  Ends receivers(schedule.ranks.size());
  number_ends(schedule, wiring, senders, receivers);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& blocks = schedule.ranks[rank].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const ThreadBlock& block = blocks[b];
      BlockWiring& own = wiring.ranks[rank][b];
      const auto peer_wiring = [&](int peer, int peer_block) -> const BlockWiring& {
        return wiring.ranks[static_cast<std::size_t>(peer)][static_cast<std::size_t>(peer_block)];
      };
      if (block.send_peer != kNone) {
        own.send_block = find(receivers, block.send_peer, static_cast<int>(rank), block.channel);
        if (own.send_block != kNone) {
          own.peer_fifo = peer_wiring(block.send_peer, own.send_block).fifo;
        }
      }
      if (block.receive_peer != kNone) {
        own.receive_block =
            find(senders, block.receive_peer, static_cast<int>(rank), block.channel);
        if (own.receive_block != kNone) {
          own.peer_credit = peer_wiring(block.receive_peer, own.receive_block).credit;
        }
      }
    }
  }
  return wiring;
}

}  // namespace towpath::collective
