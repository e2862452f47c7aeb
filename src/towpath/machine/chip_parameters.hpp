// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/parameters.hpp"

// What moving data on a chip costs, block by block, each with the table of its parameters. No value
// is a default: every one comes from a spec, with its source.

namespace towpath::machine {

// Flits and credits on their way are kept in a wheel with a slot per cycle.
inline constexpr Allowed kLinkCycles = between(1, 60);

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

inline constexpr Parameter<RouterParameters> kRouterParameters[] = {
    {"flit_bytes", &RouterParameters::flit_bytes, between(1, 4096),
     "size of a flit; a link takes one per cycle"},
    {"packet_data_flits_max", &RouterParameters::packet_data_flits_max, kCount,
     "flits of a packet besides its header flit"},
    {"hop_cycles", &RouterParameters::hop_cycles, kLinkCycles,
     "from leaving one router to being able to leave the next"},
    {"niu_to_router_cycles", &RouterParameters::niu_to_router_cycles, kLinkCycles,
     "from the network interface to its router"},
    {"router_to_niu_cycles", &RouterParameters::router_to_niu_cycles, kLinkCycles,
     "from a router to its network interface"},
    {"credit_return_cycles", &RouterParameters::credit_return_cycles, kLinkCycles,
     "from leaving a buffer to the sender knowing it; also the way back, per hop, of a granted "
     "path "
     "reservation"},
    {"classes", &RouterParameters::classes, between(1, 4),
     "classes of virtual channels; a channel is a dateline bit, a class and a buddy bit"},
    {"pool_flits", &RouterParameters::pool_flits, between(0, kCountMax),
     "buffer that all virtual channels of a port share, besides one flit of each channel"},
    {"pool_flits_per_vc_max", &RouterParameters::pool_flits_per_vc_max, between(0, kCountMax),
     "share of the pool that one virtual channel may take"},
    {"pool_flits_reserved", &RouterParameters::pool_flits_reserved, between(0, kCountMax),
     "the pool counts as full when no more than these are free"},
    {"pool_flits_for_responses", &RouterParameters::pool_flits_for_responses, between(0, kCountMax),
     "those of the reserved flits that responses may take", Form::optional_quantity},
    {"vc_release_cycles", &RouterParameters::vc_release_cycles, kLinkCycles,
     "from a packet's last flit until its output channel is free for others"},
    {"has_dateline", &RouterParameters::has_dateline, kYesOrNo,
     "false: the dateline bit never flips, and the torus can deadlock", Form::optional_flag},
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

inline constexpr Parameter<NiuParameters> kNiuParameters[] = {
    {"initiators", &NiuParameters::initiators, between(1, 4),
     "requests that software can have under way to the network"},
    {"transaction_ids", &NiuParameters::transaction_ids, between(1, 16), "ids of transactions"},
    {"outstanding_per_id_max", &NiuParameters::outstanding_per_id_max, kCount,
     "unanswered requests of one id"},
    {"request_cycles", &NiuParameters::request_cycles, kAnyCycles,
     "from a request's issue to its header flit"},
    {"read_response_cycles", &NiuParameters::read_response_cycles, kAnyCycles,
     "from a read request's arrival to its first response flit"},
    {"acknowledge_cycles", &NiuParameters::acknowledge_cycles, kAnyCycles,
     "from a write's last flit to its acknowledgement"},
    {"atomic_cycles", &NiuParameters::atomic_cycles, kAnyCycles,
     "time for which a read-modify-write holds its bank of L1"},
    {"port_rate_bytes_per_cycle", &NiuParameters::port_rate, kRatePerCycle,
     "rate of the memory port, either way, all packets together"},
    {"multicast_rate_bytes_per_cycle", &NiuParameters::multicast_rate, kRatePerCycle,
     "rate of a multicast's data, all of whose receivers take each flit together"},
    {"request_stream_rate_bytes_per_cycle", &NiuParameters::request_stream_rate, kRatePerCycle,
     "rate at which one request's data is read from memory"},
    {"request_streams", &NiuParameters::request_streams, kCount, "requests whose reading overlaps"},
    {"response_stream_rate_bytes_per_cycle", &NiuParameters::response_stream_rate, kRatePerCycle,
     "rate at which responses' data is read, one after the other"},
    {"l1_flits_per_cycle", &NiuParameters::l1_flits_per_cycle, kCount,
     "flits that fit side by side into the banks of an L1; two streams meet in 1 of so many "
     "cycles, and one of them waits"},
    {"path_link_cycles", &NiuParameters::path_link_cycles, kAnyCycles,
     "from NIU to router or back for a request for a multicast's path, or an answer to one"},
    {"backoff_cycles_min", &NiuParameters::backoff_cycles_min, kSomeCycles,
     "a refused path reservation is tried again after a random time of at most this x 2^n"},
    {"backoff_cycles_max", &NiuParameters::backoff_cycles_max, kSomeCycles,
     "bound of that random time"},
};

// The channels behind a group of DRAM tiles.
struct DramParameters {
  int channels_per_group = 0;
  BytesPerCycle channel_rate;
  int read_cycles = 0;
  int write_cycles = 0;
  std::uint64_t channel_bytes = 0;
};

inline constexpr Parameter<DramParameters> kDramParameters[] = {
    {"channels_per_group", &DramParameters::channels_per_group, kCount, "channels of a group"},
    {"channel_rate_bytes_per_cycle", &DramParameters::channel_rate, kRatePerCycle,
     "sustained rate of one channel"},
    {"read_cycles", &DramParameters::read_cycles, kAnyCycles,
     "from the request at the channel to the first byte"},
    {"write_cycles", &DramParameters::write_cycles, kAnyCycles,
     "from the last byte at the channel to the acknowledgement"},
    {"channel_bytes", &DramParameters::channel_bytes, kMemory, "memory of a channel"},
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

inline constexpr Parameter<SoftwareParameters> kSoftwareParameters[] = {
    {"write_cycles", &SoftwareParameters::write_cycles, kAnyCycles, "a write call"},
    {"read_cycles", &SoftwareParameters::read_cycles, kAnyCycles, "a read call"},
    {"write_with_state_cycles", &SoftwareParameters::write_with_state_cycles, kAnyCycles,
     "a write call with destination and size set beforehand"},
    {"read_with_state_cycles", &SoftwareParameters::read_with_state_cycles, kAnyCycles,
     "a read call with source and size set beforehand"},
    {"read_held_up_cycles", &SoftwareParameters::read_held_up_cycles, kAnyCycles,
     "added to a read call by each read response that its NIU sends meanwhile"},
    {"set_state_cycles", &SoftwareParameters::set_state_cycles, kAnyCycles,
     "a call that sets destination and size"},
    {"multicast_cycles", &SoftwareParameters::multicast_cycles, kAnyCycles, "a multicast call"},
    {"inline_write_cycles", &SoftwareParameters::inline_write_cycles, kAnyCycles,
     "a call that writes one word"},
    {"atomic_cycles", &SoftwareParameters::atomic_cycles, kAnyCycles,
     "a call that increments a semaphore"},
    {"poll_cycles", &SoftwareParameters::poll_cycles, kSomeCycles,
     "period in which a wait looks again"},
    {"call_cycles", &SoftwareParameters::call_cycles, kAnyCycles, "any other call of a kernel"},
    {"write_destination_cycles", &SoftwareParameters::write_destination_cycles, kAnyCycles,
     "a loop of writes over destinations, per destination"},
    {"read_destination_cycles", &SoftwareParameters::read_destination_cycles, kAnyCycles,
     "a loop of reads over sources, per source"},
    {"write_loop_cycles", &SoftwareParameters::write_loop_cycles, kAnyCycles,
     "on top where several writes to each destination are a loop of their own"},
    {"read_loop_cycles", &SoftwareParameters::read_loop_cycles, kAnyCycles,
     "on top where several reads from each source are a loop of their own"},
    {"loop_exit_cycles", &SoftwareParameters::loop_exit_cycles, kAnyCycles,
     "on top for a call that is written out behind a loop of the same calls"},
    {"reduce_bytes_per_cycle", &SoftwareParameters::reduce_bytes_per_cycle, kSomeCycles,
     "bytes of one operand that the compute cores of a worker reduce per cycle"},
    {"reduce_latency_cycles", &SoftwareParameters::reduce_latency_cycles, kAnyCycles,
     "on top, from the last byte in L1 to the first result there"},
    {"launch_cycles", &SoftwareParameters::launch_cycles, kAnyCycles,
     "from the end of a program to the first instruction of the next one, launched from a trace"},
    {"fabric_announce_cycles", &SoftwareParameters::fabric_announce_cycles, kAnyCycles,
     "a worker that tells its router of a packet, on top of the three writes"},
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

inline constexpr Parameter<EthernetParameters> kEthernetParameters[] = {
    {"tx_queues", &EthernetParameters::tx_queues, between(1, 16), "transmit queues"},
    {"tx_queues_for_kernels", &EthernetParameters::tx_queues_for_kernels, between(1, 16),
     "queues from the first on that kernels may use; the others are reserved"},
    {"queue_commands_max", &EthernetParameters::queue_commands_max, kCount,
     "commands that a queue has taken and whose last byte is not yet on the wire"},
    {"command_time_ns", &EthernetParameters::command_time, kDurationNs,
     "from a command's submission until its queue may take the next, without its bytes"},
    {"read_rate_gb_per_s", &EthernetParameters::read_rate, kRateGbPerS,
     "rate of a command's bytes in that time"},
    {"word_bytes", &EthernetParameters::word_bytes, kAlignment,
     "sizes and addresses are multiples of it"},
    {"frame_payload_bytes_max", &EthernetParameters::frame_payload_bytes_max, kCount,
     "payload of the longest frame"},
    {"frame_overhead_bytes", &EthernetParameters::frame_overhead_bytes, between(0, kCountMax),
     "bytes of a frame besides its payload"},
    {"line_rate_gb_per_s", &EthernetParameters::line_rate, kRateGbPerS, "rate of the wire"},
    {"delivery_rate_gb_per_s", &EthernetParameters::delivery_rate, kRateGbPerS,
     "rate at which the far end hands on a frame that it has checked"},
    {"path_time_ns", &EthernetParameters::path_time, kDurationNs,
     "all else between a command's submission and its bytes at the far end"},
    {"frames_unacknowledged_max", &EthernetParameters::frames_unacknowledged_max, kCount,
     "window of Go-Back-N"},
    // At zero, frames would be sent again and again at one point in time.
    {"resend_timeout_ns", &EthernetParameters::resend_timeout, between(1, kTimeMaxNs),
     "from a frame being on the wire until all frames from it on are sent again"},
    {"training_time_ns", &EthernetParameters::training_time, kDurationNs,
     "from the later end's routing firmware to the link being up"},
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

inline constexpr Parameter<EthernetSoftwareParameters> kEthernetSoftwareParameters[] = {
    {"send_cycles", &EthernetSoftwareParameters::send_cycles, kAnyCycles,
     "submitting a command to a queue that is free"},
    {"poll_cycles", &EthernetSoftwareParameters::poll_cycles, kSomeCycles,
     "period in which a wait looks again"},
    {"routing_firmware_cycles", &EthernetSoftwareParameters::routing_firmware_cycles, kAnyCycles,
     "a call of the base firmware when it has nothing to do"},
    {"fabric_loop_cycles", &EthernetSoftwareParameters::fabric_loop_cycles, kSomeCycles,
     "period in which a fabric router looks for work"},
    {"fabric_send_cycles", &EthernetSoftwareParameters::fabric_send_cycles, kAnyCycles,
     "choosing a packet to send and submitting its command"},
    {"fabric_sent_cycles", &EthernetSoftwareParameters::fabric_sent_cycles, kAnyCycles,
     "what a router does after a packet's command, while the queue fetches the packet"},
    {"fabric_channel_cycles", &EthernetSoftwareParameters::fabric_channel_cycles, kAnyCycles,
     "what that takes more for each channel after the first"},
    {"fabric_answer_cycles", &EthernetSoftwareParameters::fabric_answer_cycles, kAnyCycles,
     "submitting an answer to the far end"},
    {"fabric_receive_cycles", &EthernetSoftwareParameters::fabric_receive_cycles, kAnyCycles,
     "deciding where an arrived packet goes, besides the calls"},
    {"fabric_ring_cycles", &EthernetSoftwareParameters::fabric_ring_cycles, kAnyCycles,
     "what that takes more on a ring, for the first-level acknowledgement and the bubble"},
    {"fabric_ring_handled_cycles", &EthernetSoftwareParameters::fabric_ring_handled_cycles,
     kAnyCycles, "on a ring, what follows behind a packet that is delivered or handed on"},
    {"fabric_mesh_cycles", &EthernetSoftwareParameters::fabric_mesh_cycles, kAnyCycles,
     "what that takes more on a mesh, for routes in two dimensions and twice the channels"},
    {"fabric_mesh_forward_cycles", &EthernetSoftwareParameters::fabric_mesh_forward_cycles,
     kAnyCycles, "and more where it goes on to another router of a mesh"},
    {"fabric_list_cycles", &EthernetSoftwareParameters::fabric_list_cycles, kAnyCycles,
     "the list of a packet whose payload goes to several places, or in several pages"},
    {"fabric_segment_cycles", &EthernetSoftwareParameters::fabric_segment_cycles, kAnyCycles,
     "each of them after the first, besides the write"},
    {"fabric_cores", &EthernetSoftwareParameters::fabric_cores, between(1, 2),
     "cores of a router; with 2, one sends and the other receives"},
    {"fabric_channel_slots", &EthernetSoftwareParameters::fabric_channel_slots, between(2, 32),
     "most slots of a channel of a router in one dimension"},
    {"fabric_mesh_slots", &EthernetSoftwareParameters::fabric_mesh_slots, between(2, 32),
     "most slots of a channel of a router of a mesh"},
    {"fabric_payload_bytes", &EthernetSoftwareParameters::fabric_payload_bytes, between(64, 65'472),
     "payload of a packet as transports use it"},
    {"timestamp_cycles", &EthernetSoftwareParameters::timestamp_cycles, kAnyCycles,
     "a timestamp of the profiler, after the clock was read"},
    {"bandwidth_sender_cycles", &EthernetSoftwareParameters::bandwidth_sender_cycles, kSomeCycles,
     "a pass of the sender of a bandwidth measurement one way, besides its calls"},
    {"bandwidth_receiver_cycles", &EthernetSoftwareParameters::bandwidth_receiver_cycles,
     kSomeCycles, "a pass of its receiver, besides its calls"},
    {"duplex_pass_cycles", &EthernetSoftwareParameters::duplex_pass_cycles, kSomeCycles,
     "a pass of a bandwidth measurement both ways, besides its calls"},
    {"duplex_step_cycles", &EthernetSoftwareParameters::duplex_step_cycles, kAnyCycles,
     "on top, when the pass finds a channel free, has sent, or answers"},
    {"duplex_merged_step_cycles", &EthernetSoftwareParameters::duplex_merged_step_cycles,
     kAnyCycles, "the same with sync words behind their packets, which a table points to"},
    {"ring_sender_cycles", &EthernetSoftwareParameters::ring_sender_cycles, kAnyCycles,
     "a packet at the sender of a ring ping, besides the calls"},
    {"ring_sync_cycles", &EthernetSoftwareParameters::ring_sync_cycles, kAnyCycles,
     "between a packet and its sync word as a command of its own"},
    {"ring_receiver_cycles", &EthernetSoftwareParameters::ring_receiver_cycles, kAnyCycles,
     "a packet at the receiver of a ring ping, besides the calls"},
    {"source_call_cycles", &EthernetSoftwareParameters::source_call_cycles, kAnyCycles,
     "the code around a call of a kernel in source form, besides what the call costs"},
    {"instruction_cache_bytes", &EthernetSoftwareParameters::instruction_cache_bytes,
     between(0, kCountMax), "code of a kernel in source form that need not be fetched again"},
    {"instruction_fetch_cycles", &EthernetSoftwareParameters::instruction_fetch_cycles, kAnyCycles,
     "fetching 16 bytes of code that is not in the cache"},
};

// Windows of one size that the chip maps into the host's address space.
struct WindowSize {
  std::uint64_t size_bytes = 0;
  int count = 0;
  int reserved = 0;

  bool operator==(const WindowSize&) const = default;
};

inline constexpr Parameter<WindowSize> kWindowParameters[] = {
    {"size_bytes", &WindowSize::size_bytes, kMemory, "size of a window"},
    {"count", &WindowSize::count, kCount, "windows of this size"},
    {"reserved", &WindowSize::reserved, between(0, kCountMax), "windows that the driver takes"},
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

inline constexpr Parameter<PcieParameters> kPcieParameters[] = {
    {"generation", &PcieParameters::generation, between(1, 6), "generation of PCIe"},
    {"lanes", &PcieParameters::lanes, between(1, 32), "lanes of the link"},
    {"dynamic_window_bytes", &PcieParameters::dynamic_window_bytes, kMemory,
     "size of the window that the driver takes for single transfers"},
    {"tile_time_ns", &PcieParameters::tile_time, kDurationNs,
     "time of a request through the PCIe tile and of its answer back, together"},
    {"posted_buffer_bytes", &PcieParameters::posted_buffer_bytes, kMemory,
     "writes that have arrived and wait for the NoC"},
    {"writes_outstanding", &PcieParameters::writes_outstanding, kCount,
     "acknowledged NoC writes of the host under way"},
    {"strict_time_ns", &PcieParameters::strict_time, kDurationNs,
     "time by which a write of strict ordering is acknowledged later"},
    {"axi_burst_bytes", &PcieParameters::axi_burst_bytes, kAlignment,
     "longest NoC write that is not split"},
    {"static_vc", &PcieParameters::static_vc, kYesOrNo,
     "false: the host's requests may change their virtual channel on the NoC", Form::optional_flag},
    {"dma_channels", &PcieParameters::dma_channels, kCount,
     "transfers that the DMA engine can have under way", Form::optional_quantity},
    {"dma_to_device", &PcieParameters::dma_to_device, kYesOrNo,
     "whether the DMA engine moves data from the host to the chip"},
    {"dma_from_device", &PcieParameters::dma_from_device, kYesOrNo,
     "whether the DMA engine moves data from the chip to the host"},
    {"dma_reads_outstanding", &PcieParameters::dma_reads_outstanding, kCount,
     "NoC reads of the DMA engine under way, of one payload each"},
    {"dma_alignment_bytes", &PcieParameters::dma_alignment_bytes, kAlignment,
     "alignment of addresses and sizes of a DMA transfer"},
    {"dma_transfer_bytes_max", &PcieParameters::dma_transfer_bytes_max, kMemory,
     "size of the longest DMA transfer"},
    {"dma_window_bytes", &PcieParameters::dma_window_bytes, kMemory,
     "size of the window through which the DMA engine reaches the chip"},
    {"host_address", &PcieParameters::host_address, between(0, 0x1p62),
     "where the PCIe tile shows the host's memory to the chip's cores", Form::optional_quantity},
    {"host_window_bytes", &PcieParameters::host_window_bytes, kMemory,
     "how much of the host's memory it shows", Form::optional_quantity},
};

// What addresses of a transfer must be congruent by.
struct Alignment {
  int l1_bytes = 0;
  int dram_read_bytes = 0;
  int dram_write_bytes = 0;
};

inline constexpr Parameter<Alignment> kAlignmentParameters[] = {
    {"l1_bytes", &Alignment::l1_bytes, kAlignment, "transfers within L1"},
    {"dram_read_bytes", &Alignment::dram_read_bytes, kAlignment, "reads from DRAM"},
    {"dram_write_bytes", &Alignment::dram_write_bytes, kAlignment, "writes to DRAM"},
};

}  // namespace towpath::machine
