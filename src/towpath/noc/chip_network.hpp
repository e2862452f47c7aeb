// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "towpath/noc/memory.hpp"
#include "towpath/noc/network.hpp"
#include "towpath/noc/request.hpp"
#include "towpath/sim/clock.hpp"
#include "towpath/sim/simulation.hpp"

// Both networks of a chip with the NIUs and memories of its tiles, in simulated time. A request is
// split into packets, travels, acts on memory and is answered; the NIU's counters tell how far.

namespace towpath::noc {

// Of one NIU. Each counts packets, not requests, as the hardware does; they never go down.
struct NiuCounters {
  std::uint32_t reads_sent = 0;  // read requests that software issued
  std::uint32_t read_responses_received = 0;
  std::uint32_t read_responses_sent = 0;     // to others
  std::uint32_t writes_sent = 0;          // issued, those to be acknowledged
  std::uint32_t write_acks_received = 0;  // a multicast is acknowledged by each receiver
  std::uint32_t write_acks_awaited = 0;   // how many there will be once all are back
  std::uint32_t posted_writes_sent = 0;
  std::uint32_t atomics_sent = 0;
  std::uint32_t atomic_responses_received = 0;
  std::uint32_t atomic_responses_awaited = 0;
  std::uint32_t packets_to_leave = 0;  // written packets whose last flit is still in the NIU
  // Per transaction id: packets whose answer is awaited, and writes still leaving.
  std::array<std::uint16_t, 16> outstanding{};
  std::array<std::uint16_t, 16> leaving{};
};

// When a request got how far, in cycles; -1: not yet, or never.
struct RequestTimes {
  Request request;
  Cycle issued = -1;
  Cycle started = -1;    // its first packet won a VC
  Cycle sent = -1;       // the last flit left the NIU
  Cycle received = -1;   // the last packet was taken at the far end
  Cycle completed = -1;  // the last answer was taken
};

class ChipNetwork final : private Endpoint {
 public:
  struct Options {
    bool carries_data = true;  // otherwise memories stay empty and only time is kept
    bool records_requests = false;
  };
  ChipNetwork(sim::Simulation& simulation, std::shared_ptr<const machine::Chip> chip,
              Options options);
  ChipNetwork(const ChipNetwork&) = delete;
  ChipNetwork& operator=(const ChipNetwork&) = delete;

  const machine::Chip& chip() const { return *chip_; }
  const sim::Clock& clock() const { return clock_; }
  sim::Simulation& simulation() const { return simulation_; }
  // The cycle of now.
  Cycle cycle() const { return clock_.cycle_at(simulation_.now()).count(); }

  // Whether the initiator can take a request: the packets of its last one have all won a VC.
  bool is_ready(int noc, machine::Coordinate core, int initiator) const;
  // Throws std::invalid_argument with one sentence on a request that the chip cannot carry out:
  // off the grid, a harvested or otherwise memoryless tile, an address beyond the memory or not
  // aligned, a wrong VC or transaction id, nothing to move. The initiator must be ready.
  void issue(const Request& request);
  const NiuCounters& counters(int noc, machine::Coordinate core) const;

  // Whoever is woken when a counter of this NIU or one of its initiators changes, once.
  void wake_on_change(int noc, machine::Coordinate core, sim::Process& process);
  // Woken when a packet has written to this core's memory, once.
  void wake_on_write(machine::Coordinate core, sim::Process& process);

  // The memory behind a tile. Throws std::invalid_argument when there is none.
  Memory& memory(machine::Coordinate tile);

  const Network& network(int noc) const { return *networks_[static_cast<std::size_t>(noc)]; }
  // In the order of issue; empty unless recorded.
  const std::vector<RequestTimes>& requests() const { return records_; }
  // Packets under way or unanswered.
  std::int64_t unfinished() const;
  std::string describe_deadlock() const;

 private:
  struct Niu {
    NiuCounters counters;
    std::array<int, 8> packets_to_start{};     // per initiator, of its last request
    std::array<PaceTime, 8> request_stream{};  // when each of the overlapping reads is done
    int next_stream = 0;
    int next_response_lane = 0;
    PaceTime response_stream = 0;
    std::vector<sim::Process*> waiting;
  };
  struct Group {  // memory that several NIUs may share
    explicit Group(std::uint64_t size_bytes, int channels)
        : memory(size_bytes), channel_free(static_cast<std::size_t>(channels)) {}
    Memory memory;
    std::vector<PaceTime> channel_free;  // of DRAM: when each channel is done with what it has
    std::vector<sim::Process*> waiting;
  };
  struct Transaction {
    Request request;
    std::vector<std::byte> data;  // on its way, of writes and read responses
    int packets = 0;
    int answers_left = 0;  // acknowledgements or responses
    int to_leave = 0;
    int to_receive = 0;
    std::int32_t record = -1;
    std::int32_t uses_left = 0;  // packets that still refer to it
  };
  enum class PacketRole : std::uint8_t { request, read_response, acknowledgement };
  // What a packet's tag says: transaction, number of the packet in it, role.
  struct Tag {
    std::uint32_t transaction = 0;
    std::uint32_t packet = 0;
    PacketRole role = PacketRole::request;
    std::uint64_t pack() const;
    static Tag unpack(std::uint64_t bits);
  };

  void packet_started(const Packet& packet, Cycle now) override;
  void packet_sent(const Packet& packet, Cycle now) override;
  void packet_received(const Packet& packet, int node, int vc, Cycle now) override;
  Cycle flit_received(const Packet& packet, int node, Cycle now) override;

  void check(const Request& request) const;
  void check_remote(const Request& request) const;
  std::uint32_t add_transaction(const Request& request, int packets, int receivers);
  void send_packets(std::uint32_t transaction, const std::vector<int>& receivers);
  Packet request_packet(const Transaction& transaction, Niu& niu, std::uint64_t size_bytes) const;
  std::vector<int> receivers_of(const Request& request) const;
  void request_received(const Tag& tag, Transaction& transaction, const Packet& packet, int node,
                        int vc, Cycle now);
  void respond_with_data(const Tag& tag, const Transaction& transaction, int node, int vc,
                         Cycle now);
  void acknowledge(const Tag& tag, const Transaction& transaction, int node, Cycle ready);
  void answer_received(const Tag& tag, Transaction& transaction, Cycle now);
  void release(std::uint32_t transaction);

  Niu& niu(int noc, machine::Coordinate core);
  const Niu& niu(int noc, machine::Coordinate core) const;
  Group* group_of(machine::Coordinate tile) const;
  std::uint64_t packet_bytes_max() const;
  std::uint64_t bytes_of(const Request& request, std::uint32_t packet) const;
  std::size_t channel_of(const Request& request, std::uint32_t packet) const;
  bool is_dram(machine::Coordinate tile) const {
    return chip_->tile(tile).kind == machine::TileKind::dram;
  }
  void wake(std::vector<sim::Process*>& waiting);

  static void tick(void* self);
  void run_cycles();
  void request_tick(Cycle cycle);

  sim::Simulation& simulation_;
  std::shared_ptr<const machine::Chip> chip_;
  Options options_;
  sim::Clock clock_;
  std::array<std::unique_ptr<Network>, 2> networks_;
  std::array<std::vector<Niu>, 2> nius_;  // by tile
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Group*> group_of_tile_;  // null: no memory
  PaceTime request_interval_;
  PaceTime response_interval_;
  PaceTime channel_interval_ = 0;
  std::vector<Transaction> transactions_;
  std::vector<std::uint32_t> free_transactions_;
  std::int64_t unfinished_ = 0;
  Cycle tick_at_ = kNever;  // the cycle that is to be simulated next
  bool is_stepping_ = false;
  std::vector<RequestTimes> records_;
};

}  // namespace towpath::noc
