// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "towpath/ethernet/port.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/device/errors.hpp"
#include "towpath/tenstorrent/device/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/device/knowledge.hpp"

// Finds the mistakes of `Hazard` while kernels run. What a kernel may do depends on what it can
// know: a thing is known to have happened when a chain of words that were written after it and then
// looked at leads from it to the kernel. What merely happened in time, in this run, is not known,
// and so a mistake is found whether or not it does any harm this time.
//
// What a word over the NoC brings is taken as known from the time on at which the word was issued,
// if the value that is seen allows for it. Semaphores are counted exactly.

namespace towpath::tenstorrent {

class DataMovementCore;
class HazardMonitor;

// What one kernel does, told beforehand by its core. Each call throws HazardError, in a sentence
// that names kernel, core and call, when it is a mistake.
class KernelWatch {
 public:
  struct Config {
    int chip = 0;
    machine::Coordinate core;
    int noc_index = 0;
    std::string name;
    // Programs of different chips with the same generation belong together.
    int generation = 0;
  };
  KernelWatch(HazardMonitor& monitor, Config config, Place place);

  const Config& config() const { return config_; }
  KernelName name() const { return {config_.chip, config_.core, config_.name}; }
  bool is_over() const { return state_ == State::over; }
  // It begins, on this core, which speaks for it in errors; it ends.
  void start(const DataMovementCore& core);
  void end();

  // It has seen a word of its own L1; it uses bytes of it; it is going to change them.
  void looked(std::uint64_t offset, std::uint32_t value);
  void using_bytes(std::uint64_t offset, std::uint64_t size_bytes);
  void storing(std::uint64_t offset, std::span<const std::byte> bytes);
  // It is going to hand over a request, or a command of an Ethernet core.
  void issuing(const noc::Request& request);
  void sending(int queue, const ethernet::Command& command);
  // Of what it sends from now on, so much is payload of a channel; it announces so much.
  void sending_payload(int channel, std::uint64_t size_bytes);
  void announcing(int channel, std::uint64_t size_bytes);
  // It sends the acknowledgement of a channel from a word.
  void acknowledging(int channel, std::uint64_t from);
  // It has waited for anything to change that it had looked at.
  void idled() { looked_at_.clear(); }

 private:
  friend class HazardMonitor;
  enum class State : std::uint8_t { to_start, running, over };

  HazardMonitor& monitor_;
  Config config_;
  State state_ = State::to_start;
  const DataMovementCore* core_ = nullptr;
  Learner learner_;
  Stamp begin_;       // its start
  int channel_ = -1;  // on an Ethernet core
  std::array<std::uint64_t, ethernet_memory_map::kChannels> unannounced_bytes_{};
  std::vector<std::uint64_t> looked_at_;   // words, since it last idled; of Ethernet cores
  std::vector<machine::Coordinate> told_;  // cores of its chip whose words it has incremented
};

// One for all chips of a cluster.
class HazardMonitor {
 public:
  explicit HazardMonitor(const machine::ChipCluster& cluster);

  // The chips, in order.
  void add_chip(noc::ChipNetwork& network);
  // A program begins on a chip: all kernels of the one before are over.
  void begin_program(int chip);
  // A kernel of that program; it lives as long as the monitor.
  KernelWatch& add_kernel(KernelWatch::Config config);
  // A word has its initial value, and nobody has written it before.
  void initialise_word(int chip, machine::Coordinate core, std::uint64_t offset);
  // The host has written these bytes: what kernels wrote there before is gone.
  void host_has_written(int chip, machine::Coordinate tile, std::uint64_t offset,
                        std::uint64_t size_bytes);
  // A frame is going to be written into the L1 of a channel's core.
  void arriving(machine::EthernetEnd at, std::uint64_t offset, std::span<const std::byte> bytes);

  // Who could write one of these bytes of a kernel's core: the kernels that have, and the one at
  // the other end of the link if that has, or may answer to what was sent from there; if there are
  // none, those on the cores that the kernel has told something, or else all others of the chip. Of
  // more than a word, those words count that the kernel has looked at since it last idled.
  std::vector<const KernelWatch*> writers_of(const KernelWatch& owner, std::uint64_t offset,
                                             std::uint64_t size_bytes) const;
  // The kernel that runs at the other end of the link; null if there is none.
  const KernelWatch* peer_of(const KernelWatch& kernel) const;

 private:
  friend class KernelWatch;

  // A command that writes bytes: their positions are their offsets plus `shift`.
  struct Incoming {
    Stream stream = 0;
    std::uint64_t shift = 0;
    const KernelWatch* sender = nullptr;
  };
  struct Arrived {
    Stamp stamp;  // of its sender
    Stream stream = 0;
    std::uint64_t shift = 0;
  };
  // A command that reads bytes; all of it has arrived once `end` has.
  struct Source {
    Stream stream = 0;
    std::uint64_t end = 0;
    const KernelWatch* sender = nullptr;
  };
  struct Pushed {
    const KernelWatch* writer = nullptr;
    Stamp stamp;
  };
  // A word that is written as such.
  struct Word {
    struct Increment {
      std::uint32_t total = 0;  // of all since the last store
      const KernelWatch* writer = nullptr;
      Stamp stamp;
    };
    std::uint32_t base = 0;
    std::vector<Increment> increments;  // of which not everything is in `seen`
    Knowledge seen;                     // what those brought that have been seen
    bool is_counted = true;             // no increment was negative
    std::optional<Pushed> store;        // the last one, by a kernel of this core
    std::optional<Pushed> inline_write;
    std::uint32_t inline_value = 0;
    std::vector<const KernelWatch*> writers;
  };
  // A command for which its receiver must wait, and where it ends.
  struct Awaited {
    std::uint64_t end = 0;
    const KernelWatch* sender = nullptr;
    ethernet::Command command;
  };
  // Of one tile's memory.
  struct Ledger {
    // What has last arrived in a channel's sync word, as long as nobody has looked at it.
    std::array<std::optional<Awaited>, ethernet_memory_map::kChannels> unseen_syncs;
    RangeMap<Incoming> incoming;  // over Ethernet, submitted
    RangeMap<Arrived> arrived;
    RangeMap<Source> sources;
    RangeMap<Pushed> pushed;  // over the NoC
    std::map<std::uint64_t, Word> words;
  };
  struct InFlight {
    std::uint64_t destination = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t position = 0;
    std::uint64_t arrived_bytes = 0;
    const KernelWatch* sender = nullptr;
    Stamp stamp;
  };
  struct StreamState {
    std::uint64_t position = 0;
    std::deque<InFlight> in_flight;
    std::map<int, Awaited> awaited;  // the last one, by generation
  };
  struct ChipState {
    noc::ChipNetwork* network = nullptr;
    std::vector<std::unique_ptr<Ledger>> ledgers;  // by tile
    // Of all kernels that are over: those of earlier programs, and all.
    Knowledge known;
    Knowledge ended;
  };

  Ledger& ledger(int chip, machine::Coordinate tile);
  const Ledger* find_ledger(int chip, machine::Coordinate tile) const;
  Stream stream_of(machine::EthernetEnd end, int queue) const;
  int channel_of(int chip, machine::Coordinate core) const;
  KernelWatch* kernel_at(machine::EthernetEnd end, int generation) const;
  Place place_of(int chip, machine::Coordinate core, int noc_index) const;
  machine::Coordinate core_of(machine::EthernetEnd end) const { return cluster_.core_of(end); }

  void check_arrivals(const KernelWatch& kernel);
  void check_peer(KernelWatch& kernel, const ethernet::Command& command, machine::EthernetEnd to);
  void check_bytes_are_there(const KernelWatch& kernel, int chip, machine::Coordinate tile,
                             std::uint64_t offset, std::uint64_t size_bytes);
  // `bytes` is what they change to; empty: something else.
  void check_sources(const KernelWatch& kernel, int chip, machine::Coordinate tile,
                     std::uint64_t offset, std::uint64_t size_bytes,
                     std::span<const std::byte> bytes);
  void check_increments(const KernelWatch& kernel, std::uint64_t offset, const Word& word);
  // Whether what others have written into the source of a send is known to be there.
  void check_pushed(const KernelWatch& kernel, std::uint64_t offset, std::uint64_t size_bytes);
  void add_writers(const KernelWatch& owner, std::uint64_t offset, std::uint64_t size_bytes,
                   std::vector<const KernelWatch*>& writers) const;
  void learn_from(KernelWatch& kernel, const Ledger& ledger, std::uint64_t offset,
                  std::uint64_t end);
  void learn_from(KernelWatch& kernel, Word& word, std::uint32_t value);
  void read_issued(KernelWatch& kernel, const noc::Request& request);
  void write_issued(KernelWatch& kernel, const noc::Request& request, machine::Coordinate tile,
                    const Stamp& stamp);
  void word_issued(KernelWatch& kernel, const noc::Request& request, machine::Coordinate tile,
                   const Stamp& stamp);
  [[noreturn]] static void fail_unawaited(const KernelWatch& kernel, const Awaited& command);
  Word& word_at(int chip, machine::Coordinate tile, std::uint64_t offset);

  const machine::ChipCluster& cluster_;
  std::vector<ChipState> chips_;
  std::vector<StreamState> streams_;
  std::vector<std::uint32_t> first_stream_;  // by chip
  std::vector<Place> first_place_;           // by chip
  std::map<Place, std::uint32_t> clocks_;    // of the last kernel at a place
  // Kernels, and those of Ethernet cores by chip and channel.
  std::vector<std::unique_ptr<KernelWatch>> kernels_;
  std::vector<std::vector<std::vector<KernelWatch*>>> ethernet_kernels_;
};

}  // namespace towpath::tenstorrent
