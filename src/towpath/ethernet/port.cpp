// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/ethernet/port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/ethernet/link.hpp"
#include "towpath/sim/hardware_priority.hpp"

namespace towpath::ethernet {

Port::Port(sim::Simulation& simulation, const machine::EthernetParameters& figures,
           TileMemory& memory, std::string name)
    : simulation_(simulation),
      crossing_(simulation),
      figures_(figures),
      memory_(&memory),
      name_(std::move(name)),
      queues_(static_cast<std::size_t>(figures.tx_queues)),
      frames_(static_cast<std::size_t>(figures.frames_unacknowledged_max)) {
  TOWPATH_CHECK(figures.tx_queues > 0 && figures.queue_commands_max > 0 &&
                    figures.frames_unacknowledged_max > 0 && figures.word_bytes > 0 &&
                    figures.frame_payload_bytes_max >= figures.word_bytes,
                "{} has {} queues of {} commands, frames of {} bytes and a window of {}", name_,
                figures.tx_queues, figures.queue_commands_max, figures.frame_payload_bytes_max,
                figures.frames_unacknowledged_max);
  TOWPATH_CHECK(
      figures.line_rate > Rate() && figures.read_rate > Rate() && figures.delivery_rate > Rate(),
      "{} has a line of {}, reads at {} and delivers at {} bytes per second", name_,
      figures.line_rate.bytes_per_second(), figures.read_rate.bytes_per_second(),
      figures.delivery_rate.bytes_per_second());
  for (Queue& queue : queues_) queue.port = this;
}

// --- commands

CommandNumber Port::send(int queue_number, const Command& command) {
  Queue& queue = queues_[checked(queue_number)];
  check(command);
  TOWPATH_CHECK(!is_busy(queue), "{} was given a command for queue {} at {} ps, which is busy",
                name_, queue_number, simulation_.now().ps());
  const CommandNumber number = ++commands_;
  ++counters_.commands;
  queue.is_fetching = true;
  ++queue.not_on_wire;
  Waiting& waiting = queue.waiting.emplace_back(Waiting{number, command});
  if (command.kind == Command::Kind::write) {
    memory_->hold_source(number, command.source, command.size_bytes);
  } else {
    waiting.command.size_bytes = 0;
  }
  const Time end = simulation_.now() + figures_.command_time +
                   transfer_time(Bytes(waiting.command.size_bytes), figures_.read_rate);
  simulation_.at(end, &fetched, &queue, sim::kHardwarePriority);
  if (simulation_.trace() != nullptr) trace_command(queue_number, waiting.command, end);
  fill_wire();
  return number;
}

std::size_t Port::checked(int queue) const {
  if (queue < 0 || queue >= figures_.tx_queues) {
    throw std::invalid_argument(fmt::format("{} has no queue {}; its queues are 0 to {}", name_,
                                            queue, figures_.tx_queues - 1));
  }
  return static_cast<std::size_t>(queue);
}

void Port::check(const Command& command) const {
  if (link_ == nullptr) {
    throw std::invalid_argument(fmt::format("{} is connected to no other core", name_));
  }
  if (command.kind == Command::Kind::register_write) return;
  if (command.size_bytes == 0) {
    throw std::invalid_argument(fmt::format("{} has a send of 0 bytes; it must be at least {}",
                                            name_, figures_.word_bytes));
  }
  check_multiple("size", command.size_bytes);
  check_multiple("source", command.source);
  check_multiple("destination", command.destination);
  check_inside("source", command.source, command.size_bytes, *this);
  check_inside("destination", command.destination, command.size_bytes, *far_end());
}

void Port::check_multiple(const char* what, std::uint64_t value) const {
  if (value % static_cast<std::uint64_t>(figures_.word_bytes) == 0) return;
  throw std::invalid_argument(fmt::format("{} was given a {} of {:#x}; it must be a multiple of {}",
                                          name_, what, value, figures_.word_bytes));
}

void Port::check_inside(const char* what, std::uint64_t offset, std::uint64_t size_bytes,
                        const Port& owner) const {
  const std::uint64_t available = owner.memory_->size_bytes();
  if (offset <= available && size_bytes <= available - offset) return;
  throw std::invalid_argument(
      fmt::format("{} was given a {} of {:#x} for {} bytes; the L1 of {} ends at {:#x}", name_,
                  what, offset, size_bytes, owner.name_, available));
}

void Port::set_listener(sim::Action action, void* context) {
  listener_ = action;
  listener_context_ = context;
}

void Port::fetched(void* context) {
  Queue& queue = *static_cast<Queue*>(context);
  queue.is_fetching = false;
  if (!queue.port->is_busy(queue)) queue.port->on_queue_free(queue);
}

void Port::on_queue_free(Queue& queue) {
  for (sim::Process* const process : queue.processes) simulation_.wake(*process);
  queue.processes.clear();
  notify();
}

void Port::notify() {
  if (listener_ != nullptr) listener_(listener_context_);
}

// --- the wire

// Puts the next frame on a free wire: retransmissions first, then new frames.
void Port::fill_wire() {
  if (on_wire_.has_value() || !is_link_up()) return;
  take_acknowledgements();
  if (next_ == end_ && !take_frame()) return;
  transmit(next_++);
}

// Makes a frame of the next queue in round-robin order.
bool Port::take_frame() {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const std::size_t queue = (next_queue_ + i) % queues_.size();
    if (queues_[queue].waiting.empty()) continue;
    if (is_window_full()) {
      wait_for_acknowledgement();
      return false;
    }
    frame_next_part(queue);
    next_queue_ = (queue + 1) % queues_.size();
    return true;
  }
  return false;
}

void Port::frame_next_part(std::size_t number) {
  Queue& queue = queues_[number];
  Waiting& waiting = queue.waiting.front();
  Frame& frame = frame_at(end_++);
  frame = {.command = waiting.number, .queue = number, .part = waiting.command};
  if (frame.part.kind == Command::Kind::write) {
    frame.part.source += waiting.framed_bytes;
    frame.part.destination += waiting.framed_bytes;
    frame.part.size_bytes = std::min(waiting.command.size_bytes - waiting.framed_bytes,
                                     static_cast<std::uint64_t>(figures_.frame_payload_bytes_max));
    waiting.framed_bytes += frame.part.size_bytes;
    counters_.payload_bytes_sent += frame.part.size_bytes;
  }
  frame.is_last = waiting.framed_bytes == waiting.command.size_bytes;
  if (frame.is_last) queue.waiting.erase(queue.waiting.begin());
}

// The far end accepts whole frames and passes them on in sequence, so the arrival time is
// determined here.
void Port::transmit(std::uint64_t sequence) {
  Frame& frame = frame_at(sequence);
  const Time duration = wire_time(frame.part);
  on_wire_ = sequence;
  frame.sent_at = simulation_.now() + duration;
  ++counters_.frames_sent;
  counters_.wire_time += duration;
  if (frame.has_been_sent) {
    ++counters_.frames_resent;
    counters_.payload_bytes_resent += frame.part.size_bytes;
  }
  if (simulation_.trace() != nullptr) trace_frame(frame);
  simulation_.at(frame.sent_at, &wire_ended, this, sim::kHardwarePriority);
  link_->on_frame_sent();
  arm_resend();
  if (link_->loses_frame()) {
    ++counters_.frames_lost;
    return;
  }
  far_end_free_at_ = std::max(frame.sent_at, far_end_free_at_) + delivery_time(frame.part);
  const Time arrives_at = far_end_free_at_ + figures_.path_time;
  Flight& flight = new_flight();
  flight.sequence = sequence;
  flight.is_lost = false;
  flight.arrives_at = arrives_at;
  flight.part = frame.part;
  if (frame.part.kind == Command::Kind::write) {
    flight.bytes.resize(frame.part.size_bytes);
    memory_->read(frame.part.source, flight.bytes);
  }
  wire_flight_ = &flight;
  crossing_.at(far_end()->simulation_, arrives_at, &arrived, &flight);
  if (!link_->has_faults()) acknowledge(arrives_at, sequence + 1);
}

// The far end may lag by less than the duration of a frame and still read a frame that has arrived.
Port::Flight& Port::new_flight() {
  Flight* flight = nullptr;
  if (!in_flight_.empty() &&
      in_flight_.front()->arrives_at + latency(figures_) <= simulation_.now()) {
    flight = in_flight_.front();
    in_flight_.pop_front();
  } else {
    flight = &flights_.emplace_back();
    flight->from = this;
  }
  in_flight_.push_back(flight);
  return *flight;
}

// A register write travels as a word of payload.
Bytes Port::frame_bytes(const Command& part) const {
  const std::uint64_t payload_bytes = part.kind == Command::Kind::write
                                          ? part.size_bytes
                                          : static_cast<std::uint64_t>(figures_.word_bytes);
  return Bytes(payload_bytes + static_cast<std::uint64_t>(figures_.frame_overhead_bytes));
}

// From the wire to memory. The shortest payload is one word.
Time Port::latency(const machine::EthernetParameters& figures) {
  const Bytes shortest(static_cast<std::uint64_t>(figures.word_bytes) +
                       static_cast<std::uint64_t>(figures.frame_overhead_bytes));
  return transfer_time(shortest, figures.line_rate) +
         transfer_time(shortest, figures.delivery_rate) + figures.path_time;
}

void Port::on_wire_end() {
  Frame& frame = frame_at(*on_wire_);
  on_wire_.reset();
  wire_flight_ = nullptr;
  const bool is_command_on_wire = frame.is_last && !frame.has_been_sent;
  frame.has_been_sent = true;
  if (is_command_on_wire) {
    Queue& queue = queues_[frame.queue];
    const bool was_busy = is_busy(queue);
    --queue.not_on_wire;
    if (was_busy && !is_busy(queue)) on_queue_free(queue);
  }
  fill_wire();
}

void Port::arrived(void* context) {
  Flight& flight = *static_cast<Flight*>(context);
  if (!flight.is_lost) flight.from->far_end()->receive(flight);
}

void Port::receive(const Flight& flight) {
  if (flight.sequence == expected_) {
    ++expected_;
    ++counters_.frames_received;
    counters_.payload_bytes_received += flight.part.size_bytes;
    write(flight);
  } else {
    ++counters_.frames_dropped;
  }
  // Without faults, transmit() has already acknowledged the frame.
  if (!link_->has_faults()) return;
  if (link_->is_up() && !link_->loses_frame()) {
    far_end()->acknowledge(simulation_.now(), expected_);
  }
}

void Port::write(const Flight& flight) {
  if (flight.part.kind == Command::Kind::write) {
    memory_->write(flight.part.destination, flight.bytes);
  } else {
    memory_->write_register(flight.part.destination, flight.part.value);
  }
}

// --- Go-Back-N

// Records an acknowledgement of all frames before `end`, sent by the far end. Its delay is the path
// plus the shortest frame. Its wire occupancy is not modelled. Only acknowledgements with an effect
// on arrival get an event. The others are evaluated lazily.
void Port::acknowledge(Time arrived_at, std::uint64_t end) {
  if (end <= announced_) return;
  const Time at =
      arrived_at + figures_.path_time + wire_time({.kind = Command::Kind::register_write});
  acknowledgements_.push_back({at, end});
  bool is_awaited = is_window_full();
  for (; announced_ < end; ++announced_) is_awaited |= frame_at(announced_).is_last;
  if (is_awaited) simulation_.at(at, &acknowledged, this, sim::kHardwarePriority);
}

void Port::acknowledged(void* context) {
  Port& port = *static_cast<Port*>(context);
  port.take_acknowledgements();
  port.fill_wire();
}

void Port::take_acknowledgements() {
  while (!acknowledgements_.empty() && acknowledgements_.front().at <= simulation_.now()) {
    for (; first_ < acknowledgements_.front().end; ++first_) {
      const Frame& frame = frame_at(first_);
      if (frame.is_last && frame.part.kind == Command::Kind::write) {
        memory_->release_source(frame.command);
      }
    }
    acknowledgements_.pop_front();
  }
  next_ = std::max(next_, first_);
  if (first_ == end_) resend_.cancel();
}

// Schedules the next acknowledgement if it is in flight. Otherwise the window is full, and an event
// follows later.
void Port::wait_for_acknowledgement() {
  if (acknowledgements_.empty()) return;
  simulation_.at(acknowledgements_.front().at, &acknowledged, this, sim::kHardwarePriority);
}

// One timer serves the oldest frame. On expiry it checks whether that frame is still the oldest.
void Port::arm_resend() {
  if (!link_->may_lose_frames() || resend_.is_armed() || next_ == first_) return;
  const Time due = frame_at(first_).sent_at + figures_.resend_timeout;
  resend_.arm(simulation_, std::max(due, simulation_.now()), &timed_out, this,
              sim::kHardwarePriority);
}

void Port::on_resend_timeout() {
  take_acknowledgements();
  if (next_ == first_) return;
  if (simulation_.now() < frame_at(first_).sent_at + figures_.resend_timeout) {
    arm_resend();
    return;
  }
  next_ = first_;
  fill_wire();
}

// --- the link

Port* Port::far_end() const { return link_ == nullptr ? nullptr : &link_->far_end(*this); }
bool Port::is_link_up() const { return link_ != nullptr && link_->is_up(); }
bool Port::has_run_routing() const { return link_ != nullptr && link_->is_ready_to_train(*this); }

void Port::run_routing() {
  if (link_ != nullptr) link_->say_ready(*this);
}

bool Port::is_idle() const {
  return first_ == end_ &&
         std::ranges::all_of(queues_, [](const Queue& queue) { return queue.waiting.empty(); });
}

// Frames that are not completely on the wire are lost.
void Port::on_link_down() {
  if (wire_flight_ != nullptr && frame_at(*on_wire_).sent_at > simulation_.now()) {
    wire_flight_->is_lost = true;
    ++counters_.frames_lost;
    wire_flight_ = nullptr;
  }
  notify();
}

void Port::on_link_up() {
  take_acknowledgements();
  next_ = first_;
  notify();
  fill_wire();
}

// --- trace

void Port::trace_command(int queue, const Command& command, Time end) const {
  sim::Trace& trace = *simulation_.trace();
  trace.span(trace.track(fmt::format("ethernet {} queue {}", name_, queue)), trace.name("command"),
             simulation_.now(), end, static_cast<std::int64_t>(command.size_bytes));
}

void Port::trace_frame(const Frame& frame) const {
  sim::Trace& trace = *simulation_.trace();
  trace.span(trace.track(fmt::format("link {} > {}", name_, far_end()->name_)),
             trace.name(frame.has_been_sent ? "frame sent again" : "frame"), simulation_.now(),
             frame.sent_at, static_cast<std::int64_t>(frame.part.size_bytes));
}

}  // namespace towpath::ethernet
