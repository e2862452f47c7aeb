// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/niu/request.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::noc {

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
  // Outstanding packets per transaction id: a packet adds one, and each answer subtracts one.
  // Multicasts have more answers than packets, so the number is meaningless after a multicast. The
  // hardware's counter has 8 bits.
  std::array<std::int32_t, kTransactionIdsMax> outstanding{};
  std::array<std::int32_t, kTransactionIdsMax> outgoing{};  // writes with data that have not left
  std::uint32_t multicast_ids = 0;  // ids whose count is meaningless, one bit each

  // The stages of a core's request.
  void count_issued(const Request& request, std::uint32_t packets, std::uint32_t answers);
  void count_sent(const Request& request);
  void count_answer(const Request& request);
  // Resets the counts of these transaction ids to zero, one bit per id.
  void clear_outstanding(std::uint32_t ids);
};

// The counters of all NIUs of a chip, and the processes that wait for them.
class NiuTable {
 public:
  // Condition that a process may wait for.
  struct Condition {
    bool (*holds)(const NiuCounters& counters, int argument);
    int argument = 0;
  };

  explicit NiuTable(const machine::Chip& chip)
      : chip_(chip),
        nius_{std::vector<Niu>(chip.tiles.size()), std::vector<Niu>(chip.tiles.size())} {}

  NiuCounters& counters(int noc, machine::Coordinate core) { return at(noc, core).counters; }
  const NiuCounters& counters(int noc, machine::Coordinate core) const {
    return const_cast<NiuTable*>(this)->counters(noc, core);
  }
  void wake_when(int noc, machine::Coordinate core, Condition condition, sim::Process& process) {
    at(noc, core).waiting.push_back({condition, &process});
  }
  void stop_waking(machine::Coordinate core, const sim::Process& process) {
    for (int noc = 0; noc < 2; ++noc) {
      std::erase_if(at(noc, core).waiting,
                    [&](const Waiting& waiting) { return waiting.process == &process; });
    }
  }
  // Counters have changed. Conditions are tested here, because reading a counter is cheaper than
  // waking a process.
  void wake(int noc, machine::Coordinate core, sim::Simulation& simulation) {
    Niu& niu = at(noc, core);
    std::erase_if(niu.waiting, [&](const Waiting& waiting) {
      if (!waiting.condition.holds(niu.counters, waiting.condition.argument)) return false;
      simulation.wake(*waiting.process);
      return true;
    });
  }

 private:
  struct Waiting {
    Condition condition;
    sim::Process* process;
  };
  struct Niu {
    NiuCounters counters;
    std::vector<Waiting> waiting;
  };
  Niu& at(int noc, machine::Coordinate core) {
    return nius_[static_cast<std::size_t>(noc)][static_cast<std::size_t>(chip_.number_of(core))];
  }

  const machine::Chip& chip_;
  std::array<std::vector<Niu>, 2> nius_;  // by tile
};

}  // namespace towpath::noc
