// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "towpath/base/units.hpp"
#include "towpath/gpu/include/towpath_gpu.h"

// Which bytes of a PE transfers are reading or have filled, so that a kernel that touches them too
// early is named. A block learns that a transfer has ended by a wait that ends after the transfer
// began, or by quiet(); a block that reads what a peer put, or changes what its own put still
// reads, with no such wait since, cannot know.
//
// Clean programs are never accused. Of the others, those are named in which no wait of any kind
// lies between the transfer's beginning and the access.

namespace towpath::gpu {

namespace abi = towpath_gpu;

struct MonitoredTransfer {
  std::uintptr_t end = 0;
  std::uint64_t number = 0;  // of the operation
  Time began{};
  std::string what{};  // the call, its place, who made it
};

// Ranges that do not overlap: a later transfer takes the bytes of an earlier one over.
class MonitoredRanges {
 public:
  void add(std::uintptr_t begin, std::uint64_t size_bytes, const MonitoredTransfer& transfer);
  // Forgets a transfer that was added with these bytes.
  void remove(std::uintptr_t begin, std::uint64_t size_bytes, std::uint64_t number);

  // The transfer that has the byte, or null.
  const MonitoredTransfer* find(std::uintptr_t address) const;
  // The first that began at `time` or later in a range of bytes, or null.
  const MonitoredTransfer* find_since(std::uintptr_t begin, std::uint64_t size_bytes,
                                      Time time) const;
  // The bytes around an address that have the same transfer, or none.
  abi::Range around(std::uintptr_t address) const;

 private:
  std::map<std::uintptr_t, MonitoredTransfer> ranges_;  // by their beginning
};

struct MemoryMonitor {
  MonitoredRanges incoming;  // what peers put here
  MonitoredRanges sources;   // what own puts still read
};

}  // namespace towpath::gpu
