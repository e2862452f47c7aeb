// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/wiring.hpp"

#include <algorithm>
#include <tuple>

#include "towpath/collective/schedule/symmetry.hpp"

namespace towpath::collective {
namespace {

// Numbers the FIFOs and credits of each rank.
void number_ends(const Schedule& schedule, Wiring& wiring) {
  for (std::size_t rank = 0; rank < wiring.ranks.size(); ++rank) {
    const auto& blocks = schedule.ranks[rank].blocks;
    wiring.ranks[rank].resize(blocks.size());
    std::int32_t fifos = 0;
    std::int32_t credits = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].receive_peer != kNone) wiring.ranks[rank][b].fifo = fifos++;
      if (blocks[b].send_peer != kNone) wiring.ranks[rank][b].credit = credits++;
    }
    wiring.fifos = std::max(wiring.fifos, static_cast<std::uint32_t>(fifos));
    wiring.credits = std::max(wiring.credits, static_cast<std::uint32_t>(credits));
  }
}

std::uint32_t largest_count(const Schedule& schedule) {
  std::uint32_t largest = 0;
  any_distinct_steps(schedule, [&largest](const ThreadBlock& block) {
    for (std::size_t s = 0; s < block.steps.size(); ++s) {
      const Step& step = block.steps.unrotated(s);
      if (!is_one_sided(step.type)) largest = std::max(largest, step.count);
    }
    return false;
  });
  return largest;
}

}  // namespace

ConnectionEnds::ConnectionEnds(const Schedule& schedule, int period)
    : rank_count_(schedule.rank_count()),
      senders_(static_cast<std::size_t>(period)),
      receivers_(static_cast<std::size_t>(period)) {
  const auto add = [](std::vector<End>& ends, std::int32_t peer, const ThreadBlock& block,
                      std::size_t number) {
    if (peer != kNone) ends.push_back({peer, block.channel, static_cast<std::int32_t>(number)});
  };
  const auto is_before = [](const End& a, const End& b) {
    return std::tie(a.peer, a.channel, a.block) < std::tie(b.peer, b.channel, b.block);
  };
  for (std::size_t rank = 0; rank < senders_.size(); ++rank) {
    const auto& blocks = schedule.ranks[rank].blocks;
    senders_[rank].reserve(blocks.size());
    receivers_[rank].reserve(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      add(senders_[rank], blocks[b].send_peer, blocks[b], b);
      add(receivers_[rank], blocks[b].receive_peer, blocks[b], b);
    }
    for (std::vector<End>* ends : {&senders_[rank], &receivers_[rank]}) {
      if (!std::ranges::is_sorted(*ends, is_before)) std::ranges::sort(*ends, is_before);
    }
  }
}

int ConnectionEnds::find(const Ends& ends, int rank, int peer, int channel) const {
  const int period = static_cast<int>(ends.size());
  const int like = rank % period;
  const int peer_of_like = (peer + rank_count_ - (rank - like)) % rank_count_;
  const auto& of_rank = ends[static_cast<std::size_t>(like)];
  // The last connection that is not after it.
  const auto behind =
      std::upper_bound(of_rank.begin(), of_rank.end(), std::pair(peer_of_like, channel),
                       [](const std::pair<int, int>& wanted, const End& end) {
                         return wanted < std::pair(end.peer, end.channel);
                       });
  if (behind == of_rank.begin()) return kNone;
  const End& found = *std::prev(behind);
  return found.peer == peer_of_like && found.channel == channel ? found.block : kNone;
}

Wiring wire(const Schedule& schedule) {
  Wiring wiring;
  wiring.one_sided = wire_one_sided(schedule);
  wiring.count_max = largest_count(schedule);
  const int period = rotation_period(schedule);
  wiring.ranks.resize(static_cast<std::size_t>(period));
  number_ends(schedule, wiring);
  const ConnectionEnds ends(schedule, period);
  for (int rank = 0; rank < period; ++rank) {
    const auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const ThreadBlock& block = blocks[b];
      BlockWiring& own = wiring.ranks[static_cast<std::size_t>(rank)][b];
      const auto peer_wiring = [&](int peer, int peer_block) -> const BlockWiring& {
        return wiring.of(peer)[static_cast<std::size_t>(peer_block)];
      };
      if (block.send_peer != kNone) {
        own.send_block = ends.receiver(block.send_peer, rank, block.channel);
        if (own.send_block != kNone) {
          own.peer_fifo = peer_wiring(block.send_peer, own.send_block).fifo;
        }
      }
      if (block.receive_peer != kNone) {
        own.receive_block = ends.sender(block.receive_peer, rank, block.channel);
        if (own.receive_block != kNone) {
          own.peer_credit = peer_wiring(block.receive_peer, own.receive_block).credit;
        }
      }
    }
  }
  return wiring;
}

}  // namespace towpath::collective
