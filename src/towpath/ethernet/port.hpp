// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "towpath/machine/chip_parameters.hpp"
#include "towpath/sim/crossing.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/sim/timer.hpp"
#include "towpath/sim/trace.hpp"

// The Ethernet subsystem of one tile: transmit queues for commands from the core, frames on the
// wire, and bytes that appear in the far end's L1 in order of arrival.
//
// A free queue accepts a command and is busy until the command's bytes are fetched. Commands of one
// queue leave in order. Queues share the wire frame by frame in turn. A frame's bytes are read from
// L1 at each transmission, including retransmissions: the source must not change until the far end
// has acknowledged the command's last frame. A frame is written at the far end as a whole.

namespace towpath::ethernet {

class Link;

// Number of an accepted command of a port, counted from 1.
using CommandNumber = std::uint64_t;

// The L1 of the port's tile.
class TileMemory {
 public:
  virtual ~TileMemory() = default;
  virtual std::uint64_t size_bytes() const = 0;
  virtual void read(std::uint64_t offset, std::span<std::byte> to) const = 0;
  // Writes a frame's bytes and wakes processes that wait for them.
  virtual void write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Writes a frame's word to a 32-bit register of the tile.
  virtual void write_register(std::uint64_t address, std::uint32_t value) = 0;
  // Marks bytes as the source of a command until it is released, for memories that watch sources.
  virtual void hold_source(CommandNumber, std::uint64_t /*offset*/, std::uint64_t /*size_bytes*/) {}
  virtual void release_source(CommandNumber) {}
};

struct Command {
  enum class Kind : std::uint8_t { write, register_write };
  Kind kind = Kind::write;
  std::uint64_t source = 0;       // write: offset in the port's L1
  std::uint64_t destination = 0;  // offset in the L1 at the far end, or the register's address
  std::uint64_t size_bytes = 0;   // write only
  std::uint32_t value = 0;        // register write only
};

struct PortCounters {
  std::uint64_t commands = 0;     // accepted
  std::uint64_t frames_sent = 0;  // including retransmissions
  std::uint64_t frames_resent = 0;
  std::uint64_t frames_lost = 0;             // on the wire
  std::uint64_t frames_received = 0;         // received and written
  std::uint64_t frames_dropped = 0;          // received out of order
  std::uint64_t payload_bytes_sent = 0;      // first transmissions only
  std::uint64_t payload_bytes_resent = 0;    // retransmissions only
  std::uint64_t payload_bytes_received = 0;  // received and written
  Time wire_time;                            // time with a frame on the wire
};

// The port of one Ethernet tile. It and its TileMemory live as long as the simulation runs. The
// ports of a link without faults may be in two partitions of a SimulationGroup.
//
//   Port port(simulation, figures, memory, "Ethernet core (9, 0) of chip 0");
//   Link link(simulation, port, other_port);
//   while (port.is_busy(0)) {
//     port.wake_when_free(0, *simulation.current());
//     simulation.suspend("a free queue");
//   }
//   port.send(0, {.source = 0x1000, .destination = 0x2000, .size_bytes = 64});
//
// Wrong: writing a payload over queue 0 and its flag over queue 1. Queues are not ordered with each
// other, and the flag can arrive first.
class Port {
 public:
  // `name` is the subject of error messages.
  Port(sim::Simulation& simulation, const machine::EthernetParameters& figures, TileMemory& memory,
       std::string name);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Minimum time from the start of a frame until its arrival at the far end.
  static Time latency(const machine::EthernetParameters& figures);

  // Accepts a command; the queue must be free. Throws std::invalid_argument if the queue does not
  // exist, the port is not connected, the command is empty, a size or address is not a multiple of
  // the word, or the range exceeds the L1 of either end.
  CommandNumber send(int queue, const Command& command);

  // True if a queue is full: its last command is being fetched, or too many are not yet on the
  // wire. Throws std::invalid_argument if the queue does not exist.
  bool is_busy(int queue) const { return is_busy(queues_[checked(queue)]); }
  // Wakes the process once, when the queue becomes free. The process must suspend in a loop until
  // the queue is not busy, and must not end before.
  void wake_when_free(int queue, sim::Process& process) {
    queues_[checked(queue)].processes.push_back(&process);
  }

  // Sets the only listener, called when a queue becomes free and when the link goes up or down. It
  // must not send from within the call.
  void set_listener(sim::Action action, void* context);

  const std::string& name() const { return name_; }
  TileMemory& memory() const { return *memory_; }
  bool is_connected() const { return link_ != nullptr; }
  // Null if not connected.
  Link* link() const { return link_; }
  Port* far_end() const;
  bool is_link_up() const;

  // Base firmware's action when the core yields to it: marks this end of a down link as ready to
  // train. No effect if the link is up or absent.
  void run_routing();
  // True if run_routing() was called since the link went down. False if the link is up.
  bool has_run_routing() const;

  // True if all commands are on the wire and acknowledged.
  bool is_idle() const;
  const PortCounters& counters() const { return counters_; }

 private:
  friend class Link;

  // A command not yet fully split into frames.
  struct Waiting {
    CommandNumber number;
    Command command;
    std::uint64_t framed_bytes = 0;
  };
  struct Queue {
    Port* port = nullptr;
    bool is_fetching = false;
    int not_on_wire = 0;  // accepted commands with bytes not yet on the wire
    std::vector<Waiting> waiting;
    std::vector<sim::Process*> processes;  // waiting for a free queue
  };
  // State of a frame until its acknowledgement.
  struct Frame {
    CommandNumber command = 0;
    std::size_t queue = 0;
    bool is_last = false;        // of its command
    bool has_been_sent = false;  // to the last byte
    Time sent_at = Time();       // end of its last transmission
    Command part;
  };
  // A frame in flight.
  struct Flight {
    Port* from = nullptr;
    std::uint64_t sequence = 0;
    bool is_lost = false;
    Time arrives_at = Time();
    Command part;
    std::vector<std::byte> bytes;
  };
  struct Acknowledgement {
    Time at;
    std::uint64_t end = 0;  // all earlier frames have arrived
  };

  std::size_t checked(int queue) const;
  void check(const Command& command) const;
  void check_multiple(const char* what, std::uint64_t value) const;
  void check_inside(const char* what, std::uint64_t offset, std::uint64_t size_bytes,
                    const Port& owner) const;
  bool is_busy(const Queue& queue) const {
    return queue.is_fetching || queue.not_on_wire >= figures_.queue_commands_max;
  }
  void on_queue_free(Queue& queue);
  void notify();

  void fill_wire();
  bool take_frame();
  void frame_next_part(std::size_t queue);
  void transmit(std::uint64_t sequence);
  Flight& new_flight();
  void on_wire_end();
  Frame& frame_at(std::uint64_t sequence) { return frames_[sequence % frames_.size()]; }
  Bytes frame_bytes(const Command& part) const;
  Time wire_time(const Command& part) const {
    return transfer_time(frame_bytes(part), figures_.line_rate);
  }
  Time delivery_time(const Command& part) const {
    return transfer_time(frame_bytes(part), figures_.delivery_rate);
  }
  void receive(const Flight& flight);
  void write(const Flight& flight);

  void acknowledge(Time arrived_at, std::uint64_t end);
  void take_acknowledgements();
  bool is_window_full() const { return end_ - first_ == frames_.size(); }
  void wait_for_acknowledgement();
  void arm_resend();
  void on_resend_timeout();

  void on_link_down();
  void on_link_up();
  void trace_command(int queue, const Command& command, Time end) const;
  void trace_frame(const Frame& frame) const;

  static void fetched(void* queue);
  static void wire_ended(void* port) { static_cast<Port*>(port)->on_wire_end(); }
  static void arrived(void* flight);
  static void acknowledged(void* port);
  static void timed_out(void* port) { static_cast<Port*>(port)->on_resend_timeout(); }

  sim::Simulation& simulation_;
  sim::Crossing crossing_;
  machine::EthernetParameters figures_;
  TileMemory* memory_;
  std::string name_;
  Link* link_ = nullptr;
  sim::Action listener_ = nullptr;
  void* listener_context_ = nullptr;

  std::vector<Queue> queues_;
  std::size_t next_queue_ = 0;  // next at the wire
  CommandNumber commands_ = 0;

  // Go-Back-N, sending: frames [first_, end_) are unacknowledged. Of them [next_, end_) are waiting
  // for transmission or retransmission.
  std::vector<Frame> frames_;
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::deque<Acknowledgement> acknowledgements_;  // in flight
  std::uint64_t announced_ = 0;                   // the end in the last of them
  sim::Timer resend_;

  // Go-Back-N, receiving.
  std::uint64_t expected_ = 0;

  std::optional<std::uint64_t> on_wire_;
  Flight* wire_flight_ = nullptr;  // null if already lost
  Time far_end_free_at_;           // when the far end has passed on all frames sent
  std::deque<Flight> flights_;     // storage
  std::deque<Flight*> in_flight_;  // in order of arrival, including frames that have arrived

  PortCounters counters_;
};

}  // namespace towpath::ethernet
