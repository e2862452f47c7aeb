// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip_parameters.hpp"

#include "towpath/machine/chip.hpp"
#include "towpath/machine/parameters.hpp"

namespace towpath::machine {

namespace {

// Flits and credits in flight are kept in a wheel with a slot per cycle.
constexpr Allowed kLinkCycles = between(1, 60);

constexpr Parameter kRouterParameters[] = {
    {TOWPATH_PARAMETER(RouterParameters, flit_bytes), between(1, 4096),
     "size of a flit; a link takes one per cycle"},
    {TOWPATH_PARAMETER(RouterParameters, packet_data_flits_max), kCount,
     "flits of a packet besides its header flit"},
    {TOWPATH_PARAMETER(RouterParameters, hop_cycles), kLinkCycles,
     "from leaving one router to being able to leave the next"},
    {TOWPATH_PARAMETER(RouterParameters, niu_to_router_cycles), kLinkCycles,
     "from the network interface to its router"},
    {TOWPATH_PARAMETER(RouterParameters, router_to_niu_cycles), kLinkCycles,
     "from a router to its network interface"},
    {TOWPATH_PARAMETER(RouterParameters, credit_return_cycles), kLinkCycles,
     "from leaving a buffer to the sender knowing it; also the way back, per hop, of a granted "
     "path reservation",
     Form::optional_quantity,
     "derived on Wormhole: one flit per hop of 9 and 7 back is 1/16 of a link's rate, which "
     "tt-metal's report Virtual Channels gives for VCs that the shared pool has no room for"},
    {TOWPATH_PARAMETER(RouterParameters, classes), between(1, 4),
     "classes of virtual channels; a channel is a dateline bit, a class and a buddy bit",
     Form::optional_quantity,
     "tt-isa-documentation, NoC/README.md of Wormhole and Blackhole: 2 bits of the VC's number"},
    {TOWPATH_PARAMETER(RouterParameters, pool_flits), between(0, kCountMax),
     "buffer that all virtual channels of a port share, besides one flit of each channel",
     Form::optional_quantity,
     "tt-isa-documentation WormholeB0/DRAMTile/README.md, 1.5 KiB of each inbound port's buffer"},
    {TOWPATH_PARAMETER(RouterParameters, pool_flits_per_vc_max), between(0, kCountMax),
     "share of the pool that one virtual channel may take", Form::optional_quantity,
     "tt-isa-documentation WormholeB0/DRAMTile/README.md, 480 B"},
    {TOWPATH_PARAMETER(RouterParameters, pool_flits_reserved), between(0, kCountMax),
     "the pool counts as full when no more than these are free", Form::optional_quantity,
     "derived on Wormhole: 48 less three VCs of 15, which together go at full rate (tt- metal, "
     "Virtual Channels); tt-isa-documentation says that the pool is slow when nearly full already"},
    {TOWPATH_PARAMETER(RouterParameters, pool_flits_for_responses), between(0, kCountMax),
     "those of the reserved flits that responses may take", Form::optional_quantity,
     "derived on Wormhole: requests that stand still must leave something to responses, or the "
     "network locks up; a reserve that nobody may use would be for nothing"},
    {TOWPATH_PARAMETER(RouterParameters, vc_release_cycles), kLinkCycles,
     "from a packet's last flit until its output channel is free for others",
     Form::optional_quantity,
     "fitted to tt-metal noc_estimator, cores that all write to each other, with 1 to 5 tried"},
    {TOWPATH_PARAMETER(RouterParameters, has_dateline), kYesOrNo,
     "false: the dateline bit never flips, and the torus can deadlock", Form::optional_flag},
    {TOWPATH_PARAMETER(RouterParameters, picks_vc_first), kYesOrNo,
     "false: an input port whose channel loses an output sends from another of its channels",
     Form::optional_flag},
};

constexpr Parameter kNiuParameters[] = {
    {TOWPATH_PARAMETER(NiuParameters, initiators), between(1, 4),
     "requests that software can have under way to the network"},
    {TOWPATH_PARAMETER(NiuParameters, transaction_ids), between(1, 16), "ids of transactions"},
    {TOWPATH_PARAMETER(NiuParameters, outstanding_per_id_max), kCount,
     "unanswered requests of one id"},
    {TOWPATH_PARAMETER(NiuParameters, request_cycles), kAnyCycles,
     "from a request's issue to its header flit", Form::optional_quantity,
     "assumed; it is not published. With it small transactions take the time of tt-metal "
     "noc_estimator, within 3 % in the median"},
    {TOWPATH_PARAMETER(NiuParameters, read_response_cycles), kAnyCycles,
     "from a read request's arrival to its first response flit", Form::optional_quantity,
     "assumed; it is not published. With it small transactions take the time of tt-metal "
     "noc_estimator, within 3 % in the median"},
    {TOWPATH_PARAMETER(NiuParameters, acknowledge_cycles), kAnyCycles,
     "from a write's last flit to its acknowledgement", Form::optional_quantity,
     "assumed; it is not published. With it small transactions take the time of tt-metal "
     "noc_estimator, within 3 % in the median"},
    {TOWPATH_PARAMETER(NiuParameters, atomic_cycles), kAnyCycles,
     "time for which a read-modify-write holds its bank of L1", Form::optional_quantity,
     "tt-isa-documentation WormholeB0/TensixTile/L1.md: an atomic holds its bank that long"},
    {"port_rate_bytes_per_cycle", TOWPATH_MEMBER(NiuParameters, port_rate), kRatePerCycle,
     "rate of the memory port, either way, all packets together"},
    {"multicast_rate_bytes_per_cycle", TOWPATH_MEMBER(NiuParameters, multicast_rate), kRatePerCycle,
     "rate of a multicast's data, all of whose receivers take each flit together"},
    {"request_stream_rate_bytes_per_cycle", TOWPATH_MEMBER(NiuParameters, request_stream_rate),
     kRatePerCycle, "rate at which one request's data is read from memory"},
    {TOWPATH_PARAMETER(NiuParameters, request_streams), kCount, "requests whose reading overlaps",
     Form::optional_quantity,
     "tt-metal noc_estimator: several writes saturate at 31.1 B/cycle on Wormhole, not 25.6, and "
     "at 62.1 on Blackhole, not 60"},
    {"response_stream_rate_bytes_per_cycle", TOWPATH_MEMBER(NiuParameters, response_stream_rate),
     kRatePerCycle, "rate at which responses' data is read, one after the other"},
    {TOWPATH_PARAMETER(NiuParameters, l1_flits_per_cycle), kCount,
     "flits that fit side by side into the banks of an L1; two streams meet in 1 of so many "
     "cycles, and one of them waits"},
    {TOWPATH_PARAMETER(NiuParameters, path_link_cycles), kAnyCycles,
     "from NIU to router or back for a request for a multicast's path, or an answer to one",
     Form::optional_quantity,
     "estimator: 256 multicasts of 64 B to squares, rows and columns, the source among them or "
     "beside; the hops alone take as long"},
    {TOWPATH_PARAMETER(NiuParameters, backoff_cycles_min), kSomeCycles,
     "a refused path reservation is tried again after a random time of at most this x 2^n",
     Form::optional_quantity,
     "tt-metal, reset value of Quasar's ROUTER_CONFIG (noc_config_reg.h), whose "
     "log2_basic_timeout_delay is 5"},
    {TOWPATH_PARAMETER(NiuParameters, backoff_cycles_max), kSomeCycles, "bound of that random time",
     Form::optional_quantity,
     "tt-zephyr-platforms, noc_init.c: Blackhole's firmware sets the largest exponent of the "
     "back-off to 15"},
};

constexpr Parameter kDramParameters[] = {
    {TOWPATH_PARAMETER(DramParameters, channels_per_group), kCount, "channels of a group"},
    {"channel_rate_bytes_per_cycle", TOWPATH_MEMBER(DramParameters, channel_rate), kRatePerCycle,
     "sustained rate of one channel"},
    {TOWPATH_PARAMETER(DramParameters, read_cycles), kAnyCycles,
     "from the request at the channel to the first byte"},
    {TOWPATH_PARAMETER(DramParameters, write_cycles), kAnyCycles,
     "from the last byte at the channel to the acknowledgement"},
    {TOWPATH_PARAMETER(DramParameters, channel_bytes), kMemory, "memory of a channel"},
};

constexpr Parameter kEthernetParameters[] = {
    {TOWPATH_PARAMETER(EthernetParameters, tx_queues), between(1, 16), "transmit queues"},
    {TOWPATH_PARAMETER(EthernetParameters, tx_queues_for_kernels), between(1, 16),
     "queues from the first on that kernels may use; the others are reserved"},
    {TOWPATH_PARAMETER(EthernetParameters, queue_commands_max), kCount,
     "commands that a queue has taken and whose last byte is not yet on the wire",
     Form::optional_quantity,
     "fitted to ubench1 (tt-metal, Basic Ethernet Multichip), 4 KiB, with 1, 2, 3, 4, 8, 16 and 30 "
     "tried: with fewer the wire waits for the loop that fills the queue"},
    {"command_time_ns", TOWPATH_MEMBER(EthernetParameters, command_time), kDurationNs,
     "from a command's submission until its queue may take the next, without its bytes",
     Form::optional_quantity,
     "derived: an answer goes out in the same pass of the loop as a packet (ubench1, 1 KiB), so "
     "the register is free again after one look"},
    {"read_rate_gb_per_s", TOWPATH_MEMBER(EthernetParameters, read_rate), kRateGbPerS,
     "rate of a command's bytes in that time", Form::optional_quantity,
     "not a limit: the register is free before the data has left (tt-isa-documentation "
     "WormholeB0/EthernetTile/EthernetTxRx.md), and no measured time of a command grows with its "
     "size on Wormhole. At this rate 8 KiB take 4 ns"},
    {TOWPATH_PARAMETER(EthernetParameters, word_bytes), kAlignment,
     "sizes and addresses are multiples of it"},
    {TOWPATH_PARAMETER(EthernetParameters, frame_payload_bytes_max), kCount,
     "payload of the longest frame", Form::optional_quantity, "tt-metal, Basic Ethernet Multichip"},
    {TOWPATH_PARAMETER(EthernetParameters, frame_overhead_bytes), between(0, kCountMax),
     "bytes of a frame besides its payload", Form::optional_quantity,
     "tt-metal, Basic Ethernet Multichip: 14 B raw header, 16 B packet header, 16 B MAC and 4 B "
     "CRC"},
    {"line_rate_gb_per_s", TOWPATH_MEMBER(EthernetParameters, line_rate), kRateGbPerS,
     "rate of the wire"},
    {"delivery_rate_gb_per_s", TOWPATH_MEMBER(EthernetParameters, delivery_rate), kRateGbPerS,
     "rate at which the far end hands on a frame that it has checked"},
    {"path_time_ns", TOWPATH_MEMBER(EthernetParameters, path_time), kDurationNs,
     "all else between a command's submission and its bytes at the far end",
     Form::optional_quantity,
     "fitted to ubench5 (tt-metal, Basic Ethernet Multichip), 16 B: half of the 785 ns that the "
     "sender waits, less the frames' times on the wire and the cost of the receiver's calls"},
    {TOWPATH_PARAMETER(EthernetParameters, frames_unacknowledged_max), kCount,
     "window of Go-Back-N", Form::optional_quantity,
     "assumed; sequence numbers have 8 bits, the window is not published"},
    // At zero, frames would be resent forever without progress of time.
    {"resend_timeout_ns", TOWPATH_MEMBER(EthernetParameters, resend_timeout),
     between(1, kTimeMaxNs),
     "from a frame being on the wire until all frames from it on are sent again",
     Form::optional_quantity, "assumed; it is not published"},
    {"training_time_ns", TOWPATH_MEMBER(EthernetParameters, training_time), kDurationNs,
     "from the later end's routing firmware to the link being up", Form::optional_quantity,
     "assumed; it is not published"},
};

constexpr Parameter kWindowParameters[] = {
    {TOWPATH_PARAMETER(WindowSize, size_bytes), kMemory, "size of a window"},
    {TOWPATH_PARAMETER(WindowSize, count), kCount, "windows of this size"},
    {TOWPATH_PARAMETER(WindowSize, reserved), between(0, kCountMax),
     "windows that the driver takes"},
};

constexpr Parameter kPcieParameters[] = {
    {TOWPATH_PARAMETER(PcieParameters, generation), between(1, 6), "generation of PCIe"},
    {TOWPATH_PARAMETER(PcieParameters, lanes), between(1, 32), "lanes of the link"},
    {TOWPATH_PARAMETER(PcieParameters, dynamic_window_bytes), kMemory,
     "size of the window that the driver takes for single transfers"},
    {"tile_time_ns", TOWPATH_MEMBER(PcieParameters, tile_time), kDurationNs,
     "time of a request through the PCIe tile and of its answer back, together",
     Form::optional_quantity,
     "fitted to tt-isa-documentation, DMA from a Tensix tile in the PCIe tile's row: 11.34 GB/s "
     "with 24 reads of 128 B under way; the same page gives about 150 ns, of which the NoC's "
     "interfaces are 50 here"},
    {TOWPATH_PARAMETER(PcieParameters, posted_buffer_bytes), kMemory,
     "writes that have arrived and wait for the NoC", Form::optional_quantity,
     "fitted to PCIe Bandwidth Benchmarking of Blackhole, static windows: ten writes of 1 MB to "
     "DRAM are 0.53 % faster than ten of 8 MB, as if 55 KB more had been on their way at the end, "
     "of which the host holds 8 KiB"},
    {TOWPATH_PARAMETER(PcieParameters, writes_outstanding), kCount,
     "acknowledged NoC writes of the host under way"},
    {"strict_time_ns", TOWPATH_MEMBER(PcieParameters, strict_time), kDurationNs,
     "time by which a write of strict ordering is acknowledged later", Form::optional_quantity,
     "fitted to tt-isa-documentation of Wormhole, write-combining memcpy with strict AXI ordering"},
    {TOWPATH_PARAMETER(PcieParameters, axi_burst_bytes), kAlignment,
     "longest NoC write that is not split", Form::optional_quantity,
     "tt-isa-documentation WormholeB0/PCIExpressTile/README.md: longer bursts are split"},
    {TOWPATH_PARAMETER(PcieParameters, static_vc), kYesOrNo,
     "false: the host's requests may change their virtual channel on the NoC", Form::optional_flag},
    {TOWPATH_PARAMETER(PcieParameters, dma_channels), kCount,
     "transfers that the DMA engine can have under way", Form::optional_quantity,
     "tt-isa-documentation WormholeB0/PCIExpressTile/README.md: BAR 2 has registers of 8 channels"},
    {TOWPATH_PARAMETER(PcieParameters, dma_to_device), kYesOrNo,
     "whether the DMA engine moves data from the host to the chip"},
    {TOWPATH_PARAMETER(PcieParameters, dma_from_device), kYesOrNo,
     "whether the DMA engine moves data from the chip to the host"},
    {TOWPATH_PARAMETER(PcieParameters, dma_reads_outstanding), kCount,
     "NoC reads of the DMA engine under way, of one payload each", Form::optional_quantity,
     "fitted to tt-isa-documentation, DMA from L1 in Wormhole's PCIe tile's row against other "
     "rows, by how much a longer way costs"},
    {TOWPATH_PARAMETER(PcieParameters, dma_alignment_bytes), kAlignment,
     "alignment of addresses and sizes of a DMA transfer", Form::optional_quantity, "tt-umd"},
    {TOWPATH_PARAMETER(PcieParameters, dma_transfer_bytes_max), kMemory,
     "size of the longest DMA transfer", Form::optional_quantity, "assumed: sizes have 32 bits"},
    {TOWPATH_PARAMETER(PcieParameters, dma_window_bytes), kMemory,
     "size of the window through which the DMA engine reaches the chip"},
    {TOWPATH_PARAMETER(PcieParameters, host_address), between(0, 0x1p62),
     "where the PCIe tile shows the host's memory to the chip's cores", Form::optional_quantity},
    {TOWPATH_PARAMETER(PcieParameters, host_window_bytes), kMemory,
     "how much of the host's memory it shows", Form::optional_quantity},
};

constexpr Parameter kAlignmentParameters[] = {
    {TOWPATH_PARAMETER(Alignment, l1_bytes), kAlignment, "transfers within L1"},
    {TOWPATH_PARAMETER(Alignment, dram_read_bytes), kAlignment, "reads from DRAM"},
    {TOWPATH_PARAMETER(Alignment, dram_write_bytes), kAlignment, "writes to DRAM"},
};

constexpr Parameter kChipParameters[] = {
    {"clock_mhz", TOWPATH_MEMBER(Chip, clock), between(1, kClockMaxMhz), "clock of the chip"},
    {TOWPATH_PARAMETER(Chip, l1_bytes), kMemory, "memory of a worker"},
};

constexpr Parameter kEthernetTileParameters[] = {
    {TOWPATH_PARAMETER(Chip, ethernet_l1_bytes), kMemory, "memory of an Ethernet core"},
};

constexpr BlockTable kChipTables[] = {
    {"", 0, kChipParameters},
    {"", 0, kEthernetTileParameters, Needed::with_ethernet},
    {"router", offsetof(Chip, router), kRouterParameters},
    {"niu", offsetof(Chip, niu), kNiuParameters},
    {"dram", offsetof(Chip, dram), kDramParameters, Needed::with_dram},
    {"ethernet", offsetof(Chip, ethernet), kEthernetParameters, Needed::with_ethernet},
    {"pcie", offsetof(Chip, pcie), kPcieParameters, Needed::with_host_link},
    {"pcie.windows", offsetof(Chip, pcie) + offsetof(PcieParameters, windows), kWindowParameters,
     Needed::with_host_link, &kListOf<WindowSize>},
    {"alignment", offsetof(Chip, alignment), kAlignmentParameters},
};

}  // namespace

std::span<const BlockTable> chip_tables() { return kChipTables; }

}  // namespace towpath::machine
