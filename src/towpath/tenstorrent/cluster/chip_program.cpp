// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/cluster/chip_program.hpp"

#include <utility>

namespace towpath::tenstorrent {

namespace {

std::shared_ptr<const machine::ChipCluster> cluster_of(std::shared_ptr<const machine::Chip> chip) {
  machine::ChipCluster cluster;
  cluster.name = chip->name;
  cluster.chips.push_back({.chip = std::move(chip)});
  return machine::build_chip_cluster(std::move(cluster));
}

// The description of a single chip does not state that a host reaches it.
RunOptions without_host(RunOptions options) {
  options.host = nullptr;
  return options;
}

}  // namespace

ChipProgram::ChipProgram(std::shared_ptr<const machine::Chip> chip, const Options& options)
    : cluster_(cluster_of(std::move(chip)), without_host(options)) {
  place_on(cluster_.device(0), 0);
}

ProgramResult ChipProgram::run() {
  cluster_.run();
  ProgramResult result = this->result();
  result.flit_hops = cluster_.device(0).flit_hops();  // includes requests after the last kernel
  return result;
}

}  // namespace towpath::tenstorrent
