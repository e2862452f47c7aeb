// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/bytes_per_cycle.hpp"

// The cost of moving data on a chip, block by block. chip_parameters.cpp has the bounds and the
// meaning of each member. A member with a value here is a default of the model, whose source is in
// that table; the others come from a spec, with their sources.

namespace towpath::machine {

// Routers and their links. All delays are in cycles of the chip's clock.
struct RouterParameters {
  int flit_bytes = 0;
  int packet_data_flits_max = 0;
  int hop_cycles = 0;
  int niu_to_router_cycles = 0;
  int router_to_niu_cycles = 0;
  int credit_return_cycles = 7;
  int classes = 4;
  int pool_flits = 48;
  int pool_flits_per_vc_max = 15;
  int pool_flits_reserved = 3;
  int pool_flits_for_responses = 3;
  int vc_release_cycles = 2;
  bool has_dateline = true;
  bool picks_vc_first = true;
};

// The network interface of a tile.
struct NiuParameters {
  int initiators = 0;
  int transaction_ids = 0;
  int outstanding_per_id_max = 0;
  int request_cycles = 5;
  int read_response_cycles = 45;
  int acknowledge_cycles = 25;
  int atomic_cycles = 5;
  BytesPerCycle port_rate;
  BytesPerCycle multicast_rate;
  BytesPerCycle request_stream_rate;
  int request_streams = 2;
  BytesPerCycle response_stream_rate;
  int l1_flits_per_cycle = 0;
  int path_link_cycles = 0;
  int backoff_cycles_min = 32;
  int backoff_cycles_max = 32'768;
};

// The channels behind a group of DRAM tiles.
struct DramParameters {
  int channels_per_group = 0;
  BytesPerCycle channel_rate;
  int read_cycles = 0;
  int write_cycles = 0;
  std::uint64_t channel_bytes = 0;
};

// The Ethernet subsystem of a tile, and its link. A frame crosses the wire at line rate, is checked
// as a whole at the far end, and is passed on from there. An acknowledgement takes the path time
// plus the time of the shortest frame.
struct EthernetParameters {
  int tx_queues = 0;
  int tx_queues_for_kernels = 0;
  int queue_commands_max = 8;
  Time command_time = Time::from_ns(6);
  Rate read_rate = Rate::from_gb_per_s(2000);
  int word_bytes = 0;
  int frame_payload_bytes_max = 1500;
  int frame_overhead_bytes = 50;
  Rate line_rate;
  Rate delivery_rate;
  Time path_time = Time::from_ns(364.5);
  int frames_unacknowledged_max = 64;
  Time resend_timeout = Time::from_ns(100000);
  Time training_time = Time::from_ns(1000000);

  bool operator==(const EthernetParameters&) const = default;
};

// Windows of one size that the chip maps into the host's address space.
struct WindowSize {
  std::uint64_t size_bytes = 0;
  int count = 0;
  int reserved = 0;

  bool operator==(const WindowSize&) const = default;
};

// The chip's side of the host link. For the host's side, see host.hpp.
struct PcieParameters {
  int generation = 0;
  int lanes = 0;
  std::vector<WindowSize> windows;  // smallest first
  std::uint64_t dynamic_window_bytes = 0;
  Time tile_time = Time::from_ns(105);
  std::uint64_t posted_buffer_bytes = 49'152;
  int writes_outstanding = 0;
  Time strict_time = Time::from_ns(71);
  int axi_burst_bytes = 128;
  bool static_vc = true;
  int dma_channels = 8;
  bool dma_to_device = false;
  bool dma_from_device = false;
  int dma_reads_outstanding = 24;
  int dma_alignment_bytes = 4;
  std::uint64_t dma_transfer_bytes_max = 4'294'967'295;
  std::uint64_t dma_window_bytes = 0;
  std::uint64_t host_address = 0;
  std::uint64_t host_window_bytes = 0;  // 0: cores cannot access host memory

  bool operator==(const PcieParameters&) const = default;
};

// Required congruence of source and destination addresses.
struct Alignment {
  int l1_bytes = 0;
  int dram_read_bytes = 0;
  int dram_write_bytes = 0;
};

}  // namespace towpath::machine
