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

// A described cluster of chips: the links between their Ethernet cores.
// python/towpath/specs/chip_cluster_spec.py reads its YAML form.

namespace towpath::machine {

// One end of a link. A channel is an index into Chip::ethernet_cores.
struct EthernetEnd {
  int chip = 0;
  int channel = 0;
  auto operator<=>(const EthernetEnd&) const = default;
};

struct EthernetLink {
  // In description order. Links have no direction.
  std::array<EthernetEnd, 2> ends;
  // True if the dispatcher uses it to send programs to chips without a host link. Kernels must not
  // use such a link.
  bool is_reserved = false;
};

struct ClusterChip {
  std::shared_ptr<const Chip> chip;
  int x = 0;  // position: unique in x, y, rack and shelf
  int y = 0;
  int rack = 0;
  int shelf = 0;
  bool has_host_link = false;  // whether the host reaches it over PCIe
};

// Immutable. Created by build_chip_cluster.
struct ChipCluster {
  std::string name;
  std::vector<ClusterChip> chips;
  std::vector<EthernetLink> links;

  // The number of the link at an end; empty if not connected. Throws std::invalid_argument if there
  // is no such chip or channel.
  std::optional<std::size_t> link_at(EthernetEnd end) const;
  // The far end of the link at `end`, if there is a link.
  std::optional<EthernetEnd> connected(EthernetEnd end) const;
  // Channels of a chip with a link, ascending. Includes reserved ones only if `with_reserved`.
  std::vector<int> active_channels(int chip, bool with_reserved) const;
  // Active channels with links to chip `other`.
  std::vector<int> channels_to(int chip, int other, bool with_reserved) const;
  // The tile of an end. Throws std::invalid_argument if there is no such chip or channel.
  Coordinate core_of(EthernetEnd end) const;

  std::vector<std::vector<int>> link_of_channel;  // by chip and channel; -1: none
};

// Checks and completes a description (`link_of_channel`). Throws DescriptionError (checks.hpp) if
// there are no chips, an end of a link does not exist or has another link, a link connects a
// channel to itself, or the Ethernet of its two chips differs (line rate, framing, word).
std::shared_ptr<const ChipCluster> build_chip_cluster(ChipCluster cluster);
// The same chips and links, with no link reserved for the dispatcher.
std::shared_ptr<const ChipCluster> without_dispatcher(const ChipCluster& cluster);

}  // namespace towpath::machine
