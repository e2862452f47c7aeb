// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "towpath/base/units.hpp"

// A described host: what its processor, its root complex and its driver make of a chip's link. The
// same chip is three times faster on one host than on another, so nothing of this is the chip's.
// The figures come from a spec (python/towpath/specs/host_spec.py), each with its source.

namespace towpath::machine {

// The root complex and the slot.
struct HostLinkFigures {
  int generation = 4;
  int lanes = 16;
  int payload_bytes_max = 128;        // of a write in either direction
  int read_request_bytes_max = 512;   // what a device may ask for at once
  int completion_bytes = 64;          // what the host answers a device's read with at a time
  int device_reads_outstanding = 32;  // read requests of a device under way
  Time read_time;  // of a read, either way, without the chip: half of it is one way
};

// Loads and stores of one core to a mapped window.
struct HostCoreFigures {
  Time call_time;                // of write_to_device or read_from_device, before the first byte
  Rate store_rate;               // at which it fills write-combining buffers
  int posted_writes_max = 1;     // that have left the core, and the chip has not taken
  Time posted_write_interval;    // between two of them
  int uncached_store_bytes = 1;  // of a store to uncached memory
  Time uncached_store_time;
  int load_bytes = 1;                // of a copy from a window
  int stream_load_bytes = 1;         // of a streaming load from uncached memory
  int stream_loads_outstanding = 1;  // lines of write-combining memory that they fetch at once
  bool copies_words = false;         // a copy reads and writes words of 4 bytes, whole ones only
};

struct HostDriverFigures {
  Time window_time;                // to allocate, configure and free a window for one transfer
  Time dma_time;                   // to set a DMA transfer up and to notice its end
  std::uint64_t bounce_bytes = 0;  // of the buffer through which pageable memory goes
  Rate bounce_write_rate;          // copying into it
  Rate bounce_read_rate;           // copying out of it
  std::uint64_t cache_bytes = 0;   // while source, target and bounce buffer fit in it
  Rate bounce_write_rate_uncached;
  Rate bounce_read_rate_uncached;
};

// Pinning host memory for a device, and translating its addresses.
struct HostMemoryFigures {
  bool has_iommu = true;
  bool has_hugepages = false;
  std::uint64_t page_bytes = 4096;
  std::uint64_t hugepage_bytes = std::uint64_t{2} << 20;
  Time map_time;       // of a buffer, besides its pages
  Time map_page_time;  // of each page
  Time unmap_time;
  Time unmap_page_time;
  Time translation_time;  // of the first access to a page that the IOMMU does not remember
};

// Immutable; made by build_host.
struct Host {
  std::string name;
  HostLinkFigures link;
  HostCoreFigures core;
  HostDriverFigures driver;
  HostMemoryFigures memory;

  std::uint64_t page_bytes() const {
    return memory.has_hugepages ? memory.hugepage_bytes : memory.page_bytes;
  }
};

// Checks a description. Throws std::invalid_argument with one sentence on whatever does not fit.
std::shared_ptr<const Host> build_host(Host host);

}  // namespace towpath::machine
