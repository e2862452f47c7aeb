// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "towpath/tenstorrent/dispatch/dispatch_commands.hpp"
#include "towpath/tenstorrent/dispatch/dispatch_ring.hpp"
#include "towpath/tenstorrent/hazards/hazard_monitor.hpp"

// Programs of the cores that fast dispatch uses. On a chip on PCIe, one core is the prefetcher,
// which fetches commands from the host's memory and relays them, and another is the dispatcher,
// which carries them out. For a remote chip, two more cores of the host's chip relay its commands
// and answers, and the chip has another prefetcher and dispatcher. Sources: tt-metal,
// impl/dispatch/kernels/cq_prefetch.cpp, cq_dispatch.cpp.
//
// A command costs its calls and the time to read its fields: see kFieldsRead.

namespace towpath::tenstorrent {

// The memory that the host and the prefetcher of its chip share.
struct HostQueuePlaces {
  machine::Coordinate pcie_tile;
  std::uint64_t commands = 0;  // offset of the commands in the host's memory
  std::uint64_t commands_bytes = 0;
  std::uint64_t entries = 0;  // in L1: sizes of the next fetches, in units of 16 bytes
  std::uint64_t fetched = 0;  // in L1: entries fetched, then commands fetched, in units
};

// The offset of a batch in the host's memory: `at`, or the beginning without room before the end.
constexpr std::uint64_t place_of_batch(std::uint64_t at, std::uint64_t size_bytes,
                                       std::uint64_t all_bytes) {
  return at + size_bytes > all_bytes ? 0 : at;
}

// Fetches the bytes of the host's entries, a few reads at a time, into a ring in L1.
class HostFetcher {
 public:
  struct Batch {
    std::uint64_t position = 0;
    std::uint64_t size_bytes = 0;
  };
  // Each batch starts with `header_bytes` of free space, which count as part of it.
  HostFetcher(DataMovementCore& core, const Ring& ring, const HostQueuePlaces& places,
              std::uint64_t header_bytes);

  // Waits for the next batch. Earlier ones may be overwritten from then on.
  Batch next();

 private:
  struct Read {
    Batch batch;
    int transaction_id = 0;
  };
  std::uint64_t entry_word() const;
  bool fetch();

  DataMovementCore& core_;
  Ring ring_;
  HostQueuePlaces places_;
  std::uint64_t header_bytes_;
  std::deque<Read> reads_;
  std::uint32_t entries_ = 0;        // fetched
  std::uint64_t host_at_ = 0;        // in the host's memory
  std::uint64_t fetched_bytes_ = 0;  // with skipped bytes at the end
  std::uint64_t reserved_ = 0;       // position in the ring
  std::uint64_t done_ = 0;           // the same
  int next_id_ = 0;
};

// Relays the commands of a batch to a dispatcher, each from the start of a page.
class CommandRelay {
 public:
  // The dispatcher increments `stall_word` at a command for which the prefetcher waits.
  CommandRelay(DataMovementCore& core, RingWriter& to, std::uint64_t stall_word)
      : core_(core), to_(to), stall_word_(stall_word) {}
  void relay(const Ring& from, std::uint64_t position, std::uint64_t size_bytes);

 private:
  DataMovementCore& core_;
  RingWriter& to_;
  std::uint64_t stall_word_;
  std::uint32_t stalls_ = 0;
};

// Completed events in host memory.
struct EventPlaces {
  machine::Coordinate pcie_tile;
  std::uint64_t count = 0;    // address of their count
  std::uint64_t slots = 0;    // the events, in turn
  std::uint64_t staging = 0;  // in L1
};
inline constexpr std::uint64_t kEventSlots = 62;
inline constexpr std::uint64_t kEventSlotBytes = 64;
inline constexpr std::uint64_t kEventBytes = 32;  // including the command
// Writes an event from L1, then the count.
void write_event(DataMovementCore& core, std::uint64_t from, const EventPlaces& to);

class Dispatcher {
 public:
  struct Places {
    std::uint64_t ended_word = 0;  // cores that have ended
    std::uint64_t go_word = 0;     // 16 bytes: source of go signals
    NocAddress stall_word;         // in the prefetcher's L1
  };
  // `monitor` may be null.
  Dispatcher(DataMovementCore& core, RingReader& from, const Places& places,
             HazardMonitor* monitor);

  // Carries commands out. Relays events for the host to on_event(position).
  template <typename OnEvent>
  [[noreturn]] void run(const OnEvent& on_event) {
    for (std::uint64_t position = 0;;) {
      const DispatchCommand command = next(position);
      if (command.kind == DispatchCommand::Kind::write_host) {
        on_event(position);
      } else {
        carry_out(command, position + sizeof(DispatchCommand));
      }
      position = rounded_up(position + command.length_bytes, kDispatchPageBytes);
      from_.free(position);
    }
  }

 private:
  DispatchCommand next(std::uint64_t position);
  void carry_out(const DispatchCommand& command, std::uint64_t position);
  void wait(const DispatchCommand& command);
  void write_linear(const DispatchCommand& command, std::uint64_t position);
  void write_packed(const DispatchCommand& command, std::uint64_t position);
  void go(const DispatchCommand& command, std::uint64_t position);
  void write(std::uint64_t position, std::uint64_t size_bytes, const NocAddress& to);
  int workers_of(const NocMulticastAddress& to) const;
  void multicast(std::uint64_t position, std::uint64_t size_bytes, const MulticastTarget& to,
                 std::uint64_t offset);
  template <typename Target>
  std::vector<Target> load_targets(std::uint64_t position, std::size_t count);

  DataMovementCore& core_;
  RingReader& from_;
  Places places_;
  HazardMonitor* monitor_;
};

}  // namespace towpath::tenstorrent
