// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "chips.hpp"

namespace towpath::machine {

using namespace literals;

namespace {

Tile tile_of(char letter) {
  if (letter >= '0' && letter <= '9') return {TileKind::dram, letter - '0'};
  switch (letter) {
    case 'w': return {TileKind::worker};
    case 'e': return {TileKind::ethernet};
    case 'p': return {TileKind::pcie};
    case 'h': return {TileKind::harvested};
    default: return {TileKind::router_only};
  }
}

// Near those of Wormhole; tests reckon with them.
void set_figures(Chip& chip) {
  chip.clock = Frequency::from_mhz(1000);
  chip.l1_bytes = 1'499'136;
  chip.ethernet_l1_bytes = 262'144;
  chip.niu.request_cycles = 5;
  chip.niu.read_response_cycles = 45;
  chip.niu.acknowledge_cycles = 25;
  chip.niu.port_rate = BytesPerCycle::from(31.2);
  chip.niu.request_stream_rate = BytesPerCycle::from(25.6);
  chip.niu.request_streams = 2;
  chip.niu.response_stream_rate = BytesPerCycle::from(28.8);
  chip.dram = {2, BytesPerCycle::from(22.08), 150, 50, std::uint64_t{1} << 30};
  chip.software.write_cycles = 22;
  chip.software.read_cycles = 25;
  chip.software.write_with_state_cycles = 20;
  chip.software.read_with_state_cycles = 17;
  chip.software.set_state_cycles = 22;
  chip.software.multicast_cycles = 41;
  chip.software.inline_write_cycles = 22;
  chip.software.atomic_cycles = 22;
  chip.software.poll_cycles = 8;
  chip.ethernet = {.tx_queues = 2,
                   .tx_queues_for_kernels = 1,
                   .queue_commands_max = 2,
                   .command_time = 56_ns,
                   .read_rate = 128_GBps,
                   .word_bytes = 16,
                   .frame_payload_bytes_max = 1500,
                   .frame_overhead_bytes = 50,
                   .line_rate = 12.5_GBps,
                   .path_time = 400_ns,
                   .frames_unacknowledged_max = 64,
                   .resend_timeout = 100_us,
                   .training_time = 1_ms};
  chip.ethernet_software = {.send_cycles = 22,
                            .poll_cycles = 8,
                            .routing_firmware_cycles = 100,
                            .fabric_loop_cycles = 8,
                            .fabric_send_cycles = 40,
                            .fabric_receive_cycles = 40};
}

}  // namespace

Chip drawn_chip(const std::vector<std::string>& rows) {
  Chip chip;
  chip.name = "drawn";
  chip.width = static_cast<int>(rows.front().size());
  chip.height = static_cast<int>(rows.size());
  for (const std::string& row : rows) {
    for (const char letter : row) chip.tiles.push_back(tile_of(letter));
  }
  set_figures(chip);
  return chip;
}

std::shared_ptr<const Chip> tiny_chip() {
  return build_chip(drawn_chip({
      "0eh1",  //
      "0www",  //
      "pwww",  //
      "1www",
  }));
}

std::shared_ptr<const Chip> wormhole_like_chip() {
  return build_chip(drawn_chip({
      "0eeee2eeee",  //
      "0wwww2wwww",  //
      ".wwww3wwww",  //
      "pwwww4wwww",  //
      ".wwww4wwww",  //
      "1hhhh5hhhh",  //
      "1eeee5eeee",  //
      "1wwww5wwww",  //
      ".wwww4wwww",  //
      ".wwww3wwww",  //
      ".wwww3wwww",  //
      "0hhhh2hhhh",
  }));
}

}  // namespace towpath::machine
