// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip_cluster.hpp"

#include <fmt/format.h>

#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/machine/checks.hpp"

namespace towpath::machine {

namespace {

constexpr int kNoLink = -1;

Checks checks_of(const ChipCluster& cluster) {
  return Checks(fmt::format("cluster '{}'", cluster.name));
}

std::string name_of(EthernetEnd end) {
  return fmt::format("channel {} of chip {}", end.channel, end.chip);
}

// The problem with an end as an error text; empty if it is valid.
std::string problem_of_chip(const ChipCluster& cluster, int chip) {
  const std::size_t chips = cluster.chips.size();
  if (chip >= 0 && index(chip) < chips) return "";
  return fmt::format("has no chip {}; it has 0 to {}", chip, chips - 1);
}

std::string problem_of_end(const ChipCluster& cluster, EthernetEnd end) {
  std::string problem = problem_of_chip(cluster, end.chip);
  if (!problem.empty()) return problem;
  const std::size_t channels = cluster.chips[index(end.chip)].chip->ethernet_cores.size();
  if (end.channel >= 0 && index(end.channel) < channels) return "";
  return fmt::format("chip {} has no Ethernet channel {}; it has {}", end.chip, end.channel,
                     channels == 0 ? "none" : fmt::format("0 to {}", channels - 1));
}

const Chip& checked_chip(const ChipCluster& cluster, int chip) {
  const std::string problem = problem_of_chip(cluster, chip);
  if (!problem.empty()) checks_of(cluster).fail("{}", problem);
  return *cluster.chips[index(chip)].chip;
}

// A valid end as indices into `link_of_channel`.
std::pair<std::size_t, std::size_t> checked(const ChipCluster& cluster, EthernetEnd end) {
  const std::string problem = problem_of_end(cluster, end);
  if (!problem.empty()) checks_of(cluster).fail("{}", problem);
  return {index(end.chip), index(end.channel)};
}

// True if the framing of both ends is compatible.
bool can_join(const EthernetParameters& a, const EthernetParameters& b) {
  return a.line_rate == b.line_rate && a.delivery_rate == b.delivery_rate &&
         a.word_bytes == b.word_bytes && a.frame_payload_bytes_max == b.frame_payload_bytes_max &&
         a.frame_overhead_bytes == b.frame_overhead_bytes;
}

void add_link(ChipCluster& cluster, std::size_t number) {
  const Checks checks = checks_of(cluster);
  const std::string field = fmt::format("links[{}]", number);
  const auto& [a, b] = cluster.links[number].ends;
  if (a == b)
    checks.fail_at(field, "joins {} to itself; a link must have two different ends", name_of(a));
  for (const EthernetEnd end : {a, b}) {
    const std::string problem = problem_of_end(cluster, end);
    if (!problem.empty()) checks.fail_at(field, "joins {}: {}", name_of(end), problem);
    int& link = cluster.link_of_channel[index(end.chip)][index(end.channel)];
    if (link != kNoLink) {
      checks.fail_at(field, "joins {}, which already has link {}; a channel can have only one",
                     name_of(end), link);
    }
    link = static_cast<int>(number);
  }
  const Chip& from = checked_chip(cluster, a.chip);
  const Chip& to = checked_chip(cluster, b.chip);
  if (!can_join(from.ethernet, to.ethernet)) {
    checks.fail_at(
        field,
        "joins a {} to a {}; line and delivery rates, frames and words of both must be the same",
        from.name, to.name);
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
  const auto& [a, b] = links[*link].ends;
  return a == end ? b : a;
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

std::shared_ptr<const ChipCluster> without_dispatcher(const ChipCluster& cluster) {
  auto copy = std::make_shared<ChipCluster>(cluster);
  for (EthernetLink& link : copy->links) link.is_reserved = false;
  return copy;
}

std::shared_ptr<const ChipCluster> build_chip_cluster(ChipCluster cluster) {
  if (cluster.chips.empty()) checks_of(cluster).fail("has no chips; it needs at least one");
  cluster.link_of_channel.clear();
  for (std::size_t number = 0; number < cluster.chips.size(); ++number) {
    const std::shared_ptr<const Chip>& chip = cluster.chips[number].chip;
    if (!chip) checks_of(cluster).fail("chip {} is not described", number);
    cluster.link_of_channel.emplace_back(chip->ethernet_cores.size(), kNoLink);
  }
  for (std::size_t number = 0; number < cluster.links.size(); ++number) add_link(cluster, number);
  return std::make_shared<const ChipCluster>(std::move(cluster));
}

}  // namespace towpath::machine
