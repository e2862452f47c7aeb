// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/metalium/kernel_memory.hpp"

namespace towpath::tenstorrent::metalium {

// The Ethernet interface of a kernel in source form.
class KernelEthernet {
 public:
  KernelEthernet(DataMovementCore& core, KernelClock& clock, KernelMemory& memory,
                 Processor processor)
      : core_(core), clock_(clock), memory_(memory), processor_(processor) {}

  // A call of TowpathEthernetCall with up to six arguments. A test of the interface is a poll. Any
  // other call ends a series of polls. A turn of the base firmware does neither: polling loops
  // contain one.
  std::uint32_t call(int call, const std::uint32_t* arguments);

 private:
  // Rejects the call on a worker.
  EthernetCore& core() const;
  std::uint32_t test(int call, int channel);
  std::uint32_t barrier(int call, int noc);
  std::uint32_t channel_call(int call, const std::uint32_t* arguments);
  std::uint32_t wait(int call, const std::uint32_t* arguments);

  DataMovementCore& core_;
  KernelClock& clock_;
  KernelMemory& memory_;
  Processor processor_;
};

}  // namespace towpath::tenstorrent::metalium
