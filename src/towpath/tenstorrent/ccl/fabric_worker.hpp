// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "towpath/tenstorrent/fabric/fabric.hpp"

// A worker that moves data for a transport, packet by packet: one of its kernels reads operands
// from DRAM into L1, the next reduces them, the last stores the result and sends it over the
// fabric.

namespace towpath::tenstorrent::ccl {

// Pages of a packet's payload, distributed over a chip's DRAM channels in turn.
class Pages;

// How the far chip learns that bytes are there: by a packet of its own behind them, or by the last
// packet of them, whose router stands still until they are written, or goes on.
enum class Telling { behind, with_last, with_last_deferred };

// One stretch of a Move, for one worker. It must live until `left` is called.
struct Part {
  std::uint64_t size_bytes = 0;
  bool has_source = false;
  bool has_addend = false;
  bool has_destination = false;
  int reads = 0;  // how many operands are in DRAM
  // A reduction right behind another one of the same Move: the compute cores' pipeline is running
  // and has the sum, and what is stored may be added to, so that it is not waited for.
  bool continues_reduction = false;
  // What is added and the part before it are added at once.
  bool adds_in_pairs = false;
  // Added is what has come in over a link, read page by page; else what lies in scratch.
  bool adds_received = false;
  std::uint64_t staging = 0;       // page of the first packet in the chip's DRAM
  fabric::Header header;           // of each packet, but for what follows
  std::uint64_t landing = 0;       // page of the far chip that the first packet goes to
  const Pages* pages = nullptr;    // of that chip
  machine::Coordinate lander;      // router there that writes it
  std::uint64_t arrival_word = 0;  // packed address
  std::uint32_t arrivals = 0;      // what it is incremented by after the last packet
  Telling telling = Telling::behind;
  int hops = 0;  // of those that wait, the one that goes farthest is sent first
  void (*left)(Part& part) = nullptr;  // called when everything has been read, and stored
};

class Pages {
 public:
  Pages(const machine::Chip& chip, std::uint64_t payload_bytes_max);
  // Address of a page by the tile of its group that is nearest, over a NoC, to the tile that reads
  // or writes it.
  noc::Address to_read(std::uint64_t page, machine::Coordinate reader, int noc) const;
  noc::Address to_write(std::uint64_t page, machine::Coordinate writer, int noc) const;
  noc::Address address(std::uint64_t page) const;
  // Pages of all channels together.
  std::uint64_t pages() const { return rows_ * banks(); }

 private:
  // Channels of the chip.
  std::uint64_t banks() const {
    return chip_.dram_groups.size() * static_cast<std::uint64_t>(chip_.dram.channels_per_group);
  }
  const std::vector<machine::Coordinate>& tiles(std::uint64_t page) const;
  std::uint64_t offset(std::uint64_t page) const;  // of its channel's group

  const machine::Chip& chip_;
  std::uint64_t page_bytes_;
  std::uint64_t rows_;  // pages of a channel
};

class FabricWorker {
 public:
  // Over which it writes to its router and to DRAM.
  static constexpr int kWriterNoc = 1;

  struct Config {
    machine::Coordinate core;
    // Port of the router that it sends to; none: it stores only.
    std::optional<fabric::RouterPort> port;
    std::uint64_t payload_bytes_max = 4096;
  };
  // Creates its kernels in the program, which, like the pages, outlives it.
  FabricWorker(Program& program, const Pages& pages, const Config& config);
  FabricWorker(const FabricWorker&) = delete;
  FabricWorker& operator=(const FabricWorker&) = delete;

  // Its program is launched, and the worker opens its connection no sooner.
  void start_at(Time time) { started_at_ = time; }
  void add(Part& part);
  // Closes its connection after its current parts; the next part opens it again.
  void close();
  bool is_open() const { return is_open_; }
  // When it last closed its connection.
  Time closed_at() const { return closed_at_; }
  std::uint64_t queued_bytes() const { return queued_bytes_; }
  // So far, all of them.
  std::uint64_t parts_taken() const { return parts_taken_; }

 private:
  // Packets that a worker holds in L1, and packets whose reads are under way, each with a
  // transaction id. Chosen here; no source.
  static constexpr int kBuffers = 32;
  static constexpr std::size_t kReadAhead = 8;

  struct Packet {
    Part* part = nullptr;
    std::uint64_t number = 0;  // in its part
    std::uint64_t size_bytes = 0;
    bool is_last = false;
    Time ready_at;  // when its reduction is in L1
  };
  void run_reader(DataMovementCore& core);
  void run_compute(const machine::Chip& chip);
  void run_writer(DataMovementCore& core);
  void read(DataMovementCore& core, const Packet& packet);
  void write(DataMovementCore& core, fabric::Connection* connection, const Packet& packet);
  void send(fabric::Connection& connection, const Packet& packet);
  Packet next_packet();
  std::uint64_t buffer(std::uint64_t packet, bool is_addend) const;
  template <typename Condition>
  void wait_until(sim::Process*& waiting, Condition condition);
  void wake(sim::Process*& waiting);

  const Pages& pages_;
  Config config_;
  sim::Simulation& simulation_;
  std::deque<Part*> parts_;          // not read yet
  std::uint64_t next_number_ = 0;    // next packet of the first part to read
  std::deque<Packet> read_packets_;  // packets in L1
  std::deque<Packet> packets_;       // packets in L1 and reduced
  std::uint64_t read_ = 0;           // number of packets read
  std::uint64_t written_ = 0;
  std::uint64_t freed_ = 0;  // number of packets whose buffers are free again
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t parts_taken_ = 0;
  int queued_parts_ = 0;
  bool is_open_ = false;
  bool shall_close_ = false;
  Time started_at_;
  Time closed_at_;
  sim::Process* reader_ = nullptr;  // while it waits
  sim::Process* compute_ = nullptr;
  sim::Process* writer_ = nullptr;
};

}  // namespace towpath::tenstorrent::ccl
