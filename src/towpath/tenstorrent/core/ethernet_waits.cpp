// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "towpath/sim/timer.hpp"
#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/core/ethernet_core.hpp"

// Waits of a kernel on an Ethernet core: equivalent to polling, without an event per poll.

namespace towpath::tenstorrent {

namespace {

constexpr noc::Cycle kContextSwitchCycles = 100'000;  // as in check_and_context_switch()
constexpr noc::Cycle kNoTurn = -1;

struct Sleeper {
  sim::Simulation& simulation;
  sim::Process& process;
  static void wake(void* self) {
    auto& sleeper = *static_cast<Sleeper*>(self);
    sleeper.simulation.wake(sleeper.process);
  }
};

}  // namespace

EthernetCore::Polling EthernetCore::polling(std::int64_t polls_per_context_switch) const {
  return {kPollCycles, polls_per_context_switch, kRoutingFirmwareCycles};
}

// End of the poll that sees an event `waited` cycles after the first poll began.
noc::Cycle EthernetCore::poll_end(const Polling& polling, noc::Cycle waited) {
  const noc::Cycle poll = polling.poll_cycles;
  if (polling.polls_per_context_switch == kNever) return (waited / poll + 1) * poll;
  const noc::Cycle looking = polling.polls_per_context_switch * poll;
  const noc::Cycle period = looking + polling.routing_cycles;
  const noc::Cycle round = waited / period;
  const noc::Cycle phase = waited % period;
  if (phase >= looking) return (round + 1) * period + poll;
  return round * period + (phase / poll + 1) * poll;
}

// Start of the firmware's next turn, which may be in progress.
noc::Cycle EthernetCore::next_turn(const Polling& polling, noc::Cycle waited) {
  const noc::Cycle looking = polling.polls_per_context_switch * polling.poll_cycles;
  const noc::Cycle period = looking + polling.routing_cycles;
  return std::max(waited, waited / period * period + looking);
}

// End of the current turn.
noc::Cycle EthernetCore::turn_end(const Polling& polling, noc::Cycle waited) {
  const noc::Cycle looking = polling.polls_per_context_switch * polling.poll_cycles;
  const noc::Cycle period = looking + polling.routing_cycles;
  return waited % period < looking ? waited : (waited / period + 1) * period;
}

EthernetCore::Wait EthernetCore::firmware_wait() const {
  return {.kind = Wait::Kind::change, .since = cycle(), .change = "its base firmware is at work"};
}

void EthernetCore::yield_to_firmware() {
  tile_.port().run_routing();
  CoreFirmware* const firmware = tile_.base_firmware();
  if (firmware == nullptr || !firmware->has_work()) return;
  wait_ = firmware_wait();
  firmware->take_turn();
  wait_.kind = Wait::Kind::nothing;
}

void EthernetCore::take_core() {
  tile_.set_firmware_running(false);
  CoreFirmware* const firmware = tile_.base_firmware();
  if (firmware == nullptr) return;
  wait_ = firmware_wait();
  firmware->finish_look();
  wait_.kind = Wait::Kind::nothing;
}

// Suspends it until woken, or until this cycle.
void EthernetCore::suspend_until_turn(noc::Cycle turn) {
  sim::Simulation& simulation = network().simulation();
  Sleeper sleeper{simulation, *simulation.current()};
  sim::Timer timer;
  if (turn != kNoTurn) {
    timer.arm(simulation, network().clock().edge(Cycles(turn)), &Sleeper::wake, &sleeper);
  }
  simulation.suspend("its Ethernet core");
}

template <typename Condition>
void EthernetCore::poll_until(const Polling& polling, const Wait& wait, Cause cause,
                              Condition holds) {
  sim::Process& process = *network().simulation().current();
  const noc::Cycle since = cycle();
  noc::Cycle first = since;
  noc::Cycle turn = kNoTurn;
  while (!holds()) {
    const bool may_yield = polling.polls_per_context_switch != kNever;
    if (!may_yield || !tile_.needs_firmware()) {
      turn = kNoTurn;
    } else if (turn == kNoTurn) {
      turn = first + next_turn(polling, cycle() - first);
    }
    if (turn != kNoTurn && cycle() >= turn) {
      const noc::Cycle begin = cycle();
      yield_to_firmware();
      if (cycle() > begin) {
        first += cycle() - begin;
        work_until(first + turn_end(polling, cycle() - first));
      }
      turn = kNoTurn;
      continue;
    }
    wait_ = wait;
    wait_.since = since;
    wait_.has_turn = turn != kNoTurn;
    if (cause == Cause::anything) {
      tile_.wake_on_change(process);
    } else {
      tile_.wake_on_port_change(process);
      if (cause == Cause::word) {
        network().wake_on_write(config().core, wait.word, process, noc::kWordBytes);
      }
    }
    suspend_until_turn(turn);
    tile_.stop_waking(process);
    wait_.kind = Wait::Kind::nothing;
  }
  work_until(first + poll_end(polling, cycle() - first));
}

void EthernetCore::wait_for_word(std::uint64_t word, std::uint32_t value, std::string_view relation,
                                 std::int64_t polls_per_context_switch) {
  const Wait wait{.kind = Wait::Kind::word, .word = word, .value = value, .relation = relation};
  poll_until(polling(polls_per_context_switch), wait, Cause::word, [&] {
    const std::uint32_t now = look(word);
    return relation.empty() ? now == value : now >= value;
  });
}

void EthernetCore::check_queue(int queue) const {
  const int queues = network().chip().ethernet.tx_queues_for_kernels;
  if (queue >= 0 && queue < queues) return;
  refuse("there is no queue {} for kernels; it must be 0 to {}", queue, queues - 1);
}

// The firmware has its turn after every poll. If the link is up, the turn is short, as the rate of
// small commands shows.
void EthernetCore::submit(int queue, const ethernet::Command& command) {
  const Wait wait{.kind = Wait::Kind::change, .change = "its transmit queue is busy"};
  const Polling polling{kPollCycles, 1};
  ethernet::Port& port = tile_.port();
  check_queue(queue);
  if (port.is_busy(queue)) {
    poll_until(polling, wait, Cause::port, [&] { return !port.is_busy(queue); });
  }
  work(kCallCosts.of(network().chip()).ethernet_send);
  named([&] { port.send(queue, command); });
  observer().sending(queue, command);
}

// --- the NoC ------------------------------------------------------------------------------------

void EthernetCore::eth_noc_semaphore_wait(std::uint64_t semaphore, std::uint32_t value) {
  begin_call(__func__);
  wait_for_word(semaphore, value, "", 1);
}

void EthernetCore::eth_noc_semaphore_wait_min(std::uint64_t semaphore, std::uint32_t value) {
  begin_call(__func__);
  wait_for_word(semaphore, value, "at least ", 1);
}

void EthernetCore::wait_for_counters(noc::ChipNetwork::Condition condition, int noc) {
  const noc::NiuCounters& counters = network().counters(noc, config().core);
  const Wait wait{.kind = Wait::Kind::network, .noc = noc};
  poll_until(polling(1), wait, Cause::anything,
             [&] { return condition.holds(counters, condition.argument); });
}

void EthernetCore::eth_noc_async_read_barrier(int noc) {
  begin_call(__func__);
  wait_for_counters({[](const noc::NiuCounters& counters, int) {
                      return counters.read_responses_received == counters.reads_issued;
                    }},
                    noc_of(noc));
}

void EthernetCore::eth_noc_async_write_barrier(int noc) {
  begin_call(__func__);
  wait_for_counters({[](const noc::NiuCounters& counters, int) {
                      return counters.write_acks_received == counters.write_acks_awaited;
                    }},
                    noc_of(noc));
}

// --- the base firmware --------------------------------------------------------------------------

void EthernetCore::run_routing() {
  begin_call(__func__);
  yield_to_firmware();
  work(kRoutingFirmwareCycles);
}

void EthernetCore::check_and_context_switch() {
  begin_call(__func__);
  tile_.set_firmware_running(true);
  work(kContextSwitchCycles);
  take_core();
}

void EthernetCore::notify_dispatch_core_done(const NocAddress& dispatcher) {
  begin_call(__func__);
  for (int noc = 0; noc < 2; ++noc) {
    requests(__func__).wait_for_initiator(noc, NocRequester::kAtomic);
  }
  noc_semaphore_inc(dispatcher, 1);
}

// --- polling many conditions --------------------------------------------------------------------

void EthernetCore::idle(noc::Cycle poll_cycles, std::int64_t polls_per_context_switch) {
  begin_call(__func__);
  if (poll_cycles < 1 || polls_per_context_switch < 0) {
    refuse("polls take {} cycles with {} per context switch; they must be at least 1 and 0",
           poll_cycles, polls_per_context_switch);
  }
  const Wait wait{.kind = Wait::Kind::change, .change = "nothing that it looks at changes"};
  poll_until({poll_cycles, polls_per_context_switch, kRoutingFirmwareCycles}, wait, Cause::anything,
             [&] { return tile_.changes() != changes_seen_; });
  changes_seen_ = tile_.changes();
  observer().idled();
}

}  // namespace towpath::tenstorrent
