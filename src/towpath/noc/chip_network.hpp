// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "towpath/noc/memory/memory.hpp"
#include "towpath/noc/memory/outside_memory.hpp"
#include "towpath/noc/network.hpp"
#include "towpath/noc/niu/request.hpp"
#include "towpath/sim/clock.hpp"
#include "towpath/sim/simulation.hpp"

// Both networks of a chip with the NIUs and memories of its tiles, in simulated time. A request is
// split into packets, travels, acts on memory and is answered. The counters of the NIU show its
// progress.

namespace towpath::noc {

inline constexpr std::uint64_t kWordBytes = 4;
inline constexpr int kInitiatorsMax = 4;
inline constexpr int kTransactionIdsMax = 16;

// Counters of one NIU. They count packets, not requests, as in the hardware.
struct NiuCounters {
  std::uint32_t reads_issued = 0;
  std::uint32_t read_responses_received = 0;
  std::uint32_t read_responses_sent = 0;  // sent by this NIU to others
  std::uint32_t writes_issued = 0;        // writes with acknowledgement, inline writes included
  std::uint32_t writes_sent = 0;          // writes whose last flit has left the NIU
  std::uint32_t write_acks_awaited = 0;   // a multicast is acknowledged by each receiver
  std::uint32_t write_acks_received = 0;
  std::uint32_t posted_writes_issued = 0;
  std::uint32_t posted_writes_sent = 0;
  std::uint32_t atomics_issued = 0;
  std::uint32_t atomic_responses_awaited = 0;
  std::uint32_t atomic_responses_received = 0;
  // Packets of each initiator's last request that have not won a VC.
  std::array<std::uint32_t, kInitiatorsMax> packets_to_start{};
  // Outstanding packets per transaction id: a packet adds one, each answer subtracts one.
  // Multicasts have more answers than packets, so after one the number is meaningless. The
  // hardware's has 8 bits.
  std::array<std::int32_t, kTransactionIdsMax> outstanding{};
  std::array<std::int32_t, kTransactionIdsMax> outgoing{};  // writes with data that have not left
  std::uint32_t multicast_ids = 0;  // ids whose count is meaningless, one bit each
};

// Times of a request's stages, in cycles; -1: not yet, or never.
struct RequestTimes {
  Request request;
  Cycle issued = -1;
  Cycle started = -1;    // first packet won a VC
  Cycle sent = -1;       // last flit left the NIU
  Cycle received = -1;   // last packet was taken at the far end
  Cycle completed = -1;  // last answer was taken
};

// What requests are issued for that has no memory on the chip: the host behind a PCIe tile. It may
// not issue requests from within these calls.
class Outside {
 public:
  virtual ~Outside() = default;
  // The last flit of a write has left the tile.
  virtual void request_left(std::uint64_t number) = 0;
  // The last answer has come; a posted write has been carried out. `data` is that of a read.
  virtual void request_completed(std::uint64_t number, std::span<const std::byte> data) = 0;
};

class ChipNetwork final : private Endpoint {
 public:
  struct Options {
    // If false, only words (4 bytes) are stored, because kernels wait for them; other data only
    // takes time.
    bool carries_data = true;
    // If false, what moves to or from DRAM only takes time: reads leave a core's memory as it is.
    bool stores_dram = true;
    bool records_requests = false;
    // Throws std::runtime_error when bytes change that a write has yet to read.
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
  Cycle cycle() const { return clock_.cycle_at(simulation_.now()).count(); }

  // Whether the initiator can take a request: all packets of its last one have won a VC.
  bool is_ready(int noc, machine::Coordinate core, int initiator) const;
  // Throws std::invalid_argument on a request that the chip cannot carry out: off the grid, a tile
  // without memory or harvested, an address beyond the memory or misaligned, a wrong VC or
  // transaction id, nothing to move. The initiator must be ready.
  void issue(const Request& request);
  // Issues a read, or a write of `data`, for what is behind a tile without memory, which hears of
  // it by `number`. Requests queue in the tile: no initiator needs to be ready. Without data only
  // time passes. Throws like issue().
  struct OutsideRequest {
    Outside& owner;
    std::uint64_t number = 0;
    std::span<const std::byte> data;  // of a write
    bool carries_data = true;
  };
  void issue(const Request& request, const OutsideRequest& outside);
  // From now on reads and writes of a tile without memory reach `memory`, which must stay.
  void attach(machine::Coordinate tile, OutsideMemory& memory);
  // For what is attached, in order of its reads: gives some of a read's bytes, and sends its
  // answer, whose first bytes are in the tile at `first` and the last at `last`, and whose last
  // flit leaves no earlier.
  void give(const OutsideMemory::Read& read, std::uint64_t at, std::span<const std::byte> data);
  void answer(const OutsideMemory::Read& read, Time first, Time last);
  const NiuCounters& counters(int noc, machine::Coordinate core) const;
  // Resets the counts of these transaction ids to zero; one bit per id.
  void clear_outstanding(int noc, machine::Coordinate core, std::uint32_t ids);

  // Conditions that a process may wait for.
  struct Condition {
    bool (*holds)(const NiuCounters& counters, int argument);
    int argument = 0;
  };
  // Wakes the process once the condition holds.
  void wake_when(int noc, machine::Coordinate core, Condition condition, sim::Process& process);
  // Wakes the process once, when any of these bytes of the core's memory is written.
  void wake_on_write(machine::Coordinate core, std::uint64_t offset, sim::Process& process,
                     std::uint64_t size_bytes = kWordBytes);
  // Cancels all other waits of a process that waited for several events of its core.
  void stop_waking(machine::Coordinate core, const sim::Process& process);
  // Number of writes to the memory of this core, from any source.
  std::uint64_t writes_to(machine::Coordinate core) const;

  // A core's own access to its memory. Throws std::invalid_argument beyond its end, and for words
  // at offsets that are not multiples of 4.
  void load(machine::Coordinate core, std::uint64_t offset, std::span<std::byte> to) const;
  void store(machine::Coordinate core, std::uint64_t offset, std::span<const std::byte> from);
  std::uint32_t load_word(machine::Coordinate core, std::uint64_t offset) const;
  void store_word(machine::Coordinate core, std::uint64_t offset, std::uint32_t value);
  // Writes bytes that reach a core's memory from outside the chip. They are stored even if
  // carries_data is false. The range must be inside the memory.
  void deliver(machine::Coordinate core, std::uint64_t offset, std::span<const std::byte> from);

  // The memory behind a tile, to fill it before a run and to inspect it afterwards. Throws
  // std::invalid_argument when there is none.
  Memory& memory(machine::Coordinate tile);

  const Network& network(int noc) const { return *networks_[static_cast<std::size_t>(noc)]; }
  // Times of requests in order of issue; empty unless recorded.
  const std::vector<RequestTimes>& requests() const { return records_; }
  // Number of requests with packets under way or unanswered.
  std::int64_t unfinished() const;
  // Describes the core's first request that has not left or is not answered, or else the path that
  // it keeps reserved; empty if there is neither.
  std::string describe_unanswered(int noc, machine::Coordinate core) const;
  // Describes why nothing moves: packets that wait for each other, or paths that cores keep
  // reserved; empty if there is neither.
  std::string describe_deadlock() const;
  // The packets of one network that wait for each other, see Network::deadlock_cycle.
  std::vector<std::string> deadlock_cycle() const;

 private:
  struct Waiting {
    Condition condition;
    sim::Process* process;
  };
  // Destination of linked multicasts.
  struct Rectangle {
    machine::Coordinate first;
    machine::Coordinate last;
    bool includes_source = false;
    bool operator==(const Rectangle&) const = default;
  };
  static Rectangle rectangle_of(const Request& request) {
    return {request.remote.tile, request.last_tile, request.includes_source};
  }
  enum class PacketRole : std::uint8_t { request, read_response, acknowledgement };
  // Tag of a packet: its transaction, its number in it, and its role.
  struct Tag {
    std::uint32_t transaction = 0;
    std::uint32_t packet = 0;
    PacketRole role = PacketRole::request;
    std::uint64_t pack() const;
    static Tag unpack(std::uint64_t bits);
  };
  struct WaitingRead {
    Tag tag;
    int vc;
  };
  struct Niu {
    NiuCounters counters;
    std::vector<PaceTime> request_stream;  // end of each of the overlapping reads
    std::size_t next_stream = 0;
    PaceTime response_stream = 0;
    std::deque<WaitingRead> waiting_reads;           // until flits of responses have left
    std::array<std::optional<Rectangle>, 2> linked;  // per buddy bit
    std::vector<Waiting> waiting;
  };
  // Bytes that a packet has yet to read.
  struct Source {
    std::uint32_t transaction;
    std::uint32_t packet;
    std::uint64_t offset;
    std::uint64_t size_bytes;
  };
  struct WriteWaiting {
    std::uint64_t offset;
    std::uint64_t size_bytes;
    sim::Process* process;
  };
  struct Group {  // a memory that several NIUs may share
    explicit Group(std::uint64_t size_bytes, int channels)
        : memory(size_bytes), channel_free(static_cast<std::size_t>(channels)) {}
    Memory memory;
    // DRAM only: when each channel has finished its current work
    std::vector<PaceTime> channel_free;
    std::vector<WriteWaiting> waiting;
    std::vector<Source> sources;
    std::uint64_t writes = 0;
  };
  // Source of a change: a request, the core itself, or something outside the chip.
  struct Writer {
    const Request* request = nullptr;
    bool is_outside = false;
  };
  struct Transaction {
    Request request;
    std::vector<std::byte> data;  // data under way, for writes and read responses
    Cycle issued = 0;
    int packets = 0;
    int answers_left = 0;  // acknowledgements or responses still to come
    int to_leave = 0;
    int to_receive = 0;
    std::int32_t record = -1;
    std::int32_t uses_left = 0;  // packets that still refer to it
    Outside* outside = nullptr;  // for whom it was issued, unless for the core's own memory
    std::uint64_t outside_number = 0;
  };

  void packet_started(const Packet& packet, Cycle now) override;
  void packet_sent(const Packet& packet, Cycle now) override;
  void packet_received(const Packet& packet, int node, int vc, Cycle now) override;
  void counted_flits_fell(const Packet& packet, Cycle now) override;
  Cycle flit_received(const Packet& packet, int node, Cycle now) override;

  void check(const Request& request) const;
  void check_place(const Request& request) const;
  void check_way(const Request& request) const;
  void check_own_memory(const Request& request) const;
  void check_outside(const Request& request, const OutsideRequest& outside) const;
  void check_remote(const Request& request) const;
  void check_attached(const Request& request) const;
  void check_multicast(const Request& request) const;
  void check_alignment(const Request& request) const;
  std::uint32_t add_transaction(const Request& request, int packets, int receivers);
  int packets_of(const Request& request) const;
  void start(std::uint32_t transaction, const std::vector<int>& receivers);
  void count_issued(const Transaction& transaction);
  void send_packets(std::uint32_t transaction, const std::vector<int>& receivers);
  Packet request_packet(const Transaction& transaction, Niu& niu, std::uint64_t size_bytes) const;
  std::vector<int> receivers_of(const Request& request) const;
  void request_received(const Tag& tag, Transaction& transaction, int node, int vc, Cycle now);
  void read_received(const Tag& tag, const Transaction& transaction, int node, int vc, Cycle now);
  void respond_with_data(const Tag& tag, const Transaction& transaction, int node, int vc,
                         Cycle now);
  // Everything but when it may leave.
  Packet response_packet(const Tag& tag, const Transaction& transaction, int node, int vc) const;
  void request_received_for_attached(const Tag& tag, Transaction& transaction, int node, int vc,
                                     Cycle now);
  // How many flits of responses may wait in a NIU: as many as its way from memory has cycles.
  int response_flits_max() const { return chip_->niu.read_response_cycles; }
  // What a flit waits in the mean for another stream of the same L1: the two meet at a bank in one
  // of so many cycles, and each of them waits half of the times.
  PaceTime meeting(PaceTime interval) const {
    return interval / (2 * chip_->niu.l1_flits_per_cycle);
  }
  void acknowledge(const Tag& tag, const Transaction& transaction, int node, Cycle ready);
  void answer_received(const Tag& tag, Transaction& transaction, Cycle now);
  void tell_outside(const Transaction& transaction) const;
  void take_source(const Tag& tag, Transaction& transaction);
  void release(std::uint32_t transaction);

  Niu& niu(int noc, machine::Coordinate core);
  const Niu& niu(int noc, machine::Coordinate core) const;
  static std::string describe_linked(const Niu& niu);
  Group* group_of(machine::Coordinate tile) const;
  // What is attached to a tile; null if nothing is.
  OutsideMemory* attached_to(machine::Coordinate tile) const {
    return tile == attached_tile_ ? attached_ : nullptr;
  }
  std::uint64_t packet_bytes_max() const;
  std::uint64_t bytes_of(const Request& request, std::uint32_t packet) const;
  std::size_t channel_of(const Request& request, std::uint32_t packet) const;
  bool is_dram(machine::Coordinate tile) const {
    return chip_->tile(tile).kind == machine::TileKind::dram;
  }
  // Whether a request's bytes are moved; if not, it only takes time.
  bool may_carry(const Request& request) const {
    if (!options_.stores_dram && is_dram(request.remote.tile)) return false;
    return options_.carries_data || request.size_bytes == kWordBytes;
  }
  static bool carries(const Transaction& transaction) { return !transaction.data.empty(); }
  void wake(Niu& niu);

  const Group& checked_group(machine::Coordinate tile) const;
  Group& checked_group(machine::Coordinate tile);
  const Group& checked_group(machine::Coordinate core, std::uint64_t offset,
                             std::uint64_t size_bytes) const;
  void change(machine::Coordinate tile, std::uint64_t offset, std::span<const std::byte> bytes,
              Writer writer);
  void changed(Group& group, std::uint64_t offset, std::uint64_t size_bytes);
  void check_sources(const Group& group, machine::Coordinate tile, std::uint64_t offset,
                     std::span<const std::byte> bytes, Writer writer) const;
  std::span<std::byte> data_of(Transaction& transaction, std::uint32_t packet);

  static void tick(void* self);
  void run_cycle();
  void request_tick(Cycle cycle);

  sim::Simulation& simulation_;
  std::shared_ptr<const machine::Chip> chip_;
  Options options_;
  sim::Clock clock_;
  std::array<std::unique_ptr<Network>, 2> networks_;
  std::array<std::vector<Niu>, 2> nius_;  // by tile
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Group*> group_of_tile_;  // null: no memory
  machine::Coordinate attached_tile_;
  OutsideMemory* attached_ = nullptr;
  PaceTime request_interval_;
  PaceTime response_interval_;
  PaceTime channel_interval_ = 0;
  std::vector<Transaction> transactions_;
  std::vector<std::uint32_t> free_transactions_;
  std::int64_t unfinished_ = 0;
  Cycle tick_at_ = kNever;  // next cycle to simulate
  Time tick_time_ = Time::max();
  std::array<Cycle, 2> work_at_{kNever, kNever};  // next cycle in which each network has work
  bool is_stepping_ = false;
  std::vector<RequestTimes> records_;
};

}  // namespace towpath::noc
