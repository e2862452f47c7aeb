// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/dma_engine.hpp"
#include "towpath/pcie/sysmem_buffers.hpp"

namespace towpath::pcie {

// The host's memory as seen by the chip's cores through the PCIe tile.
//
// The tile accepts a write's flits at the rate of the link, in packets of the link's payload, so a
// link that is slower than the NoC blocks the NoC. An accepted write is acknowledged, and its bytes
// are in the host's memory half a round trip later. A read becomes read requests of the link, of
// which a limited number is in flight, for all reads together and in order. A request follows the
// earlier writes, sees their bytes, and is answered at the rate of the link. While no place is
// free, a read holds its VC, and the NoC waits behind it.
class DeviceAccess final : private noc::OutsideMemory {
 public:
  // All of them must outlive this object.
  DeviceAccess(const machine::Host& host, noc::ChipNetwork& network, SysmemBuffers& buffers,
               LinkFree& link_free);
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

  // Wakes the process once, when the next write is in host memory.
  void wake_at_landing(sim::Process& process) { waiting_.push_back(&process); }

 private:
  struct Write {
    std::uint64_t address = 0;
    std::vector<std::byte> data;
  };
  struct PendingRead {
    Read read;
    std::uint64_t asked_bytes = 0;  // requested from the host
    Time first;                     // arrival of its first bytes in the tile
  };
  // A read request of the link.
  struct Request {
    Read read;
    std::uint64_t at = 0;  // offset in the read
    std::uint64_t size_bytes = 0;
    bool is_last() const { return at + size_bytes == read.size_bytes; }
    std::uint64_t address() const { return read.offset + at; }
  };

  std::string obstacle(std::uint64_t offset, std::uint64_t size_bytes) const override;
  Time take_flit(std::uint64_t size_bytes, int flits) override;
  Time write(std::uint64_t offset, std::span<const std::byte> data) override;
  void read(const Read& read) override;
  void answer_left(std::uint64_t size_bytes) override;

  static void landed(void* self);
  static void ask_host(void* self);
  static void asked(void* self);
  static void answered(void* self);
  void ask_soon();
  void ask(PendingRead& pending);
  // The host's bytes at an address of the chip. Empty if no data is carried. Throws
  // std::runtime_error if they have been unmapped.
  std::span<std::byte> bytes_at(std::uint64_t address, std::uint64_t size_bytes);
  // Time of packets of at most `unit` bytes on the link.
  Time on_link(std::uint64_t size_bytes, int unit, int overhead_bytes) const;

  noc::ChipNetwork& network_;
  SysmemBuffers& buffers_;
  LinkFree& free_;
  machine::HostLinkParameters link_;
  Rate raw_rate_;
  Time cycle_;
  Time half_tile_;
  Time to_host_;    // from the chip's end of the link to the host's memory
  Time from_host_;  // from host memory to the chip's NoC
  std::uint64_t answers_max_bytes_;
  std::deque<Write> landing_;
  std::vector<sim::Process*> waiting_;
  std::deque<PendingRead> reads_;
  std::deque<Request> going_;        // to the host
  std::deque<Request> returning_;    // from it
  int under_way_ = 0;                // requests in flight on the link
  std::int64_t complete_bytes_ = 0;  // of reads with an answer that has not left
  bool is_ask_due_ = false;
};

}  // namespace towpath::pcie
