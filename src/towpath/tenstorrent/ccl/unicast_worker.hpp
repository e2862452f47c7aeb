// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/tenstorrent/ccl/pages.hpp"
#include "towpath/tenstorrent/ccl/workload.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"

// A worker that moves data to one chip at a time, packet by packet: its first kernel reads operands
// from DRAM into L1, the compute cores reduce them, and its second kernel stores the result and
// sends it over the fabric.

namespace towpath::tenstorrent::ccl {

// Work of one worker: a range of a Move. It must exist until `left` is called.
struct Part {
  std::uint64_t size_bytes = 0;
  Work work;
  std::uint64_t staging = 0;       // page of the first packet in the chip's DRAM
  fabric::Header header;           // of each packet, completed by the worker
  std::uint64_t landing = 0;       // page of the far chip for the first packet
  const Pages* pages = nullptr;    // of the far chip
  machine::Coordinate lander;      // router there that writes it
  std::uint64_t arrival_word = 0;  // packed address
  std::uint32_t arrivals = 0;      // increment of the word after the last packet
  collective::Notification notification = collective::Notification::trailing;
  int hops = 0;  // of parts that wait, the part with the most hops is sent first
  void (*left)(Part& part) = nullptr;  // called when everything is read and stored
};

class UnicastWorker {
 public:
  // For writes to its router and to DRAM.
  static constexpr int kWriterNoc = 1;

  struct Config {
    machine::Coordinate core;
    // Port of its router. A worker without one only stores.
    std::optional<fabric::RouterPort> port;
    std::uint64_t payload_bytes_max = 4096;
  };
  // Creates its kernels in the program. The program and the pages must outlive it.
  UnicastWorker(Program& program, const Pages& pages, const Config& config);
  UnicastWorker(const UnicastWorker&) = delete;
  UnicastWorker& operator=(const UnicastWorker&) = delete;

  // Earliest time at which it opens its connection.
  void start_at(Time time) { started_at_ = time; }
  void add(Part& part);
  // Closes its connection after its current parts. The next part opens it again.
  void close();
  bool is_open() const { return is_open_; }
  // Time at which it last closed its connection.
  Time closed_at() const { return closed_at_; }
  std::uint64_t queued_bytes() const { return queued_bytes_; }
  std::uint64_t parts_taken() const { return parts_taken_; }

 private:
  // Packets in L1, and packets whose reads are in flight, each with a transaction id. Chosen here,
  // without a source.
  static constexpr int kBuffers = 32;
  static constexpr std::size_t kReadAhead = 8;

  struct Packet {
    Part* part = nullptr;
    std::uint64_t number = 0;  // in its part
    std::uint64_t size_bytes = 0;
    bool is_last = false;
    Time ready_at;  // its reduction is in L1
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
