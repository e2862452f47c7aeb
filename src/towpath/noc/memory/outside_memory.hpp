// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "towpath/base/units.hpp"

namespace towpath::noc {

// Memory that cores reach through a tile and that is not on the chip: the host's, behind the PCIe
// tile. All calls but obstacle() are made while a cycle is being simulated, in which it may not
// call the network; it answers reads later, by ChipNetwork::answer().
class OutsideMemory {
 public:
  // One packet of a read. The tag and the VC are the network's.
  struct Read {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t tag = 0;
    int noc = 0;
    int node = 0;
    int vc = 0;
  };

  virtual ~OutsideMemory() = default;
  // The error of an access to these bytes, as the end of a sentence that begins with "the
  // read of 64 bytes from (0, 3)", or empty if it is allowed.
  virtual std::string obstacle(std::uint64_t offset, std::uint64_t size_bytes) const = 0;
  // The tile takes a flit of a write's packet, of `flits` that bring `size_bytes` together. Returns
  // when it has room for the next one.
  virtual Time take_flit(std::uint64_t size_bytes, int flits) = 0;
  // The tile has taken the last flit of a write's packet. `data` is empty where only time passes.
  // Returns how much later than the tile's interface it acknowledges the packet.
  virtual Time write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  // A read has arrived. Until it is answered, nothing behind it on its VC is taken.
  virtual void read(const Read& read) = 0;
  // The last flit of a read's answer, of `size_bytes`, has left the tile.
  virtual void answer_left(std::uint64_t size_bytes) = 0;
};

}  // namespace towpath::noc
