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
#include <utility>
#include <vector>

#include "towpath/causality/knowledge.hpp"
#include "towpath/causality/range_map.hpp"
#include "towpath/ethernet/port.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/core/core_observer.hpp"
#include "towpath/tenstorrent/core/ethernet_memory_map.hpp"
#include "towpath/tenstorrent/hazards/allocation.hpp"
#include "towpath/tenstorrent/hazards/errors.hpp"

// Finds the mistakes of `Hazard` while kernels run, from what each kernel can know. An event is
// known to a kernel when a chain of words, written after the event and then looked at, leads from
// it to the kernel. What merely happened earlier in this run is not known, so a mistake is found
// whether or not it does any harm this time.
//
// The content of a word over the NoC is taken as known from the time at which the word was issued,
// if the value that is seen allows for it. Semaphores are counted exactly.

namespace towpath::tenstorrent {

class DataMovementCore;
class HazardMonitor;

using causality::Knowledge;
using causality::Learner;
using causality::Place;
using causality::RangeMap;
using causality::Stamp;
using causality::Stream;

// Watch of one kernel. Each call throws HazardError, which names kernel, core and call, when the
// action is a mistake.
class KernelWatch final : public CoreObserver {
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
  // The kernel begins on this core, which errors name; it ends.
  void start(const DataMovementCore& core);
  void end();

  void looked(std::uint64_t offset, std::uint32_t value, std::uint32_t needed) override;
  void using_bytes(std::uint64_t offset, std::uint64_t size_bytes) override;
  void storing(std::uint64_t offset, std::span<const std::byte> bytes) override;
  void issuing(const noc::Request& request) override;
  void sending(int queue, const ethernet::Command& command) override;
  void sending_payload(int channel, std::uint64_t size_bytes) override;
  void announcing(int channel, std::uint64_t size_bytes) override;
  void acknowledging(int channel, std::uint64_t from) override;
  void idled() override { looked_at_.clear(); }
  void opening_line(int line) override;
  void closed_line(int line) override;
  std::size_t entrusting(int line, std::vector<Errand> errands) override;

 private:
  friend class HazardMonitor;
  enum class State : std::uint8_t { to_start, running, over };

  void has_told(int chip, machine::Coordinate core);
  // Core and call, also when the kernel is over.
  std::string where() const;

  HazardMonitor& monitor_;
  Config config_;
  State state_ = State::to_start;
  const DataMovementCore* core_ = nullptr;
  Learner learner_;
  Stamp begin_;       // its start
  int program_;       // number of its program on its chip
  int channel_ = -1;  // on an Ethernet core
  std::array<std::uint64_t, ethernet_memory_map::kChannels> unannounced_bytes_{};
  std::vector<std::uint64_t> looked_at_;  // words, since it last idled; Ethernet cores only
  // Cores whose words it has incremented, with their chips.
  std::vector<std::pair<int, machine::Coordinate>> told_;
};

// "kernel 'sender' on core (1, 1) of chip 0"
std::string name_of(const KernelWatch& kernel);

// Monitor of all chips of a cluster.
class HazardMonitor final : public FrameObserver {
 public:
  explicit HazardMonitor(const machine::ChipCluster& cluster);

  // Adds the next chip, in order.
  void add_chip(noc::ChipNetwork& network);
  // A program begins on a chip; all kernels of the previous one have ended.
  void begin_program(int chip);
  // So many programs of a chip have ended.
  void programs_over(int chip, int programs);
  // A buffer, before it is used. Bytes that have never been one's are not checked.
  void add_allocation(int chip, const Allocation& allocation);
  // A word of these cores that a program of a chip sets when it starts.
  void add_word_at_start(int chip, int program, int generation,
                         const std::vector<machine::Coordinate>& cores, std::uint64_t offset);
  // Adds a kernel of the program that has begun last; its watch lives as long as the monitor.
  KernelWatch& add_kernel(KernelWatch::Config config);
  // A word has its initial value, and no kernel has written it.
  void initialise_word(int chip, machine::Coordinate core, std::uint64_t offset);
  // The host has written these bytes: what kernels wrote there before is gone.
  void host_has_written(int chip, machine::Coordinate tile, std::uint64_t offset,
                        std::uint64_t size_bytes);
  void arriving(machine::EthernetEnd at, std::uint64_t offset,
                std::span<const std::byte> bytes) override;

  // The errands of a packet on a chip are carried out.
  void carried_out(std::size_t packet, int chip);

  // Kernels that could write one of these bytes of a kernel's core: those that have, and the one at
  // the other end of the link if it has, or may answer to what was sent from there; if there are
  // none, those on the cores that the kernel has incremented a word of, or else all others of the
  // chip. For a range larger than a word, only words count that the kernel has looked at since it
  // last idled.
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
    // That of bytes it replaces which nobody had used.
    std::optional<std::uint64_t> unread_shift{};
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
  // Uses of bytes since they were last sent for: the first one, and the last.
  struct Used {
    const KernelWatch* user = nullptr;
    Stamp first;
    Stamp last;
  };
  // A word that is written by atomics or whole stores.
  struct Word {
    struct Increment {
      std::uint32_t total = 0;  // sum of all since the last store
      const KernelWatch* writer = nullptr;
      Stamp stamp;
    };
    std::uint32_t base = 0;
    std::vector<Increment> increments;  // those not entirely in `seen`
    Knowledge seen;                     // what the increments seen so far made known
    bool is_counted = true;             // no increment was negative
    std::optional<Pushed> store;        // the last one, by a kernel of this core
    std::optional<Pushed> inline_write;
    std::uint32_t inline_value = 0;
    std::vector<const KernelWatch*> writers;

    void add_writer(const KernelWatch& kernel);
  };
  // A command that its receiver must wait for, and where it ends.
  struct Awaited {
    std::uint64_t end = 0;
    const KernelWatch* sender = nullptr;
    ethernet::Command command;
  };
  // Record of one tile's memory.
  struct Ledger {
    // Latest arrival in a channel's sync word, until a kernel looks at it.
    std::array<std::optional<Awaited>, ethernet_memory_map::kChannels> unseen_syncs;
    RangeMap<Incoming> incoming;  // over Ethernet, submitted
    RangeMap<Arrived> arrived;
    RangeMap<Source> sources;
    RangeMap<Pushed> pushed;  // over the NoC
    RangeMap<Used> used;      // if there are lines
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
  // A channel into which one kernel at a time puts packets.
  struct Line {
    const KernelWatch* user = nullptr;
    std::optional<Stamp> closed;  // by it
  };
  // What goes over a line to one tile arrives in order.
  struct LinePart {
    Stream stream = 0;
    std::uint64_t position = 0;
  };
  using LineParts = std::map<std::pair<int, machine::Coordinate>, LinePart>;  // by chip and tile
  struct Entrusted {
    KernelWatch* sender = nullptr;
    Stamp stamp;
    struct Errands {
      Errand errand;
      std::vector<Arrived> arrivals;  // of its bytes
      Stamp word;                     // what its word makes known
    };
    std::vector<Errands> errands;
  };
  // A buffer, and what other chips have last done to it: where that ends in each stream, and words
  // that they have changed, by the place of the kernel.
  struct Buffer {
    struct Access {
      const KernelWatch* kernel = nullptr;
      std::string what;  // "writes bytes 0 to 63 of tile (1, 1)"
      Time at;
      std::uint64_t position = 0;
      Stamp stamp{};
    };
    Allocation allocation;
    std::optional<Time> freed_at{};
    std::map<Stream, Access> sent{};
    std::map<Place, Access> changed{};
  };
  struct BufferPart {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::size_t buffer = 0;
  };
  struct WordAtStart {
    int program = 0;
    int generation = 0;
    int tile = 0;
    std::uint64_t offset = 0;
  };
  struct ChipState {
    noc::ChipNetwork* network = nullptr;
    int program = -1;  // the last one that has begun
    std::vector<Buffer> buffers{};
    std::map<int, std::vector<BufferPart>> buffer_parts{};  // by tile
    std::vector<WordAtStart> words_at_start{};
    std::vector<std::unique_ptr<Ledger>> ledgers;  // by tile
    // Knowledge of all kernels that have ended: those of earlier programs, and all.
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
  struct Change {
    machine::Coordinate tile;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    std::span<const std::byte> bytes{};  // new content; empty: unknown content
  };
  void check_sources(const KernelWatch& kernel, int chip, const Change& change);
  void check_increments(const KernelWatch& kernel, std::uint64_t offset, const Word& word);
  // Checks that what others have written into the source of a send is known to have arrived.
  void check_pushed(const KernelWatch& kernel, std::uint64_t offset, std::uint64_t size_bytes);
  void add_writers(const KernelWatch& owner, std::uint64_t offset, std::uint64_t size_bytes,
                   std::vector<const KernelWatch*>& writers) const;
  void learn_from(KernelWatch& kernel, const Ledger& ledger, std::uint64_t offset,
                  std::uint64_t end);
  void learn_from(KernelWatch& kernel, Word& word, std::uint32_t value, std::uint32_t needed);
  void read_issued(KernelWatch& kernel, const noc::Request& request);
  void write_issued(KernelWatch& kernel, const noc::Request& request, machine::Coordinate tile,
                    const Stamp& stamp);
  void word_issued(KernelWatch& kernel, const noc::Request& request, machine::Coordinate tile,
                   const Stamp& stamp);
  [[noreturn]] static void fail_unawaited(const KernelWatch& kernel, const Awaited& command);
  LinePart& part_of(int line, int chip, machine::Coordinate tile);
  bool has_l1(int chip, machine::Coordinate tile) const;
  Arrived expect(KernelWatch& kernel, int line, int chip, const Errand::Bytes& bytes);
  Stamp word_stamp(const Stamp& stamp, int line, const Errand& errand);
  static std::optional<std::uint64_t> unread_shift(const Ledger& there, const LinePart& part,
                                                   const Errand::Bytes& bytes);
  void check_unused(const KernelWatch& kernel, int chip, const Errand::Bytes& bytes);
  void use(KernelWatch& kernel, int chip, machine::Coordinate tile, std::uint64_t first,
           std::uint64_t end);
  void check_lines(const KernelWatch& kernel) const;
  struct Use {
    std::string_view verb;
    machine::Coordinate tile;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  // Checks that the bytes are not those of a buffer that is yet to come, or was freed; returns the
  // buffer, if they are one's.
  Buffer* buffer_for(const KernelWatch& kernel, int chip, const Use& use);
  void check_own_buffer(const KernelWatch& kernel, const Use& use);
  void record(Buffer* buffer, const KernelWatch& kernel, const Use& use, const Arrived& arrived);
  void record(Buffer* buffer, const KernelWatch& kernel, const Use& use, const Stamp& stamp);
  void check_word_at_start(const KernelWatch& kernel, int chip, const Errand::Word& word);
  void check_errand(const KernelWatch& kernel, const Errand& errand,
                    const std::vector<Arrived>& arrivals, const Stamp& stamp);
  void free(int chip, Buffer& buffer);
  int memory_of(int chip, machine::Coordinate tile) const;
  bool knows_program(const KernelWatch& kernel, int chip, int program) const;
  std::vector<std::size_t> buffers_at(int chip, const Use& use) const;
  std::string other_buffer(int chip, const Use& use, const Buffer& buffer) const;
  Time now() const;
  static void increment(Word& word, const noc::Address& at, KernelWatch& kernel, const Stamp& stamp,
                        std::uint32_t value);
  static void set_inline(Word& word, KernelWatch& kernel, const Stamp& stamp, std::uint32_t value);
  Word& word_at(int chip, machine::Coordinate tile, std::uint64_t offset);

  const machine::ChipCluster& cluster_;
  std::vector<ChipState> chips_;
  std::vector<StreamState> streams_;
  std::map<int, Line> lines_;
  std::map<int, LineParts> line_parts_;
  Stream next_stream_ = 0;                      // behind those of queues
  std::map<std::size_t, Entrusted> entrusted_;  // packets under way
  std::size_t next_packet_ = 0;
  std::vector<std::uint32_t> first_stream_;  // by chip
  std::vector<Place> first_place_;           // by chip
  std::map<Place, std::uint32_t> clocks_;    // clock of the last kernel at a place
  // All kernels, and those of Ethernet cores by chip and channel.
  std::vector<std::unique_ptr<KernelWatch>> kernels_;
  std::vector<std::vector<std::vector<KernelWatch*>>> ethernet_kernels_;
};

}  // namespace towpath::tenstorrent
