// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/device_access.hpp"
#include "towpath/pcie/dma_engine.hpp"
#include "towpath/pcie/line_queue.hpp"
#include "towpath/pcie/noc_reads.hpp"
#include "towpath/pcie/noc_way.hpp"
#include "towpath/pcie/posted_writes.hpp"
#include "towpath/pcie/sysmem_buffers.hpp"
#include "towpath/pcie/transfer.hpp"
#include "towpath/pcie/window_table.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

// Memories behind the tiles of the link's chip. The link has already checked the arguments.
class ChipMemory {
 public:
  virtual ~ChipMemory() = default;
  virtual void read(machine::Coordinate tile, std::uint64_t address, std::span<std::byte> to) = 0;
  virtual void write(machine::Coordinate tile, std::uint64_t address,
                     std::span<const std::byte> bytes) = 0;
};

// How the processor reads a window: a plain copy, or streaming loads, which fetch several lines of
// write-combining memory at once.
enum class Load : std::uint8_t { copy, stream };

// Options for windows of transfers that no configured window covers, and for writes by DMA.
struct TransferOptions {
  Ordering ordering = Ordering::standard;
  Mapping mapping = Mapping::write_combining;
  std::uint64_t window_bytes = 0;  // 0: the driver's default size
  Load load = Load::copy;
  // Offset of the host's buffer from a line: a copy's loads are cut at the buffer's lines, and a
  // load that crosses a line of the window takes two round trips.
  std::uint64_t misalignment_bytes = 0;
};

// A part of a SysmemBuffer, by the buffer's number.
struct BufferRange {
  std::size_t buffer = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

// The link between a host and one of its chips, with the driver's operations. Processes of the
// simulation call it, one at a time: a call takes simulated time, and returns when the real one
// would. Writes are posted: they land in the chip's memory later, in order; a read waits for the
// writes before it.
//
//   simulation.spawn("host", [&] {
//     link.configure_tlb({1, 2}, 2_MiB, 0, Ordering::standard);
//     link.write_to_device(data, {1, 2}, 0x1000);
//     link.read_from_device(back, {1, 2}, 0x1000);
//   });
//
// Wrong: looking into the chip's memory as soon as write_to_device() has returned; or letting the
// DMA engine write where posted writes are still under way, because its data may land after them.
//
// The NoC is assumed idle, and its part of a time computed, until share_noc().
class HostLink {
 public:
  struct Options {
    bool carries_data = true;      // otherwise only time passes; buffers are not touched
    int host_memory_channels = 1;  // 0: the host gives the chip no memory for DMA
    Limits limits = {};
  };

  HostLink(sim::Simulation& simulation, std::shared_ptr<const machine::Host> host,
           std::shared_ptr<const machine::Chip> chip, ChipMemory& memory, const Options& options);
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  // From now on what crosses the link becomes requests of the PCIe tile on the chip's network,
  // where kernels may be: each waits for the other. A line is then some events, and calls of
  // several processes may be under way. `network` must stay, be of the same chip, and have the
  // memories that the link was given. Throws std::invalid_argument where limits are switched off.
  // Nothing may be under way. Kernels there read and write buffers at SysmemBuffer::noc_address of
  // the PCIe tile; transfers by a core that the host asks for are computed as before.
  void share_noc(noc::ChipNetwork& network);
  // Waits until all writes are acknowledged or, if posted, in memory.
  void wait_for_writes();
  // Wakes the process once, when a kernel's next write is in the host's memory. Only on a NoC that
  // is shared.
  void wake_at_landing(sim::Process& process) { shared_->device.wake_at_landing(process); }

  const machine::Chip& chip() const { return *chip_; }
  const machine::Host& host() const { return *host_; }
  const WindowTable& windows() const { return windows_; }

  // Configures a window permanently: transfers inside it need no other. Throws
  // std::invalid_argument when the chip has no such window, or there is no memory behind it.
  WindowNumber configure_tlb(machine::Coordinate tile, std::uint64_t size_bytes,
                             std::uint64_t address, Ordering ordering,
                             Mapping mapping = Mapping::write_combining);
  void free_tlb(WindowNumber number) { windows_.free(number); }

  // All throw std::invalid_argument where there is no memory, or nothing to move.
  Transfer write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                           std::uint64_t address, const TransferOptions& options = {});
  Transfer read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                            std::uint64_t address, const TransferOptions& options = {});

  // For software that writes the registers of windows itself, as a driver does: stores to them, a
  // load of one, and accesses through a window that they describe. Throw std::invalid_argument
  // beyond the window, and where there is no memory.
  Transfer write_registers(std::uint64_t size_bytes);
  Transfer read_register();
  Transfer write_window(const Window& window, std::uint64_t offset,
                        std::span<const std::byte> data);
  Transfer read_window(const Window& window, std::uint64_t offset, std::span<std::byte> to);

  // DMA through the driver's bounce buffer. Where the engine cannot, or there is no memory for it,
  // the processor moves the data, and the transfer says so.
  Transfer dma_write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                               std::uint64_t address, const TransferOptions& options = {});
  Transfer dma_read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                                std::uint64_t address, const TransferOptions& options = {});
  // Reason why dma_...() would not use the engine; empty when it would.
  std::string dma_obstacle(Direction direction) const;

  // Allocates a buffer: pinned, zeroed, mapped for the device. Throws std::invalid_argument without
  // host memory channels, and where neither an IOMMU nor hugepages make it contiguous for the
  // device.
  std::size_t allocate_sysmem_buffer(std::uint64_t size_bytes);
  // The same of a buffer that a driver has pinned before the simulation began: it takes no time.
  std::size_t take_pinned_buffer(std::uint64_t size_bytes);
  // The same of memory that the program has, which must stay until it is unmapped. It is taken to
  // begin with a page. Throws as well without an IOMMU: the program's pages are not contiguous.
  std::size_t map_sysmem_buffer(std::span<std::byte> memory);
  void unmap_sysmem_buffer(std::size_t number);
  SysmemBuffer& sysmem_buffer(std::size_t number) { return buffers_.at(number); }
  // DMA without a copy. Throw std::invalid_argument where the engine cannot, and for a buffer that
  // is not mapped or too small.
  Transfer dma_write_to_device(const BufferRange& from, machine::Coordinate tile,
                               std::uint64_t address, const TransferOptions& options = {});
  Transfer dma_read_from_device(const BufferRange& to, machine::Coordinate tile,
                                std::uint64_t address, const TransferOptions& options = {});
  // Transfers by a core of the chip, between its own memory and a buffer.
  Transfer noc_write_to_host(const BufferRange& to, machine::Coordinate tile,
                             std::uint64_t address);
  Transfer noc_read_from_host(const BufferRange& from, machine::Coordinate tile,
                              std::uint64_t address);

 private:
  // Bytes that arrive in the chip's memory at one time.
  struct Landing {
    HostLink* link;
    machine::Coordinate tile;
    std::uint64_t address;
    std::vector<std::byte> bytes;
    std::list<Landing>::iterator place;
  };
  // Part of a transfer that goes through one window.
  struct Piece {
    machine::Coordinate tile;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    Ordering ordering = Ordering::standard;
    Mapping mapping = Mapping::write_combining;
  };

  void check(machine::Coordinate tile, std::uint64_t address, std::uint64_t size_bytes) const;
  std::size_t pin(std::uint64_t size_bytes);
  std::size_t add_buffer(std::uint64_t size_bytes);
  void check_contiguous(std::uint64_t size_bytes) const;
  void check_buffer(const BufferRange& range, machine::Coordinate tile, std::uint64_t address);
  Piece piece_of(const Window& window, std::uint64_t offset, std::uint64_t size_bytes) const;
  Piece next_piece(Account& account, machine::Coordinate tile, std::uint64_t address,
                   std::uint64_t size_bytes, const TransferOptions& options);
  void write_piece(Account& account, const Piece& piece, std::span<const std::byte> data);
  void write_run(Account& account, const Piece& piece, std::span<const std::byte> data);
  void pass_lines(Account& account, const Piece& piece, std::span<const std::byte> data);
  void read_piece(Account& account, const Piece& piece, std::span<std::byte> to,
                  const TransferOptions& options);
  // How the processor cuts a piece into loads: at multiples of `unit`, of which the piece begins
  // `phase` behind one, and perhaps at the window's lines.
  struct Loads {
    std::uint64_t unit = 1;
    std::uint64_t phase = 0;
    bool are_cut_at_lines = false;
    int overlapping = 1;
  };
  Loads loads_of(const Piece& piece, const TransferOptions& options) const;
  void read_loads(Account& account, const Piece& piece, std::span<std::byte> to,
                  const Loads& loads);
  Time one_way() const;
  void spend_wait_for_writes(Account& account) const;
  void spend_round_trips(Account& account, const Piece& piece, std::uint64_t count) const;
  void read_over_noc(Account& account, const Piece& piece, std::span<std::byte> to,
                     const Loads& loads);
  // A transfer by the engine, through the driver's bounce buffer or not.
  struct DmaPath {
    Direction direction;
    bool bounces;
    machine::Coordinate tile;
    std::uint64_t address;
    std::uint64_t size_bytes;
  };
  // A part of it that the engine takes at once.
  struct DmaPart {
    const DmaPath& path;
    std::uint64_t at;
    std::uint64_t size_bytes;
    Stream stream;
    Ordering ordering;

    noc::Address address() const { return {path.tile, path.address + at}; }
  };
  // `host_bytes` gives the host's bytes of a part by offset and size.
  template <typename HostBytes>
  Transfer run_dma(const DmaPath& path, const TransferOptions& options, HostBytes host_bytes);
  void move_part(Account& account, const DmaPart& part, std::span<const std::byte> from);
  void move_part(Account& account, const DmaPart& part, std::span<std::byte> to);
  void spend_stream(Account& account, const DmaPart& part);
  void move_over_noc(const DmaPart& part, std::span<const std::byte> from);
  void move_over_noc(const DmaPart& part, std::span<std::byte> to);
  // When the link is free for more of an engine's bytes.
  Time& link_free(Direction direction) {
    return direction == Direction::to_device ? link_free_.to_device : link_free_.from_device;
  }
  void take_dma_channel(Account& account);
  void give_dma_channel();
  template <typename Byte>
  Transfer bounce(std::span<Byte> bytes, machine::Coordinate tile, std::uint64_t address,
                  const TransferOptions& options);
  Rate bounce_rate(Direction direction, std::uint64_t size_bytes) const;
  Transfer by_device(Direction direction, machine::Coordinate tile, std::uint64_t size_bytes);
  void land(Time when, machine::Coordinate tile, std::uint64_t address,
            std::span<const std::byte> bytes);
  static void landed(void* landing);

  sim::Simulation& simulation_;
  std::shared_ptr<const machine::Host> host_;
  std::shared_ptr<const machine::Chip> chip_;
  ChipMemory& memory_;
  Options options_;
  WindowTable windows_;
  PostedWrites posted_;
  SysmemBuffers buffers_;
  std::list<Landing> landings_;
  struct Shared {  // a NoC that kernels use too
    Shared(noc::ChipNetwork& with, const machine::Host& host, SysmemBuffers& buffers,
           LinkFree& link_free)
        : network(with), lines(host, with), device(host, with, buffers, link_free) {}
    noc::ChipNetwork& network;
    LineQueue lines;
    DeviceAccess device;
  };
  LinkFree link_free_;
  std::unique_ptr<Shared> shared_;
  int dma_channels_free_;
  std::deque<sim::Process*> dma_waiting_;  // in order
};

}  // namespace towpath::pcie
