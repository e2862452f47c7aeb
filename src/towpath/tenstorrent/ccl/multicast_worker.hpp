// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "towpath/tenstorrent/ccl/pages.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"

// A worker that sends to all chips of a line or ring at once: one core for a link in each
// direction. Its reader reads from DRAM and sends in one direction. Its writer sends the same bytes
// in the other direction and stores them in the DRAM of its chip. Source: tt-metal, all-gather by
// multicast (all_gather/device/kernels/multicast_reader.cpp, multicast_writer.cpp).

namespace towpath::tenstorrent::ccl {

inline constexpr int kWays = 2;  // along a line or round a ring

// Payload of a packet: pages of the array.
inline constexpr std::uint64_t kArrayPageBytes = fabric::kPageBytes;
std::uint64_t multicast_packet_bytes(std::uint64_t payload_bytes_max);

// Packets in one direction.
struct MulticastWay {
  fabric::Header header;   // of each packet, completed by the worker
  fabric::Header shorter;  // to all but the last chip
  // Every other packet has the shorter header: each direction brings half of the packets to the
  // chip half way around a ring.
  bool alternates = false;
  bool begins_shorter = false;
  machine::Coordinate lander;      // router of the nearest chip that writes it
  std::uint64_t arrival_word = 0;  // packed address, the same at each chip
};

// Bytes for all chips in both directions, followed by an increment. Without bytes, only the
// increment. It must exist until `left` is called.
struct Multicast {
  std::uint64_t size_bytes = 0;
  bool is_stored = false;     // in the DRAM of its chip, too
  std::uint64_t staging = 0;  // page of the first packet in the chip's DRAM
  std::uint64_t landing = 0;  // page of the far chips that the first packet goes to
  std::array<std::optional<MulticastWay>, kWays> ways;
  int to_pass = kWays;                      // kernels that have not sent it
  void (*left)(Multicast& sent) = nullptr;  // called when both have, and all is stored
};

class MulticastWorker {
 public:
  struct Config {
    machine::Coordinate core;
    std::array<std::optional<fabric::RouterPort>, kWays> ports;
    std::uint64_t payload_bytes_max = 4096;
  };
  // Creates its kernels in the program. The program and the pages must outlive it.
  MulticastWorker(Program& program, const Pages& pages, const Config& config);
  MulticastWorker(const MulticastWorker&) = delete;
  MulticastWorker& operator=(const MulticastWorker&) = delete;

  // Earliest time at which it opens its connections.
  void start_at(Time time) { started_at_ = time; }
  void add(Multicast& multicast);
  // Closes its connections after all multicasts. The next multicast opens them again.
  void close();
  bool is_open() const;
  // Time at which it last closed a connection.
  Time closed_at() const { return closed_at_; }

 private:
  // A kernel with its connection and its queue.
  struct Side {
    std::optional<fabric::Connection> connection;
    std::deque<Multicast*> queue;
    bool is_open = false;
    bool has_sent = false;  // a packet, since it was opened
    bool shall_close = false;
    sim::Process* waiting = nullptr;
  };
  void run(DataMovementCore& core, std::size_t number);
  void pass(DataMovementCore& core, std::size_t number, Multicast& multicast);
  void read_and_send(DataMovementCore& core, const Multicast& multicast);
  void send_and_store(DataMovementCore& core, const Multicast& multicast);
  void read_entry(DataMovementCore& core, const Multicast& multicast, std::uint64_t entry);
  void send_packet(DataMovementCore& core, std::size_t number, const Multicast& multicast,
                   std::uint64_t packet);
  void store_packet(DataMovementCore& core, const Multicast& multicast, std::uint64_t packet);
  void send_increment(DataMovementCore& core, std::size_t number, const MulticastWay& way);
  void open(std::size_t number);
  void close(std::size_t number);
  std::uint64_t packets_of(const Multicast& multicast) const {
    return (multicast.size_bytes + packet_bytes_ - 1) / packet_bytes_;
  }
  std::uint64_t bytes_of_packet(const Multicast& multicast, std::uint64_t packet) const {
    return std::min(multicast.size_bytes - packet * packet_bytes_, packet_bytes_);
  }
  template <typename Action>
  void for_each_packet(const Multicast& multicast, std::uint64_t entry, Action action) const;
  std::uint64_t buffer(std::uint64_t packet) const;
  template <typename Condition>
  void wait_until(sim::Process*& waiting, Condition condition);
  void wake(sim::Process*& waiting);

  const Pages& pages_;
  Config config_;
  std::uint64_t packet_bytes_;
  sim::Simulation& simulation_;
  std::array<Side, kWays> sides_;
  std::uint64_t read_ = 0;   // entries read
  std::uint64_t freed_ = 0;  // entries that the writer has finished
  Time started_at_;
  Time closed_at_;
};

}  // namespace towpath::tenstorrent::ccl
