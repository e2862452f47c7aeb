// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/machine/host.hpp"

namespace towpath::pcie {

// Host memory accessible to the device, created by HostLink::allocate_sysmem_buffer() or
// map_sysmem_buffer().
struct SysmemBuffer {
  std::uint64_t size_bytes = 0;
  bool is_mapped = false;
  Time map_time;                 // time for pinning and mapping
  std::vector<std::byte> bytes;  // empty if owned by the program, or if no data is carried
  std::span<std::byte> programs_own;
  // Address at which the PCIe tile shows it to the chip's cores. None if its window has no room
  // left.
  std::optional<std::uint64_t> noc_address;

  std::span<std::byte> memory() { return programs_own.empty() ? std::span(bytes) : programs_own; }
};

// A part of a SysmemBuffer, by the buffer's number.
struct BufferRange {
  std::size_t buffer = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

// The buffers of one chip, by number, and their addresses in the window of the chip's cores to the
// host: at the first page with enough space.
class SysmemBuffers {
 public:
  struct Options {
    bool carries_data = true;      // otherwise buffers have no bytes
    int host_memory_channels = 1;  // 0: the host gives the chip no memory
  };
  SysmemBuffers(const machine::Host& host, const machine::Chip& chip, const Options& options)
      : host_(host),
        chip_name_(chip.name),
        options_(options),
        first_(chip.pcie.host_address),
        window_bytes_(chip.pcie.host_window_bytes) {}

  // Add a mapped buffer, zeroed or of the program's memory, and return its number. Throw
  // std::invalid_argument without host memory channels, and if neither an IOMMU nor hugepages make
  // the buffer contiguous for the device.
  std::size_t allocate(std::uint64_t size_bytes);
  std::size_t map(std::span<std::byte> memory);
  // Returns its duration.
  Time unmap(std::size_t number);
  // Throws std::invalid_argument if there is none.
  SysmemBuffer& at(std::size_t number);
  // Throws std::invalid_argument unless the range is in a mapped buffer.
  void check(const BufferRange& range);
  // The mapped buffer that contains all of these bytes; null if there is none.
  SysmemBuffer* find(std::uint64_t noc_address, std::uint64_t size_bytes);
  // "mapped are 0x800000000 to 0x8000fffff"
  std::string describe() const;

 private:
  std::size_t add(std::uint64_t size_bytes);
  std::vector<const SysmemBuffer*> by_address() const;
  std::optional<std::uint64_t> room_for(std::uint64_t size_bytes) const;

  const machine::Host& host_;
  std::string chip_name_;
  Options options_;
  std::uint64_t first_;
  std::uint64_t window_bytes_;
  std::deque<SysmemBuffer> buffers_;
};

}  // namespace towpath::pcie
