// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "small_chips.hpp"

#include <utility>

namespace towpath::examples {

using machine::BytesPerCycle;
using machine::Chip;
using machine::ChipCluster;
using machine::TileKind;
using namespace literals;

namespace {

// The routers' are the defaults.
void set_figures(Chip& chip) {
  chip.clock = Frequency::from_mhz(1000);
  chip.l1_bytes = 1'499'136;
  chip.niu.request_cycles = 5;
  chip.niu.acknowledge_cycles = 25;
  chip.niu.port_rate = BytesPerCycle::from(31.2);
  chip.niu.request_stream_rate = BytesPerCycle::from(25.6);
  chip.niu.request_streams = 2;
  chip.niu.response_stream_rate = BytesPerCycle::from(28.8);
  chip.software = {.write_cycles = 22,
                   .read_cycles = 25,
                   .multicast_cycles = 41,
                   .inline_write_cycles = 22,
                   .atomic_cycles = 22,
                   .poll_cycles = 8};
}

void set_ethernet_figures(Chip& chip) {
  chip.ethernet_l1_bytes = 262'144;
  chip.ethernet.queue_commands_max = 8;
  chip.ethernet.command_time = 6_ns;
  chip.ethernet.read_rate = 2000_GBps;
  chip.ethernet.line_rate = 12.5_GBps;
  chip.ethernet.path_time = Time::from_ns(364.5);
  chip.ethernet.resend_timeout = 100_us;
  chip.ethernet.training_time = 1000_us;
  chip.ethernet_software = {.send_cycles = 22, .poll_cycles = 8, .routing_firmware_cycles = 100};
}

}  // namespace

std::shared_ptr<const Chip> square_of_workers(int side) {
  Chip chip;
  chip.name = "square of workers";
  chip.width = chip.height = side;
  chip.tiles.assign(static_cast<std::size_t>(side * side), {TileKind::worker});
  set_figures(chip);
  return machine::build_chip(std::move(chip));
}

std::shared_ptr<const ChipCluster> two_chips(int links) {
  Chip small;
  small.name = "small";
  small.width = small.height = 2;
  small.tiles = {{TileKind::ethernet},
                 {TileKind::ethernet},  //
                 {TileKind::worker},
                 {TileKind::worker}};
  set_figures(small);
  set_ethernet_figures(small);
  const auto chip = machine::build_chip(std::move(small));
  ChipCluster cluster;
  cluster.name = "two chips";
  cluster.chips = {{.chip = chip, .x = 0}, {.chip = chip, .x = 1}};
  for (int core = 0; core < links; ++core) cluster.links.push_back({{{{0, core}, {1, core}}}});
  return machine::build_chip_cluster(std::move(cluster));
}

}  // namespace towpath::examples
