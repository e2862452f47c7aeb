// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "towpath/base/units.hpp"
#include "towpath/gpu/include/towpath_gpu.h"
#include "towpath/gpu/knowledge.hpp"

// Which bytes of a PE transfers are reading or have filled, so that a kernel that touches them too
// early is named: by a block that reads what a peer put, or changes what an own put reads, and
// cannot know that the put is complete (knowledge.hpp says how it would).

namespace towpath::gpu {

namespace abi = towpath_gpu;

struct MonitoredTransfer {
  std::uintptr_t end = 0;
  TransferIdentity identity{};
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
  // The first in a range of bytes for which matches(transfer), or null.
  template <typename Matches>
  const MonitoredTransfer* find_if(std::uintptr_t begin, std::uint64_t size_bytes,
                                   const Matches& matches) const {
    auto each = ranges_.upper_bound(begin);
    if (each != ranges_.begin()) --each;
    for (; each != ranges_.end() && each->first < begin + size_bytes; ++each) {
      if (each->second.end > begin && matches(each->second)) return &each->second;
    }
    return nullptr;
  }
  // The bytes around an address that have the same transfer, or none.
  abi::Range around(std::uintptr_t address) const;

 private:
  std::map<std::uintptr_t, MonitoredTransfer> ranges_;  // by their beginning
};

struct MemoryMonitor {
  MonitoredRanges incoming;  // what peers put here
  MonitoredRanges sources;   // what own puts read
};

}  // namespace towpath::gpu
