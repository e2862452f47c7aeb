// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "towpath/noc/memory/tile_memories.hpp"
#include "towpath/noc/niu/network.hpp"
#include "towpath/noc/niu/network_ticks.hpp"
#include "towpath/noc/niu/niu_table.hpp"
#include "towpath/noc/niu/outside_port.hpp"
#include "towpath/noc/niu/request_rules.hpp"
#include "towpath/noc/niu/requester.hpp"
#include "towpath/noc/niu/responder.hpp"
#include "towpath/noc/niu/source_guard.hpp"
#include "towpath/noc/niu/transactions.hpp"
#include "towpath/sim/clock.hpp"
#include "towpath/sim/simulation.hpp"

// Both networks of a chip with the NIUs and memories of its tiles, in simulated time. A request is
// split into packets, travels, acts on memory and is answered. The counters of the NIU show its
// progress.

namespace towpath::noc {

// The level of detail at which the networks of a chip are simulated.
enum class NetworkModel : std::uint8_t { flits, packets };
std::unique_ptr<Network> make_network(NetworkModel model, const machine::Chip& chip, int noc,
                                      Endpoint& endpoint, std::uint64_t seed);

class ChipNetwork final : private Endpoint {
 public:
  struct Options {
    // If false, only words (4 bytes) are stored, because kernels wait for them; other data only
    // takes time.
    bool carries_data = true;
    // If false, bytes to or from DRAM only take time: reads leave a core's memory as it is.
    bool stores_dram = true;
    bool records_requests = false;
    // Throws std::runtime_error if bytes change before a write has read them.
    bool checks_sources = false;
    NetworkModel model = NetworkModel::flits;
  };
  ChipNetwork(sim::Simulation& simulation, std::shared_ptr<const machine::Chip> chip,
              Options options);
  ChipNetwork(const ChipNetwork&) = delete;
  ChipNetwork& operator=(const ChipNetwork&) = delete;

  const machine::Chip& chip() const { return *chip_; }
  const sim::Clock& clock() const { return clock_; }
  sim::Simulation& simulation() const { return simulation_; }
  // Cycle at the current time.
  Cycle cycle() const { return ticks_.cycle(); }

  // True if the initiator can accept a request: all packets of its last one have won a VC.
  bool is_ready(int noc, machine::Coordinate core, int initiator) const {
    return counters(noc, core).packets_to_start[static_cast<std::size_t>(initiator)] == 0;
  }
  // Throws std::invalid_argument on a request that the chip cannot carry out: off the grid, a tile
  // without memory or harvested, an address beyond the memory or misaligned, a wrong VC or
  // transaction id, no bytes to move. The initiator must be ready.
  void issue(const Request& request);
  // Issues a read, or a write of `data`, by an off-chip initiator behind a tile without memory,
  // which `number` identifies. Requests queue in the tile, so no initiator needs to be ready.
  // Without data only time passes. Throws the same errors as issue().
  struct OutsideRequest {
    Outside& owner;
    std::uint64_t number = 0;
    std::span<const std::byte> data;  // of a write
    bool carries_data = true;
  };
  void issue(const Request& request, const OutsideRequest& outside);
  // From now on reads and writes of a tile without memory reach `memory`, which must outlive this
  // object.
  void attach(machine::Coordinate tile, OutsideMemory& memory);
  // Called by that memory.
  OutsidePort& outside_port() { return outside_; }
  const NiuCounters& counters(int noc, machine::Coordinate core) const {
    return nius_.counters(noc, core);
  }
  // Resets the counts of these transaction ids to zero, one bit per id.
  void clear_outstanding(int noc, machine::Coordinate core, std::uint32_t ids) {
    nius_.counters(noc, core).clear_outstanding(ids);
  }

  using Condition = NiuTable::Condition;
  // Wakes the process once when the condition holds.
  void wake_when(int noc, machine::Coordinate core, Condition condition, sim::Process& process) {
    nius_.wake_when(noc, core, condition, process);
  }
  // Wakes the process once, when any of these bytes of the core's memory is written.
  void wake_on_write(machine::Coordinate core, std::uint64_t offset, sim::Process& process,
                     std::uint64_t size_bytes = kWordBytes) {
    memories_.wake_on_write(core, {offset, size_bytes, &process});
  }
  // Cancels all other waits of a process that waited for several events of its core.
  void stop_waking(machine::Coordinate core, const sim::Process& process) {
    memories_.stop_waking(core, process);
    nius_.stop_waking(core, process);
  }
  // Number of writes to the memory of this core, from any source.
  std::uint64_t writes_to(machine::Coordinate core) const { return memories_.of(core)->writes; }

  // A core's own access to its memory. Throws std::invalid_argument beyond its end, and for words
  // at offsets that are not multiples of 4.
  void load(machine::Coordinate core, std::uint64_t offset, std::span<std::byte> to) const {
    memories_.checked(core, offset, to.size()).bytes.read(offset, to);
  }
  void store(machine::Coordinate core, std::uint64_t offset, std::span<const std::byte> from);
  std::uint32_t load_word(machine::Coordinate core, std::uint64_t offset) const {
    return memories_.checked_word(core, offset).bytes.load_word(offset);
  }
  void store_word(machine::Coordinate core, std::uint64_t offset, std::uint32_t value);
  // Writes bytes that reach a core's memory from outside the chip. They are stored even if
  // carries_data is false. The range must be inside the memory.
  void deliver(machine::Coordinate core, std::uint64_t offset, std::span<const std::byte> from) {
    change(core, offset, from, {.is_outside = true});
  }

  // The memory behind a tile, to fill it before a run and to inspect it afterward. Throws
  // std::invalid_argument if there is none.
  Memory& memory(machine::Coordinate tile) { return memories_.checked(tile).bytes; }

  const Network& network(int noc) const { return *networks_[static_cast<std::size_t>(noc)]; }
  // Times of requests in order of issue, empty unless recorded.
  const std::vector<RequestTimes>& requests() const { return transactions_.records(); }
  // Number of requests with packets in flight or unanswered.
  std::int64_t unfinished() const { return transactions_.unfinished(); }
  // Describes the core's first request that has not left or is not answered, or otherwise its
  // reserved path. Empty if there is neither.
  std::string describe_unanswered(int noc, machine::Coordinate core) const;
  // Describes a deadlock: packets that wait for each other, or paths that cores keep reserved.
  // Empty if there is neither.
  std::string describe_deadlock() const;

 private:
  void packet_started(const Packet& packet, Cycle now) override;
  void packet_sent(const Packet& packet, Cycle now) override;
  void packet_received(const Packet& packet, int node, int vc, Cycle now) override;
  void counted_flits_fell(const Packet& packet, Cycle now) override;
  Cycle flit_received(const Packet& packet, int node, Cycle now) override;

  // True if a request's bytes are moved; otherwise it only takes time.
  bool may_carry(const Request& request) const {
    if (!options_.stores_dram && memories_.is_dram(request.remote.tile)) return false;
    return options_.carries_data || request.size_bytes == kWordBytes;
  }
  void start(std::uint32_t transaction, const std::vector<machine::Coordinate>& receivers);
  void request_received(const Received& received);
  void answer_received(const Tag& tag, Cycle now);
  // A packet's bytes change a memory. If they are not carried, only its watchers are woken.
  void write(const Tag& tag, machine::Coordinate tile, std::uint64_t offset);
  void change(machine::Coordinate tile, std::uint64_t offset, std::span<const std::byte> bytes,
              const SourceGuard::Writer& writer);

  sim::Simulation& simulation_;
  std::shared_ptr<const machine::Chip> chip_;
  Options options_;
  sim::Clock clock_;
  NetworkTicks::Networks networks_;
  NetworkTicks ticks_;
  TileMemories memories_;
  NiuTable nius_;
  Transactions transactions_;
  SourceGuard sources_;
  LinkedPaths linked_;
  Responder responder_;
  Requester requester_;
  OutsidePort outside_;
  RequestRules rules_;
};

// The packets of one network that wait for each other, see Network::deadlock_cycle.
std::vector<std::string> deadlock_cycle(const ChipNetwork& network);

}  // namespace towpath::noc
