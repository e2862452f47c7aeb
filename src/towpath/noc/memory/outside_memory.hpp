// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "towpath/base/units.hpp"

namespace towpath::noc {

// Memory outside the chip that cores reach through a tile: the host's, behind the PCIe tile. All
// calls except obstacle() are made during the simulation of a cycle, in which the memory must not
// call the network. It answers reads later, with ChipNetwork::answer().
class OutsideMemory {
 public:
  // One packet of a read. The tag and the VC belong to the network.
  struct Read {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t tag = 0;
    int noc = 0;
    int node = 0;
    int vc = 0;
  };

  virtual ~OutsideMemory() = default;
  // The error of an access to these bytes, as the end of a sentence that starts with "the read of
  // 64 bytes from (0, 3)". Empty if the access is allowed.
  virtual std::string obstacle(std::uint64_t offset, std::uint64_t size_bytes) const = 0;
  // The tile takes a flit of a write's packet of `flits` flits with `size_bytes` in total. Returns
  // the time at which it has room for the next one.
  virtual Time take_flit(std::uint64_t size_bytes, int flits) = 0;
  // The tile has taken the last flit of a write's packet. `data` is empty if only time is
  // simulated. Returns the additional time of the acknowledgment after the tile's interface.
  virtual Time write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  // A read has arrived. Until it is answered, the tile takes nothing behind it on its VC.
  virtual void read(const Read& read) = 0;
  // The last flit of a read's answer, of `size_bytes`, has left the tile.
  virtual void answer_left(std::uint64_t size_bytes) = 0;
};

}  // namespace towpath::noc
