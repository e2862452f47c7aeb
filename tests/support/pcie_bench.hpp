// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chips.hpp"
#include "towpath/noc/memory/memory.hpp"
#include "towpath/pcie/host_link.hpp"

// A host link with parameters with which times are easily computed by hand, and plain memories
// behind it.

namespace towpath::pcie {

using machine::Coordinate;

// 4 x 4 tiles at 1 GHz: PCIe tile 0-3, workers 1-0 to 3-2 but 2-2, which is harvested with its
// column, DRAM 0-0. Hops take 9 cycles, so the way to another row and column is 8 x 9 = 72 ns
// there and back, to the same row 36; interfaces take 50 ns for a write and 70 for a read.
inline constexpr Coordinate kSameRow{1, 3};
inline constexpr Coordinate kOther{1, 1};
inline constexpr Coordinate kHarvested{2, 1};
inline constexpr Coordinate kDram{0, 0};
inline constexpr Coordinate kPcie{0, 3};
// Where the PCIe tile shows 4 MiB of the host's memory.
inline constexpr std::uint64_t kHostAddress = 0x8'0000'0000;

machine::Chip link_chip();
// One lane of generation 3 per byte and ns, nearly: 16 lanes carry 15.75 GB/s.
machine::Host link_host();

// Keeps when it was written.
class PlainChipMemory : public ChipMemory {
 public:
  explicit PlainChipMemory(sim::Simulation& simulation) : simulation_(simulation) {}
  void read(Coordinate tile, std::uint64_t address, std::span<std::byte> to) override;
  void write(Coordinate tile, std::uint64_t address, std::span<const std::byte> bytes) override;

  std::byte at(Coordinate tile, std::uint64_t address);
  std::vector<Time> writes;

 private:
  sim::Simulation& simulation_;
  noc::Memory& of(Coordinate tile);
  std::map<Coordinate, noc::Memory> memories_;
};

struct LinkBench {
  explicit LinkBench(const machine::Host& host = link_host(),
                     const machine::Chip& chip = link_chip(), const HostLink::Options& options = {})
      : memory(simulation),
        link(simulation, machine::build_host(host), machine::build_chip(chip), memory, options) {}

  // Runs the body as a process, to its end, and what it has posted.
  void run(const std::function<void()>& body);
  // The error that the call throws, "" if none.
  std::string sentence_of(const std::function<void()>& body);

  sim::Simulation simulation;
  PlainChipMemory memory;
  HostLink link;
};

std::vector<std::byte> counted(std::size_t size_bytes, unsigned seed = 1);

}  // namespace towpath::pcie
