// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/link_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace towpath::tenstorrent::ccl {

using fabric::Direction;
using machine::EthernetEnd;

namespace {

std::set<EthernetEnd> ends_of(const fabric::Topology& topology) {
  std::set<EthernetEnd> ends;
  for (int place = 0; place < topology.places(); ++place) {
    for (Direction direction = 0; direction < fabric::kDirections; ++direction) {
      for (int plane = 0; plane < topology.planes(); ++plane) {
        if (const auto end = topology.end(place, direction, plane); end) ends.insert(*end);
      }
    }
  }
  return ends;
}

void append(std::string& text, const std::string& more, const char* separator) {
  if (more.empty()) return;
  if (!text.empty()) text += separator;
  text += more;
}

std::string channels_of(int chip, const std::set<EthernetEnd>& ends) {
  std::string channels;
  for (const EthernetEnd& end : ends) {
    if (end.chip == chip) append(channels, std::to_string(end.channel), ", ");
  }
  return channels;
}

}  // namespace

bool has_faults(const std::vector<LinkFaults>& faults) {
  return std::ranges::any_of(faults, [](const LinkFaults& each) { return each != LinkFaults{}; });
}

void check_link_faults(const std::vector<LinkFaults>& faults, const machine::ChipCluster& cluster,
                       const fabric::Topology& topology) {
  if (faults.size() > cluster.links.size()) {
    throw std::invalid_argument(
        fmt::format("there are faults for {} links, but cluster '{}' has {}", faults.size(),
                    cluster.name, cluster.links.size()));
  }
  const std::set<EthernetEnd> used = ends_of(topology);
  for (std::size_t number = 0; number < faults.size(); ++number) {
    const auto& [one, other] = cluster.links[number].ends;
    if (faults[number] == LinkFaults{} || used.contains(one)) continue;
    throw std::invalid_argument(fmt::format(
        "the link between channel {} of chip {} and channel {} of chip {} has faults, but the "
        "fabric does not use it; it uses channels {} of chip {} and {} of chip {}",
        one.channel, one.chip, other.channel, other.chip, channels_of(one.chip, used), one.chip,
        channels_of(other.chip, used), other.chip));
  }
}

std::string describe_outages(const Cluster& cluster) {
  std::string text;
  for (std::size_t number = 0; number < cluster.description().links.size(); ++number) {
    append(text, cluster.link(number).outage(), "; ");
  }
  return text;
}

std::string describe_drops(const Cluster& cluster) {
  std::string text;
  for (std::size_t number = 0; number < cluster.description().links.size(); ++number) {
    const towpath::ethernet::Link& link = cluster.link(number);
    if (link.faults() == LinkFaults{}) continue;
    append(text,
           fmt::format("the {} dropped {} times and was down for {} us", link.name(), link.drops(),
                       link.down_time().us()),
           "; ");
  }
  return text;
}

}  // namespace towpath::tenstorrent::ccl
