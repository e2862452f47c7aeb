// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/dma.hpp"
#include "towpath/pcie/idle_noc_path.hpp"
#include "towpath/pcie/mmio.hpp"
#include "towpath/pcie/shared_noc_path.hpp"
#include "towpath/pcie/sysmem_buffers.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

// The link between a host and one of its chips, with the driver's operations. Processes of the
// simulation call it, one at a time: a call takes simulated time, and returns when the real one
// would. Writes are posted: they land in the chip's memory later, in order. A read waits for the
// writes before it.
//
//   simulation.spawn("host", [&] {
//     link.configure_tlb({1, 2}, 2_MiB, 0, Ordering::standard);
//     link.write_to_device(data, {1, 2}, 0x1000);
//     link.read_from_device(back, {1, 2}, 0x1000);
//   });
//
// Wrong: reading the chip's memory right after write_to_device() has returned, or letting the DMA
// engine write while posted writes are in flight, because its data may land after them.
//
// Until share_noc(), the NoC is assumed to be idle, and its part of a time is computed.
class HostLink {
 public:
  struct Options {
    bool carries_data = true;      // otherwise only time passes; buffers are not accessed
    int host_memory_channels = 1;  // 0: no host memory for DMA
    Limits limits = {};
  };

  HostLink(sim::Simulation& simulation, std::shared_ptr<const machine::Host> host,
           std::shared_ptr<const machine::Chip> chip, ChipMemory& memory, const Options& options);
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  // From now on transfers become requests of the PCIe tile on the chip's network, which kernels may
  // use: each waits for the other. A line then takes some events, and calls of several processes
  // may be in flight. `network` must outlive this object, belong to the same chip, and have the
  // link's memories. Throws std::invalid_argument if limits are switched off. No call may be in
  // flight. Kernels read and write buffers at SysmemBuffer::noc_address of the PCIe tile. Transfers
  // by a core on behalf of the host are computed as before.
  void share_noc(noc::ChipNetwork& network);
  // Waits until all writes are acknowledged or, if posted, in memory.
  void wait_for_writes() { path_->wait_for_writes(); }
  // Wakes the process once, when a kernel's next write is in host memory. Requires share_noc().
  void wake_at_landing(sim::Process& process) { shared_->device().wake_at_landing(process); }

  const machine::Chip& chip() const { return *chip_; }
  const machine::Host& host() const { return *host_; }
  const WindowTable& windows() const { return windows_; }

  // Configures a permanent window: transfers inside it need no other. Throws std::invalid_argument
  // if the chip has no such window, or there is no memory behind it.
  WindowNumber configure_tlb(machine::Coordinate tile, std::uint64_t size_bytes,
                             std::uint64_t address, Ordering ordering,
                             Mapping mapping = Mapping::write_combining);
  void free_tlb(WindowNumber number) { windows_.free(number); }

  // All throw std::invalid_argument if there is no memory, or no byte to move.
  Transfer write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                           std::uint64_t address, const TransferOptions& options = {});
  Transfer read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                            std::uint64_t address, const TransferOptions& options = {});

  // For software that writes the registers of windows itself, like a driver: stores to them, a load
  // of one, and accesses through a window that they describe. Throw std::invalid_argument beyond
  // the window, and if there is no memory.
  Transfer write_registers(std::uint64_t size_bytes) { return mmio_.write_registers(size_bytes); }
  Transfer read_register() { return mmio_.read_register(); }
  Transfer write_window(const Window& window, std::uint64_t offset,
                        std::span<const std::byte> data) {
    return mmio_.write(piece_of(window, offset, data.size()), data);
  }
  Transfer read_window(const Window& window, std::uint64_t offset, std::span<std::byte> to) {
    return mmio_.read(piece_of(window, offset, to.size()), to);
  }

  // DMA through the driver's bounce buffer. If the engine cannot do this, or there is no memory for
  // it, the processor moves the data, and the transfer records this.
  Transfer dma_write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                               std::uint64_t address, const TransferOptions& options = {});
  Transfer dma_read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                                std::uint64_t address, const TransferOptions& options = {});
  // Reason for which dma_...() would not use the engine. Empty if it would.
  std::string dma_obstacle(Direction direction) const;

  // Allocates a buffer: pinned, zeroed, mapped for the device. Throws std::invalid_argument without
  // host memory channels, and if neither an IOMMU nor hugepages make it contiguous for the
  // device.
  std::size_t allocate_sysmem_buffer(std::uint64_t size_bytes);
  // The same for a buffer pinned before the start of the simulation. Takes no time.
  std::size_t take_pinned_buffer(std::uint64_t size_bytes) { return buffers_.allocate(size_bytes); }
  // The same for the program's memory, which must exist until it is unmapped. It is assumed to be
  // page-aligned. Also throws without an IOMMU: the program's pages are not contiguous.
  std::size_t map_sysmem_buffer(std::span<std::byte> memory);
  void unmap_sysmem_buffer(std::size_t number) { simulation_.sleep(buffers_.unmap(number)); }
  SysmemBuffer& sysmem_buffer(std::size_t number) { return buffers_.at(number); }
  // DMA without a copy. Throw std::invalid_argument if the engine cannot do it, and for a buffer
  // that is not mapped or too small.
  Transfer dma_write_to_device(const BufferRange& from, machine::Coordinate tile,
                               std::uint64_t address, const TransferOptions& options = {});
  Transfer dma_read_from_device(const BufferRange& to, machine::Coordinate tile,
                                std::uint64_t address, const TransferOptions& options = {});
  // Transfers by a chip core, between its memory and a buffer.
  Transfer noc_write_to_host(const BufferRange& to, machine::Coordinate tile,
                             std::uint64_t address);
  Transfer noc_read_from_host(const BufferRange& from, machine::Coordinate tile,
                              std::uint64_t address);

 private:
  LinkEnds ends() const { return {simulation_, *host_, *chip_, options_.carries_data}; }
  void check(machine::Coordinate tile, std::uint64_t address, std::uint64_t size_bytes) const;
  Piece piece_of(const Window& window, std::uint64_t offset, std::uint64_t size_bytes) const;
  void check_buffer(const BufferRange& range, machine::Coordinate tile, std::uint64_t address);
  std::span<std::byte> bytes_of(const BufferRange& range) {
    return buffers_.at(range.buffer).memory().subspan(range.offset, range.size_bytes);
  }
  Transfer by_device(Direction direction, machine::Coordinate tile, std::uint64_t size_bytes);

  sim::Simulation& simulation_;
  std::shared_ptr<const machine::Host> host_;
  std::shared_ptr<const machine::Chip> chip_;
  ChipMemory& memory_;
  Options options_;
  WindowTable windows_;
  SysmemBuffers buffers_;
  LinkFree link_free_;
  IdleNocPath idle_;
  std::optional<SharedNocPath> shared_;
  ChipPath* path_;  // one of the two
  Mmio mmio_;
  Dma dma_;
};

}  // namespace towpath::pcie
