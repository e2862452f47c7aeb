// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu_links/flow_table.hpp"

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::gpu_links {
namespace {

// The origin of a link's flows: the sender itself, a link, or several.
constexpr int kNobody = -3;
constexpr int kSeveral = -2;
constexpr int kSender = -1;

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

}  // namespace

FlowTable::FlowTable(const Network& network, Protocol protocol)
    : network_(network),
      protocol_(protocol),
      place_of_(network.machine().links().size(), kNowhere) {}

std::uint32_t FlowTable::place_of(int link) {
  std::uint32_t& place = place_of_[index(link)];
  if (place == kNowhere) {
    place = static_cast<std::uint32_t>(links_.size());
    links_.push_back(link);
  }
  return place;
}

std::uint32_t FlowTable::add(const Route& route, std::uint64_t turn, const Group& group) {
  Flow flow;
  flow.first_hop = static_cast<std::uint32_t>(hops_.size());
  flow.hops = static_cast<std::uint16_t>(route.links.size());
  flow.turn = turn;
  LinkUses uses;
  for (std::size_t h = 0; h < route.links.size(); ++h) {
    uses.push_back(network_.use_of(route.links[h], protocol_, group.rate_max));
    Hop& hop = hops_.emplace_back();
    hop.link = place_of(route.links[h]);
    if (!route.moves.empty()) hop.moves = route.moves[h];
  }
  add_beside(hops_[flow.first_hop], group.beside_first, group, uses);
  add_beside(hops_.back(), group.beside_last, group, uses);
  const auto [at, is_new] =
      kind_of_.emplace(std::move(uses), static_cast<std::uint32_t>(kinds_.size()));
  if (is_new) kinds_.push_back({&at->first, {}});
  flow.kind = at->second;
  flows_.push_back(flow);
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

// Flows of a rank share the list.
void FlowTable::add_beside(Hop& hop, std::span<const int> links, const Group& group,
                           LinkUses& uses) {
  if (links.empty()) return;
  hop.beside_count = static_cast<std::uint16_t>(links.size());
  hop.costs = static_cast<std::uint32_t>(uses.size());
  const auto [known, is_new] =
      beside_known_.emplace(links.data(), static_cast<std::uint32_t>(beside_.size()));
  hop.beside = known->second;
  for (const int number : links) {
    if (is_new) beside_.push_back(place_of(number));
    uses.push_back(network_.use_of(number, protocol_, group.rate_max));
  }
}

void FlowTable::join() {
  std::vector<int> from(links_.size(), kNobody);
  for (const std::uint32_t place : beside_) from[place] = kSeveral;
  for (const Flow& flow : flows_) {
    int before = kSender;
    for (const Hop& hop : hops_of(flow)) {
      int& known = from[hop.link];
      if (flow.turn == kNoTurn) known = kSeveral;  // others may hold up the one in front
      const bool is_same = known == before && before != kSender;
      if (known == kNobody) {
        known = before;
      } else if (!is_same) {
        known = kSeveral;
      }
      before = static_cast<int>(hop.link);
    }
  }
  for (Hop& hop : hops_) {
    hop.is_meeting = from[hop.link] == kSeveral;
    hop.is_shared = hop.is_meeting && network_.is_shared(links_[hop.link]);
  }
  for (Flow& flow : flows_) {
    flow.is_alone =
        std::ranges::none_of(hops_of(flow), [](const Hop& hop) { return hop.is_meeting; });
  }
}

void FlowTable::add_busy(std::uint32_t flow, Bytes size, std::span<Time> busy) const {
  const LinkUses& uses = *kinds_[flows_[flow].kind].uses;
  std::size_t number = 0;
  for (const Hop& hop : hops_of(flows_[flow])) {
    busy[hop.link] += transfer_time(size, uses[number++].rate);
  }
}

Time FlowTable::latency_after_meeting(std::uint32_t flow) const {
  const std::span<const Hop> hops = hops_of(flows_[flow]);
  Time latency;
  for (std::size_t h = hops.size(); h-- > 0;) {
    latency += network_.machine().links()[index(links_[hops[h].link])].latency;
    if (hops[h].is_meeting) break;
  }
  return latency;
}

void FlowTable::divide(std::span<const std::uint32_t> partition_of_flow) {
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    flows_[flow].partition = partition_of_flow[flow];
  }
}

const Train& FlowTable::train(std::uint32_t flow, Bytes size, Rate pace, Bytes segment_min) {
  Kind& kind = kinds_[flows_[flow].kind];
  for (const Train& known : kind.trains) {
    if (known.size == size && known.pace == pace && known.segment_min == segment_min) return known;
  }
  Train& train = kind.trains.emplace_back();
  train.size = size;
  train.pace = pace;
  train.segment_min = segment_min;
  for (const LinkUse& use : *kind.uses) {
    train.hops.push_back({{}, use.overhead, use.latency, use.overhead});
  }
  Bytes remaining = size;
  while (remaining > Bytes(0)) {
    const Bytes segment = next_segment(remaining, segment_min);
    train.wholes += segment == kSegment;
    const std::size_t place = train.place_of(train.segments++);
    train.paces[place] = transfer_time(segment, pace);
    for (std::size_t hop = 0; hop < train.hops.size(); ++hop) {
      train.hops[hop].times[place] = (*kind.uses)[hop].occupied_by(segment, false);
      train.hops[hop].busy += train.hops[hop].times[place];
    }
    remaining = remaining - segment;
  }
  return train;
}

}  // namespace towpath::gpu_links
