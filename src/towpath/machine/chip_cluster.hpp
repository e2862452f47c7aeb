// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"

// A described cluster of chips: which Ethernet core of one chip is joined to which of another. Its
// YAML form is read by python/towpath/specs/chip_cluster_spec.py.

namespace towpath::machine {

// One end of a link. A channel is a place in Chip::ethernet_cores.
struct EthernetEnd {
  int chip = 0;
  int channel = 0;
  auto operator<=>(const EthernetEnd&) const = default;
};

struct EthernetLink {
  // In the order in which they were described; a link has no direction.
  std::array<EthernetEnd, 2> ends;
  // Whether the dispatcher uses it to send programs to chips that the host does not reach; kernels
  // must leave such a link alone.
  bool is_reserved = false;
};

struct ClusterChip {
  std::shared_ptr<const Chip> chip;
  int x = 0;  // its place: no two chips share x, y, rack and shelf
  int y = 0;
  int rack = 0;
  int shelf = 0;
  bool has_host_link = false;  // whether the host reaches it over PCIe
};

// Immutable; made by build_chip_cluster.
struct ChipCluster {
  std::string name;
  std::vector<ClusterChip> chips;
  std::vector<EthernetLink> links;

  // The number of the link at an end; none if nothing is connected. Throws std::invalid_argument if
  // there is no such chip or channel.
  std::optional<std::size_t> link_at(EthernetEnd end) const;
  // The other end of the link at `end`, if there is a link.
  std::optional<EthernetEnd> connected(EthernetEnd end) const;
  // Channels of a chip with a link, in order; reserved ones only if `with_reserved`.
  std::vector<int> active_channels(int chip, bool with_reserved) const;
  // Those of them whose link ends at chip `other`.
  std::vector<int> channels_to(int chip, int other, bool with_reserved) const;
  // The tile of an end. Throws std::invalid_argument if there is no such chip or channel.
  Coordinate core_of(EthernetEnd end) const;

  std::vector<std::vector<int>> link_of_channel;  // by chip and channel; -1: none
};

// Checks a description and completes it (`link_of_channel`). Throws DescriptionError (checks.hpp)
// if there are no chips, an end of a link does not exist or has another link, a link joins a
// channel to itself, or the Ethernet of its two chips differs (line rate, framing, word).
std::shared_ptr<const ChipCluster> build_chip_cluster(ChipCluster cluster);
// The same chips and links, none of them the dispatcher's.
std::shared_ptr<const ChipCluster> without_dispatcher(const ChipCluster& cluster);

}  // namespace towpath::machine
