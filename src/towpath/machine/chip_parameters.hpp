// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/bytes_per_cycle.hpp"

// The cost of moving data on a chip, block by block. chip_parameters.cpp has the bounds and the
// meaning of each member. No value is a default: every one comes from a spec, with its source.

namespace towpath::machine {

// Routers and the links between them. All delays are in cycles of the chip's clock.
struct RouterParameters {
  int flit_bytes = 0;
  int packet_data_flits_max = 0;
  int hop_cycles = 0;
  int niu_to_router_cycles = 0;
  int router_to_niu_cycles = 0;
  int credit_return_cycles = 0;
  int classes = 0;
  int pool_flits = 0;
  int pool_flits_per_vc_max = 0;
  int pool_flits_reserved = 0;
  int pool_flits_for_responses = 0;
  int vc_release_cycles = 0;
  bool has_dateline = true;
};

// The network interface of a tile.
struct NiuParameters {
  int initiators = 0;
  int transaction_ids = 0;
  int outstanding_per_id_max = 0;
  int request_cycles = 0;
  int read_response_cycles = 0;
  int acknowledge_cycles = 0;
  int atomic_cycles = 0;
  BytesPerCycle port_rate;
  BytesPerCycle multicast_rate;
  BytesPerCycle request_stream_rate;
  int request_streams = 0;
  BytesPerCycle response_stream_rate;
  int l1_flits_per_cycle = 0;
  int path_link_cycles = 0;
  int backoff_cycles_min = 0;
  int backoff_cycles_max = 0;
};

// The channels behind a group of DRAM tiles.
struct DramParameters {
  int channels_per_group = 0;
  BytesPerCycle channel_rate;
  int read_cycles = 0;
  int write_cycles = 0;
  std::uint64_t channel_bytes = 0;
};

// What software on a worker's data-movement core pays per call, in cycles of the chip's clock.
struct SoftwareParameters {
  int write_cycles = 0;
  int read_cycles = 0;
  int write_with_state_cycles = 0;
  int read_with_state_cycles = 0;
  int read_held_up_cycles = 0;
  int set_state_cycles = 0;
  int multicast_cycles = 0;
  int inline_write_cycles = 0;
  int atomic_cycles = 0;
  int poll_cycles = 0;
  int call_cycles = 0;
  int write_destination_cycles = 0;
  int read_destination_cycles = 0;
  int write_loop_cycles = 0;
  int read_loop_cycles = 0;
  int loop_exit_cycles = 0;
  int reduce_bytes_per_cycle = 0;
  int reduce_latency_cycles = 0;
  int launch_cycles = 0;
  int fabric_announce_cycles = 0;
};

// The Ethernet subsystem of a tile, and its link. A frame is on the wire at line rate, is checked
// as a whole at the far end, and is handed on from there; an acknowledgement takes the path's time
// and the time of the shortest frame.
struct EthernetParameters {
  int tx_queues = 0;
  int tx_queues_for_kernels = 0;
  int queue_commands_max = 0;
  Time command_time;
  Rate read_rate;
  int word_bytes = 0;
  int frame_payload_bytes_max = 0;
  int frame_overhead_bytes = 0;
  Rate line_rate;
  Rate delivery_rate;
  Time path_time;
  int frames_unacknowledged_max = 0;
  Time resend_timeout;
  Time training_time;

  bool operator==(const EthernetParameters&) const = default;
};

// What software on an Ethernet core pays per call, in cycles of the chip's clock. What is not here
// costs what it costs on a worker (SoftwareParameters).
struct EthernetSoftwareParameters {
  int send_cycles = 0;
  int poll_cycles = 0;
  int routing_firmware_cycles = 0;
  int fabric_loop_cycles = 0;
  int fabric_send_cycles = 0;
  int fabric_sent_cycles = 0;
  int fabric_channel_cycles = 0;
  int fabric_answer_cycles = 0;
  int fabric_receive_cycles = 0;
  int fabric_ring_cycles = 0;
  int fabric_ring_handled_cycles = 0;
  int fabric_mesh_cycles = 0;
  int fabric_mesh_forward_cycles = 0;
  int fabric_list_cycles = 0;
  int fabric_segment_cycles = 0;
  int fabric_cores = 0;
  int fabric_channel_slots = 0;
  int fabric_mesh_slots = 0;
  int fabric_payload_bytes = 0;
  int timestamp_cycles = 0;
  int bandwidth_sender_cycles = 0;
  int bandwidth_receiver_cycles = 0;
  int duplex_pass_cycles = 0;
  int duplex_step_cycles = 0;
  int duplex_merged_step_cycles = 0;
  int ring_sender_cycles = 0;
  int ring_sync_cycles = 0;
  int ring_receiver_cycles = 0;
  int source_call_cycles = 0;
  int instruction_cache_bytes = 0;
  int instruction_fetch_cycles = 0;

  bool operator==(const EthernetSoftwareParameters&) const = default;
};

// Windows of one size that the chip maps into the host's address space.
struct WindowSize {
  std::uint64_t size_bytes = 0;
  int count = 0;
  int reserved = 0;

  bool operator==(const WindowSize&) const = default;
};

// The chip's side of the host link; the host's side is in host.hpp.
struct PcieParameters {
  int generation = 0;
  int lanes = 0;
  std::vector<WindowSize> windows;  // smallest first
  std::uint64_t dynamic_window_bytes = 0;
  Time tile_time;
  std::uint64_t posted_buffer_bytes = 0;
  int writes_outstanding = 0;
  Time strict_time;
  int axi_burst_bytes = 0;
  bool static_vc = true;
  int dma_channels = 1;
  bool dma_to_device = false;
  bool dma_from_device = false;
  int dma_reads_outstanding = 0;
  int dma_alignment_bytes = 0;
  std::uint64_t dma_transfer_bytes_max = 0;
  std::uint64_t dma_window_bytes = 0;
  std::uint64_t host_address = 0;
  std::uint64_t host_window_bytes = 0;  // 0: cores reach no memory of the host

  bool operator==(const PcieParameters&) const = default;
};

// What addresses of a transfer must be congruent by.
struct Alignment {
  int l1_bytes = 0;
  int dram_read_bytes = 0;
  int dram_write_bytes = 0;
};

}  // namespace towpath::machine
