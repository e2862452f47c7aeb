// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "towpath/ethernet/link.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric_topology.hpp"

// Faults of a cluster's links, by the number of the link. Links beyond the end have none.

namespace towpath::tenstorrent::ccl {

using LinkFaults = towpath::ethernet::LinkFaults;

bool has_faults(const std::vector<LinkFaults>& faults);

// Throws std::invalid_argument if there are more faults than links, or one is for a link that a
// fabric of this topology does not use.
void check_link_faults(const std::vector<LinkFaults>& faults, const machine::ChipCluster& cluster,
                       const fabric::Topology& topology);

// "the link between ... is down since ..." for each link that is down. Empty if there is none.
std::string describe_outages(const Cluster& cluster);

// "the link between ... dropped 3 times and was down for 60 us" for each link with faults.
std::string describe_drops(const Cluster& cluster);

}  // namespace towpath::tenstorrent::ccl
