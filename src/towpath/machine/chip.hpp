// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/ethernet_figures.hpp"
#include "towpath/machine/pcie_figures.hpp"

// A described chip: a grid of tiles that two opposite one-way tori join, and what moving data on it
// costs. Nothing here knows one chip from another; the figures come from a spec
// (python/towpath/specs/chip_spec.py), each with its source.

namespace towpath::machine {

enum class TileKind : std::uint8_t { worker, dram, ethernet, pcie, arc, router_only, harvested };
std::string_view name_of(TileKind kind);

// A tile's place on the grid, in the coordinates of NoC 0: x grows to the right, y downwards.
struct Coordinate {
  int x = 0;
  int y = 0;
  auto operator<=>(const Coordinate&) const = default;
};

struct Tile {
  TileKind kind = TileKind::router_only;
  // Of a DRAM tile: the group of channels behind it, shared with the other tiles of that group.
  int dram_group = -1;
};

// Bytes per cycle of the chip's clock, in 1/256 byte: exact for every figure that a spec may hold.
class BytesPerCycle {
 public:
  constexpr BytesPerCycle() = default;
  static constexpr BytesPerCycle from(double bytes_per_cycle) {
    return BytesPerCycle(static_cast<std::uint32_t>(bytes_per_cycle * 256 + 0.5));
  }
  constexpr double value() const { return in_256ths_ / 256.0; }
  constexpr auto operator<=>(const BytesPerCycle&) const = default;

 private:
  explicit constexpr BytesPerCycle(std::uint32_t in_256ths) : in_256ths_(in_256ths) {}
  std::uint32_t in_256ths_ = 0;
};

// Routers and the links between them. All delays in cycles of the chip's clock.
struct RouterFigures {
  int flit_bytes = 32;
  int packet_data_flits_max = 256;  // besides the header flit
  int hop_cycles = 9;               // from leaving one router to being able to leave the next
  int niu_to_router_cycles = 5;
  int router_to_niu_cycles = 5;
  int credit_return_cycles = 7;  // from leaving a buffer to the sender knowing; also the way
                                 // back, per hop, of a granted path reservation
  int classes = 4;               // a VC is dateline bit, class and buddy bit
  int pool_flits = 48;           // shared by all VCs of a port, besides one flit of each VC
  int pool_flits_per_vc_max = 15;
  int pool_flits_reserved = 3;  // the pool counts as full when no more than these are free
  int vc_release_cycles = 2;    // from a packet's last flit until its output VC is free for others
  bool has_dateline = true;     // false: the bit never flips, and the torus can deadlock
};

// Network interface of a tile.
struct NiuFigures {
  int initiators = 4;  // requests that software can have under way to the network
  int transaction_ids = 16;
  int outstanding_per_id_max = 255;
  int request_cycles = 0;              // from a request's issue to its header flit
  int read_response_cycles = 0;        // from a read request's arrival to its first response flit
  int acknowledge_cycles = 0;          // from a write's last flit to its acknowledgement
  BytesPerCycle port_rate;             // of the memory port, either way, all packets together
  BytesPerCycle request_stream_rate;   // at which one request's data is read from memory
  int request_streams = 1;             // of which so many overlap
  BytesPerCycle response_stream_rate;  // at which responses' data is read, one after the other
  int backoff_cycles_min = 16;    // a refused path reservation is tried again after a random time
  int backoff_cycles_max = 1024;  // of at most min x 2^n cycles in the n-th try, up to this
};

struct DramFigures {
  int channels_per_group = 0;
  BytesPerCycle channel_rate;  // sustained, of one channel
  int read_cycles = 0;         // from the request at the channel to the first byte
  int write_cycles = 0;        // from the last byte at the channel to the acknowledgement
  std::uint64_t channel_bytes = 0;
};

// What software on a worker's data-movement core pays per call.
struct SoftwareFigures {
  int write_cycles = 0;             // noc_async_write
  int read_cycles = 0;              // noc_async_read
  int write_with_state_cycles = 0;  // the same with destination and size set beforehand
  int read_with_state_cycles = 0;
  int read_held_up_cycles = 0;  // added to a read call by each read response that its NIU
                                // takes or gives meanwhile
  int set_state_cycles = 0;
  int multicast_cycles = 0;  // noc_async_write_multicast
  int inline_write_cycles = 0;
  int atomic_cycles = 0;             // noc_semaphore_inc
  int poll_cycles = 1;               // period in which a wait looks again
  int call_cycles = 0;               // of whatever else a kernel calls
  int write_destination_cycles = 0;  // a loop over destinations, per further one
  int read_destination_cycles = 0;
  int reduce_bytes_per_cycle = 32;  // of one operand, by the compute cores of a worker
  int reduce_latency_cycles = 0;    // on top, from the last byte in L1 to the first result there
};

struct Alignment {
  int l1_bytes = 16;
  int dram_read_bytes = 32;
  int dram_write_bytes = 16;
};

// Immutable; made by build_chip.
struct Chip {
  std::string name;
  int width = 0;
  int height = 0;
  Frequency clock;
  std::vector<Tile> tiles;                           // row by row, tile (x, y) at y * width + x
  std::vector<std::vector<Coordinate>> dram_groups;  // tiles of each group, as the spec lists them
  std::vector<Coordinate> workers;                   // in logical order, row by row, no harvested
  int worker_columns = 0;                            // logical grid: workers per row
  std::vector<Coordinate> ethernet_cores;            // by channel; every Ethernet tile has one
  std::vector<Coordinate> pcie_tiles;                // row by row, from the tiles
  std::uint64_t harvested_ethernet = 0;              // a bit per channel of the whole chip
  std::uint64_t l1_bytes = 0;
  std::uint64_t ethernet_l1_bytes = 0;
  RouterFigures router;
  NiuFigures niu;
  DramFigures dram;
  SoftwareFigures software;
  EthernetFigures ethernet;  // of a chip with Ethernet cores
  EthernetSoftwareFigures ethernet_software;
  PcieFigures pcie;  // of a chip with a host link
  Alignment alignment;

  bool holds(Coordinate at) const {
    return at.x >= 0 && at.x < width && at.y >= 0 && at.y < height;
  }
  int number_of(Coordinate at) const { return at.y * width + at.x; }
  Coordinate coordinate_of(int number) const { return {number % width, number / width}; }
  const Tile& tile(Coordinate at) const { return tiles[static_cast<std::size_t>(number_of(at))]; }
  bool has_host_link() const { return !pcie_tiles.empty() && !pcie.windows.empty(); }
  int worker_rows() const { return static_cast<int>(workers.size()) / worker_columns; }
  // The worker at a place of the logical grid, which has no gaps. Throws std::invalid_argument
  // outside of it.
  Coordinate worker(int logical_x, int logical_y) const;
};

// Checks a description and completes it: `tiles` must hold width * height tiles, from which
// `pcie_tiles` follow. `workers`, `dram_groups`, `worker_columns` and `ethernet_cores` may be left
// empty, they follow from the tiles too, row by row. Throws std::invalid_argument with one sentence
// on whatever does not fit.
std::shared_ptr<const Chip> build_chip(Chip chip);

}  // namespace towpath::machine
