// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/endpoint.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <stdexcept>

#include "towpath/os/shared_memory.hpp"
#include "towpath/sim/timer.hpp"

namespace towpath::transport::simulated {

namespace {

// The range of 48-bit addresses available to a program.
constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 47;

// The heaps of all ranks get half of the address space of this process.
std::uint64_t within_limit(std::uint64_t heap_bytes, int ranks) {
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const std::uint64_t available = is_limited ? limit.rlim_cur : kAddressSpaceBytes;
  const std::uint64_t share = available / 2 / static_cast<std::uint64_t>(std::max(ranks, 1));
  const std::uint64_t needed = Transport::reserved_bytes(ranks) + SymmetricHeap::kAlignment;
  return std::min(heap_bytes, std::max(share, needed));
}

}  // namespace

SparseMemory::SparseMemory(std::uint64_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  void* start = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  os::leave_out_of_core_file(start, size_bytes);
  start_ = static_cast<std::byte*>(start);
}

SparseMemory::~SparseMemory() {
  if (start_ != nullptr) munmap(start_, size_bytes_);
}

void combine(const Move& move, std::byte* result) {
  if (move.has_addend) {
    reduce(result, move.source, move.addend, move.size_bytes, move.reduction);
  } else {
    std::memmove(result, move.source, move.size_bytes);
  }
}

std::vector<int> placement(std::vector<int> places, int count,
                           const std::function<std::string(int place)>& describe) {
  if (places.empty()) {
    places.resize(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), 0);
  }
  std::vector<bool> is_taken(static_cast<std::size_t>(count));
  for (const int place : places) {
    if (place < 0 || place >= count || is_taken[static_cast<std::size_t>(place)]) {
      throw std::invalid_argument(fmt::format(
          "a rank is placed on {}; use each of the {} places, numbered from 0, at most once",
          describe(place), count));
    }
    is_taken[static_cast<std::size_t>(place)] = true;
  }
  return places;
}

Endpoint::Endpoint(sim::Simulation& simulation, int rank, int ranks, const Options& options)
    : simulation_(simulation),
      rank_(rank),
      ranks_(ranks),
      carries_data_(options.carries_data),
      heap_(ranks,
            options.carries_data ? within_limit(options.heap_bytes, ranks) : options.heap_bytes,
            options.signals),
      memory_(options.carries_data ? heap_.size_bytes() : 0) {}

void Endpoint::release_signals(Signal first) {
  // A peer that is ahead already raises the signals' other words. See SymmetricHeap.
  const std::uint64_t first_word = heap_.word_of(first);
  const std::uint32_t count = heap_.release_signals(first);
  for (std::uint64_t i = 0; i < count; ++i) word(first_word + 2 * i).value = 0;
}

std::uint64_t Endpoint::signal_fetch(Signal signal) const {
  const std::uint64_t at = heap_.word_of(signal);
  return at < words_.size() ? words_[at].value : 0;
}

void Endpoint::finish(Move& move) {
  if (move.done != nullptr) move.done(move);
  notify_blocked();
}

// --- deliveries ---------------------------------------------------------------------------------

void Endpoint::refuse_peer(int peer) const {
  throw std::out_of_range(
      fmt::format("rank {} puts to rank {}; there are {}", rank_, peer, ranks_));
}

void Endpoint::load_bytes(Delivery& delivery) {
  const Move& move = *delivery.move;
  delivery.payload.resize(move.size_bytes);
  combine(move, move.has_destination ? move.destination : delivery.payload.data());
  if (move.has_destination) {
    std::memcpy(delivery.payload.data(), move.destination, move.size_bytes);
  }
}

// --- signals ----------------------------------------------------------------------------------

void Endpoint::raise(std::uint64_t at, std::uint64_t value, SignalOperation operation) {
  SignalWord& raised = word(at);
  raised.value = operation == SignalOperation::add ? raised.value + value : value;
  // A ready callback may wait again or change further words, so the search restarts after each.
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (SignalWait* wait = words_[at].waits; wait != nullptr; wait = wait->next) {
      if (!holds(wait->comparison, words_[at].value, wait->value)) continue;
      unlink(*wait);
      wait->ready(*wait);
      is_settled = false;
      break;
    }
  }
  notify_blocked();
}

void Endpoint::wait(SignalWait& wait) {
  heap_.check_signal(wait.signal);
  SignalWord& awaited = word(heap_.word_of(wait.signal));
  if (holds(wait.comparison, awaited.value, wait.value)) {
    wait.ready(wait);
    return;
  }
  wait.is_waiting = true;
  wait.previous = nullptr;
  wait.next = awaited.waits;
  if (awaited.waits != nullptr) awaited.waits->previous = &wait;
  awaited.waits = &wait;
}

void Endpoint::cancel(SignalWait& wait) {
  if (wait.is_waiting) unlink(wait);
}

void Endpoint::unlink(SignalWait& wait) {
  (wait.previous != nullptr ? wait.previous->next : words_[heap_.word_of(wait.signal)].waits) =
      wait.next;
  if (wait.next != nullptr) wait.next->previous = wait.previous;
  wait.is_waiting = false;
}

std::string Endpoint::pending() const {
  std::string lines;
  for (const SignalWord& state : words_) {
    for (const SignalWait* wait = state.waits; wait != nullptr; wait = wait->next) {
      lines += fmt::format("rank {} waits for {}\n", rank_,
                           wait->describe != nullptr ? wait->describe(*wait)
                                                     : fmt::format("signal {}", wait->signal));
    }
  }
  return lines;
}

// --- blocking -----------------------------------------------------------------------------------

void Endpoint::wake_blocked(void* endpoint) {
  Endpoint& late = *static_cast<Endpoint*>(endpoint);
  late.simulation_.wake(*late.blocked_.process);
}

void Endpoint::notify_blocked() {
  last_activity_ = now();
  if (blocked_.process != nullptr && (*blocked_.holds)()) {
    simulation_.wake(*blocked_.process);
  }
}

void Endpoint::block_until(const std::function<bool()>& holds, Time timeout, int peer,
                           const std::function<std::string()>& what) {
  if (holds()) return;
  sim::Simulation& simulation = simulation_;
  sim::Process* process = simulation.current();
  if (process == nullptr) {
    throw std::logic_error("a blocking call outside the simulation's processes would never return");
  }
  blocked_ = {process, &holds};
  last_activity_ = simulation.now();
  sim::Timer timer;
  while (!holds()) {
    const Time deadline =
        timeout < Time::max() - last_activity_ ? last_activity_ + timeout : Time::max();
    if (!timer.is_armed() && deadline <= simulation.now()) break;
    if (!timer.is_armed()) timer.arm(simulation, deadline, wake_blocked, this);
    simulation.suspend();
  }
  blocked_ = {};
  if (holds()) return;
  const std::string whom = peer == kNoPeer ? "" : fmt::format(" from rank {}", peer);
  throw TransportError(
      TransportError::Kind::timeout, peer,
      fmt::format("rank {} waited {} us (simulated){} for {}", rank_, timeout.us(), whom, what()));
}

}  // namespace towpath::transport::simulated
