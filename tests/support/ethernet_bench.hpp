// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "towpath/ethernet/link.hpp"
#include "towpath/ethernet/port.hpp"

// Two ports with plain memories, for tests without chips.

namespace towpath::ethernet {

// Parameters with which times are easily computed by hand; not those of a chip.
machine::EthernetParameters plain_figures();

// Records what happened to it.
class PlainMemory : public TileMemory {
 public:
  struct Write {
    Time at;
    std::uint64_t offset;
    std::uint64_t size_bytes;
    bool operator==(const Write&) const = default;
  };

  PlainMemory(sim::Simulation& simulation, std::uint64_t size_bytes)
      : bytes(size_bytes), simulation_(simulation) {}

  std::uint64_t size_bytes() const override { return bytes.size(); }
  void read(std::uint64_t offset, std::span<std::byte> to) const override;
  void write(std::uint64_t offset, std::span<const std::byte> from) override;
  void write_register(std::uint64_t address, std::uint32_t value) override;
  void hold_source(CommandNumber command, std::uint64_t offset, std::uint64_t size_bytes) override;
  void release_source(CommandNumber command) override;

  bool is_held(CommandNumber command) const { return held.contains(command); }

  std::vector<std::byte> bytes;
  std::vector<Write> writes;
  std::map<std::uint64_t, std::uint32_t> registers;
  std::map<CommandNumber, Write> held;
  mutable std::uint64_t bytes_read_unheld = 0;
  std::function<void()> on_write = [] {};
  std::function<void(CommandNumber)> on_release = [](CommandNumber) {};

 private:
  sim::Simulation& simulation_;
};

// Ports "A" and "B" with a link between them.
struct PortPair {
  static constexpr std::uint64_t kMemoryBytes = 256 << 10;

  explicit PortPair(const machine::EthernetParameters& figures, const LinkFaults& faults = {},
                    std::uint64_t seed = 1)
      : simulation(seed),
        memory_a(simulation, kMemoryBytes),
        memory_b(simulation, kMemoryBytes),
        a(simulation, figures, memory_a, "A"),
        b(simulation, figures, memory_b, "B"),
        link(simulation, a, b, faults) {}

  // From a process: waits until the queue of `port` is free.
  void wait_until_free(Port& port, int queue);
  // Makes both ends ready to train whenever the link is down.
  void answer_routing();

  sim::Simulation simulation;
  PlainMemory memory_a;
  PlainMemory memory_b;
  Port a;
  Port b;
  Link link;
};

Command write_of(std::uint64_t source, std::uint64_t destination, std::uint64_t size_bytes);

}  // namespace towpath::ethernet
