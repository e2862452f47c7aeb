// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/riscv_mailbox/context.hpp"

#include <algorithm>

#include "towpath/sim/timer.hpp"

namespace towpath::riscv_mailbox {

namespace {

struct Sleeper {
  sim::Simulation* simulation;
  sim::Process* process;
};

void wake(void* context) {
  Sleeper& sleeper = *static_cast<Sleeper*>(context);
  sleeper.simulation->wake(*sleeper.process);
}

}  // namespace

Context::~Context() { interconnect_.close(address_); }

void Context::wait(const char* what) {
  interconnect_.set_process(address_, interconnect_.simulation().current());
  interconnect_.simulation().suspend(what);
  interconnect_.set_process(address_, nullptr);
}

void Context::send(Address to, std::span<const std::byte> payload) {
  core_.spend(software_.send_cycles);
  while (!interconnect_.has_room(address_)) wait("room in the packetizer");
  const int words = interconnect_.cluster().words_of(static_cast<int>(payload.size()));
  interconnect_.trace_instant(address_.node, "first store", interconnect_.simulation().now());
  core_.spend((words + software_.descriptor_words) * software_.store_cycles);
  interconnect_.trace_instant(address_.node, "last store", interconnect_.simulation().now());
  interconnect_.submit(address_, to, payload);
}

void Context::flush() {
  while (interconnect_.unacknowledged(address_) > 0) wait("acknowledgements");
}

bool Context::can_see(Cycles polled) const {
  const std::optional<Time> visible = interconnect_.visible_from(address_);
  return visible.has_value() && *visible <= core_.clock().edge(polled);
}

std::optional<Message> Context::try_receive() {
  core_.spend(software_.receive_cycles + software_.load_cycles);
  if (!can_see(core_.now())) return std::nullopt;
  return read();
}

std::optional<Message> Context::receive(Time deadline) {
  core_.spend(software_.receive_cycles);
  const Cycles first = core_.end_of(core_.now(), software_.load_cycles);
  interconnect_.trace_instant(address_.node, "first poll", core_.clock().edge(first));
  return receive_at(first, deadline);
}

// `polled` is the end of the first poll. Unsuccessful polls need no events: their times are
// computed when a message arrives.
std::optional<Message> Context::receive_at(Cycles polled, Time deadline) {
  sim::Simulation& simulation = interconnect_.simulation();
  Sleeper sleeper{&simulation, simulation.current()};
  sim::Timer timer;
  if (deadline < Time::max()) {
    timer.arm(simulation, std::max(deadline, simulation.now()), &wake, &sleeper);
  }
  while (!interconnect_.visible_from(address_).has_value()) {
    if (simulation.now() >= deadline) break;
    wait("a message");
  }
  timer.cancel();
  const Time visible = interconnect_.visible_from(address_).value_or(Time::max());
  const Cycles seen_from = core_.clock().cycle_at(std::min(visible, deadline));
  polled = core_.polled_after(polled, software_.poll_cycles, seen_from);
  simulation.sleep_until(std::max(core_.clock().edge(polled), simulation.now()));
  if (!can_see(polled)) return std::nullopt;
  interconnect_.trace_instant(address_.node, "poll sees the message", simulation.now());
  return read();
}

// Copies word by word from the mailbox into memory.
Message Context::read() {
  Message message = interconnect_.first(address_);
  const int words = interconnect_.cluster().words_of(static_cast<int>(message.payload.size()));
  core_.spend(words * software_.load_cycles + software_.release_cycles);
  interconnect_.release(address_);
  interconnect_.trace_instant(address_.node, "last word read", interconnect_.simulation().now());
  return message;
}

}  // namespace towpath::riscv_mailbox
