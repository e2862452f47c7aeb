// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip_cluster.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace towpath::machine {

namespace {

constexpr int kNoLink = -1;

// Every sentence names the cluster.
template <typename... Arguments>
[[noreturn]] void fail(const ChipCluster& cluster, fmt::format_string<Arguments...> format,
                       Arguments&&... arguments) {
  throw std::invalid_argument(
      fmt::format("cluster '{}': {}", cluster.name,
                  fmt::format(format, std::forward<Arguments>(arguments)...)));
}

std::string name_of(EthernetEnd end) {
  return fmt::format("channel {} of chip {}", end.channel, end.chip);
}

const Chip& checked_chip(const ChipCluster& cluster, int chip) {
  const std::size_t chips = cluster.chips.size();
  if (chip < 0 || static_cast<std::size_t>(chip) >= chips) {
    fail(cluster, "has no chip {}; it has 0 to {}", chip, chips - 1);
  }
  return *cluster.chips[static_cast<std::size_t>(chip)].chip;
}

// An end that exists, as places in `link_of_channel`.
std::pair<std::size_t, std::size_t> checked(const ChipCluster& cluster, EthernetEnd end) {
  const std::size_t channels = checked_chip(cluster, end.chip).ethernet_cores.size();
  if (end.channel < 0 || static_cast<std::size_t>(end.channel) >= channels) {
    fail(cluster, "chip {} has no Ethernet channel {}; it has {}", end.chip, end.channel,
         channels == 0 ? "none" : fmt::format("0 to {}", channels - 1));
  }
  return {static_cast<std::size_t>(end.chip), static_cast<std::size_t>(end.channel)};
}

// What both ends must agree on to understand each other's frames.
bool can_join(const EthernetFigures& one, const EthernetFigures& other) {
  return one.line_rate == other.line_rate && one.word_bytes == other.word_bytes &&
         one.frame_payload_bytes_max == other.frame_payload_bytes_max &&
         one.frame_overhead_bytes == other.frame_overhead_bytes;
}

void add_link(ChipCluster& cluster, std::size_t number) {
  const auto& [one, other] = cluster.links[number].ends;
  if (one == other) fail(cluster, "link {} joins {} to itself", number, name_of(one));
  for (const EthernetEnd end : {one, other}) {
    const auto [chip, channel] = checked(cluster, end);
    int& link = cluster.link_of_channel[chip][channel];
    if (link != kNoLink) {
      fail(cluster, "links {} and {} both end at {}; a channel has one link at most", link, number,
           name_of(end));
    }
    link = static_cast<int>(number);
  }
  const Chip& from = checked_chip(cluster, one.chip);
  const Chip& to = checked_chip(cluster, other.chip);
  if (!can_join(from.ethernet, to.ethernet)) {
    fail(cluster,
         "link {} joins chip {}, a {}, to chip {}, a {}, whose Ethernet has another line rate or "
         "other frames",
         number, one.chip, from.name, other.chip, to.name);
  }
}

}  // namespace

std::optional<std::size_t> ChipCluster::link_at(EthernetEnd end) const {
  const auto [chip, channel] = checked(*this, end);
  const int link = link_of_channel[chip][channel];
  if (link == kNoLink) return std::nullopt;
  return static_cast<std::size_t>(link);
}

std::optional<EthernetEnd> ChipCluster::connected(EthernetEnd end) const {
  const std::optional<std::size_t> link = link_at(end);
  if (!link) return std::nullopt;
  const auto& [one, other] = links[*link].ends;
  return one == end ? other : one;
}

std::vector<int> ChipCluster::active_channels(int chip, bool with_reserved) const {
  const std::size_t channels = checked_chip(*this, chip).ethernet_cores.size();
  std::vector<int> active;
  for (int channel = 0; channel < static_cast<int>(channels); ++channel) {
    const std::optional<std::size_t> link = link_at({chip, channel});
    if (link && (with_reserved || !links[*link].is_reserved)) active.push_back(channel);
  }
  return active;
}

std::vector<int> ChipCluster::channels_to(int chip, int other, bool with_reserved) const {
  checked_chip(*this, other);
  std::vector<int> channels = active_channels(chip, with_reserved);
  std::erase_if(channels, [&](int channel) { return connected({chip, channel})->chip != other; });
  return channels;
}

Coordinate ChipCluster::core_of(EthernetEnd end) const {
  const auto [chip, channel] = checked(*this, end);
  return chips[chip].chip->ethernet_cores[channel];
}

std::shared_ptr<const ChipCluster> build_chip_cluster(ChipCluster cluster) {
  if (cluster.chips.empty()) fail(cluster, "has no chips; it needs at least one");
  cluster.link_of_channel.clear();
  for (std::size_t number = 0; number < cluster.chips.size(); ++number) {
    const std::shared_ptr<const Chip>& chip = cluster.chips[number].chip;
    if (!chip) fail(cluster, "chip {} is not described", number);
    cluster.link_of_channel.emplace_back(chip->ethernet_cores.size(), kNoLink);
  }
  for (std::size_t number = 0; number < cluster.links.size(); ++number) add_link(cluster, number);
  return std::make_shared<const ChipCluster>(std::move(cluster));
}

}  // namespace towpath::machine
