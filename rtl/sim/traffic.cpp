// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Random traffic over the packetizers and mailboxes, checked message by message: none lost,
// doubled, torn or overtaken by a later one of its pair, none in a mailbox of another domain, and
// no standstill.
//
// Usage: traffic MESSAGES SEED [drop]

#include <verilated.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vtraffic_top.h"

namespace {

#ifndef TRAFFIC_NODES
#define TRAFFIC_NODES 4
#endif
#ifndef TRAFFIC_CONTEXTS
#define TRAFFIC_CONTEXTS 4
#endif
#ifndef TRAFFIC_SLOTS
#define TRAFFIC_SLOTS 4
#endif
constexpr unsigned kNodes = TRAFFIC_NODES;
constexpr unsigned kContexts = TRAFFIC_CONTEXTS;
constexpr unsigned kSlots = TRAFFIC_SLOTS;
constexpr unsigned kDomains = 2;
constexpr std::uint64_t kCyclesWithoutProgress = 100'000;

[[noreturn]] void fail(std::uint64_t cycle, const char* what, std::uint64_t a, std::uint64_t b) {
  std::fprintf(stderr, "cycle %llu: %s (%llx, %llx)\n", static_cast<unsigned long long>(cycle),
               what, static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  std::exit(1);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  unsigned below(unsigned bound) { return static_cast<unsigned>((next() >> 20) % bound); }

 private:
  std::uint64_t state_;
};

std::uint64_t word_of(std::uint64_t first, unsigned index) {
  return index == 0 ? first : (first ^ (first >> 29)) * (0xBF58476D1CE4E5B9ULL + 2 * index);
}

unsigned domain_of(unsigned context) { return 1 + context % kDomains; }

// A message's first word: which one it is of its pair.
std::uint64_t first_word(unsigned from, unsigned from_context, unsigned to, unsigned to_context,
                         std::uint32_t number) {
  return std::uint64_t{from} << 60 | std::uint64_t{from_context} << 52 | std::uint64_t{to} << 48 |
         std::uint64_t{to_context} << 40 | number;
}

struct Shared {
  std::uint64_t wanted = 0;  // messages to send
  bool drops = false;
  std::uint64_t cycle = 0;
  std::uint64_t sent = 0;
  std::uint64_t refusable = 0;  // sent to a mailbox that must refuse them
  std::uint64_t received = 0;
  std::uint64_t bytes = 0;
  std::uint64_t full = 0;
  std::uint64_t refused = 0;
  std::uint64_t last_progress = 0;
};

// The program of one node: at most one load or store in each cycle.
class Program {
 public:
  Program(unsigned node, std::uint64_t seed, Shared& shared)
      : node_(node), random_(seed), shared_(shared) {}

  struct Access {
    bool valid = false;
    bool is_store = false;
    std::uint32_t address = 0;
    std::uint64_t data = 0;
  };

  Access next() {
    if (opened_ < kContexts) {
      const unsigned context = opened_++;
      return {true, true, 0x800000,
              std::uint64_t{domain_of(context)} << 32 | std::uint64_t{shared_.drops} << 17 |
                  1U << 16 | context};
    }
    if (state_ == State::idle) choose();
    const std::uint32_t page = context_ * 0x1000;
    switch (state_) {
      case State::idle: return {};
      case State::counters: return {true, false, page + 0x48, 0};
      case State::words: return {true, true, page + 8 * index_, word_of(first_, index_)};
      case State::descriptor:
        return {true, true, page + 0x40,
                std::uint64_t{size_} << 32 | std::uint64_t{to_context_} << 16 | to_};
      case State::poll: return {true, false, page + 0x80, 0};
      case State::data: return {true, false, page + 0x88, 0};
    }
    return {};
  }

  void loaded(std::uint64_t data) {
    if (opened_ < kContexts || !is_ready_) {
      is_ready_ = opened_ == kContexts;
      return;
    }
    switch (state_) {
      case State::idle: return;
      case State::counters: return counters(data);
      case State::words:
        if (++index_ * 8 >= size_) state_ = State::descriptor;
        return;
      case State::descriptor: return sent();
      case State::poll: return polled(data);
      case State::data: return read(data);
    }
  }

  bool is_settled() const {
    for (unsigned context = 0; context < kContexts; ++context) {
      if (in_flight_[context] != 0) return false;
    }
    return true;
  }
  bool is_quiet() const { return state_ == State::idle; }

 private:
  enum class State { idle, counters, words, descriptor, poll, data };

  void choose() {
    if (pause_ > 0) {
      --pause_;
      return;
    }
    if (random_.below(400) == 0) pause_ = random_.below(600);
    context_ = random_.below(kContexts);
    const bool sends = shared_.sent < shared_.wanted && random_.below(100) < 48;
    state_ = sends || (in_flight_[context_] != 0 && random_.below(4) == 0) ? State::counters
                                                                           : State::poll;
    wants_ = sends;
  }

  void counters(std::uint64_t data) {
    const auto field = [&](int at) { return static_cast<std::uint16_t>(data >> at); };
    const unsigned flying = static_cast<std::uint16_t>(field(0) - field(16));
    if (flying > kSlots) fail(shared_.cycle, "more packets unsettled than slots", data, node_);
    if (flying > in_flight_[context_]) fail(shared_.cycle, "a packet nobody sent", data, node_);
    if (flying < in_flight_[context_]) shared_.last_progress = shared_.cycle;
    in_flight_[context_] = flying;
    shared_.full += static_cast<std::uint16_t>(field(32) - full_[context_]);
    shared_.refused += static_cast<std::uint16_t>(field(48) - refused_[context_]);
    full_[context_] = field(32);
    refused_[context_] = field(48);
    state_ = State::idle;
    if (!wants_ || flying == kSlots || shared_.sent >= shared_.wanted) return;
    to_ = random_.below(kNodes);
    to_context_ = random_.below(32) == 0
                      ? random_.below(kContexts + 3)
                      : context_ % kDomains + kDomains * random_.below(kContexts / kDomains);
    size_ = random_.below(8) == 0 ? 1 + random_.below(64) : 8 * (1 + random_.below(8));
    is_refusable_ = to_context_ >= kContexts || domain_of(to_context_) != domain_of(context_);
    number_ = numbers_[context_][to_][to_context_ % 16]++;
    first_ = first_word(node_, context_, to_, to_context_, number_);
    index_ = 0;
    ++shared_.sent;
    shared_.refusable += is_refusable_;
    state_ = State::words;
  }

  void sent() {
    ++in_flight_[context_];
    state_ = State::idle;
  }

  void polled(std::uint64_t head) {
    if ((head >> 38 & 1) == 0) {
      if (head != 0) fail(shared_.cycle, "an empty mailbox shows something", head, node_);
      state_ = State::idle;
      return;
    }
    shared_.last_progress = shared_.cycle;
    head_ = head;
    size_ = head & 0x7F;
    index_ = 0;
    state_ = State::data;
  }

  void read(std::uint64_t data) {
    if (index_ == 0) first_ = data;
    const unsigned bytes_left = size_ - 8 * index_;
    std::uint64_t wanted = word_of(first_, index_);
    if (bytes_left < 8) {
      const std::uint64_t mask = (std::uint64_t{1} << 8 * bytes_left) - 1;
      wanted &= mask;
      data &= mask;
    }
    if (size_ >= 8 && data != wanted) fail(shared_.cycle, "a torn message", data, wanted);
    if (++index_ * 8 < size_) return;
    state_ = State::idle;
    shared_.bytes += size_;
    ++shared_.received;
    if ((head_ >> 48 & 0xFFFF) != domain_of(context_))
      fail(shared_.cycle, "a message of another domain", head_, context_);
    if (size_ >= 8)
      check_order();
    else
      ++last_[head_ >> 28 & 0xF][head_ >> 19 & 0xF][context_];
  }

  void check_order() {
    const unsigned from = head_ >> 28 & 0x3FF;
    const unsigned from_context = head_ >> 19 & 0x1FF;
    const auto number = static_cast<std::uint32_t>(first_);
    if (first_ != first_word(from, from_context, node_, context_, number))
      fail(shared_.cycle, "a message in the wrong mailbox", first_, head_);
    std::uint32_t& last = last_[from][from_context][context_];
    if (shared_.drops ? number < last : number != last)
      fail(shared_.cycle, "a message lost, doubled or out of order", number, last);
    last = number + 1;
  }

  unsigned node_;
  Random random_;
  Shared& shared_;
  unsigned opened_ = 0;
  bool is_ready_ = false;
  State state_ = State::idle;
  bool wants_ = false;
  bool is_refusable_ = false;
  unsigned pause_ = 0;
  unsigned context_ = 0, to_ = 0, to_context_ = 0, size_ = 0, index_ = 0;
  std::uint32_t number_ = 0;
  std::uint64_t first_ = 0, head_ = 0;
  std::array<unsigned, kContexts> in_flight_{};
  std::array<std::uint16_t, kContexts> full_{}, refused_{};
  std::uint32_t numbers_[kContexts][kNodes][16] = {};
  std::uint32_t last_[16][16][kContexts] = {};
};

// All nodes, until every message's fate is known.
class Bench {
 public:
  Bench(Shared& shared, std::uint64_t seed) : shared_(shared), top_(&context_) {
    for (unsigned node = 0; node < kNodes; ++node)
      programs_.emplace_back(node, seed * kNodes + node, shared);
    Random lines(seed);
    top_.bits_per_cycle = lines.below(3) == 0 ? 40 : 100;
    top_.latency_cycles = 1 + lines.below(20);
    top_.rst = 1;
    for (int i = 0; i < 4; ++i) tick();
    top_.rst = 0;
  }

  void play() {
    for (; !is_over(); ++shared_.cycle) {
      for (unsigned node = 0; node < kNodes; ++node) {
        const Program::Access access = programs_[node].next();
        top_.port_valid[node] = access.valid;
        top_.port_is_store[node] = access.is_store;
        top_.port_address[node] = access.address;
        top_.port_wdata[node] = access.data;
      }
      tick();
      for (unsigned node = 0; node < kNodes; ++node) programs_[node].loaded(top_.port_rdata[node]);
      if (shared_.cycle - shared_.last_progress > kCyclesWithoutProgress)
        fail(shared_.cycle, "no progress", shared_.sent, shared_.received);
    }
  }

 private:
  void tick() {
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
  }

  bool is_over() const {
    if (shared_.sent < shared_.wanted) return false;
    if (shared_.received + shared_.full + shared_.refused < shared_.sent) return false;
    return std::all_of(programs_.begin(), programs_.end(), [](const Program& program) {
      return program.is_settled() && program.is_quiet();
    });
  }

  Shared& shared_;
  VerilatedContext context_;
  Vtraffic_top top_;
  std::vector<Program> programs_;
};

// The sums over all messages.
void check(const Shared& shared) {
  if (shared.received + shared.full + shared.refused != shared.sent)
    fail(shared.cycle, "messages and notices do not add up", shared.received, shared.sent);
  if (shared.refused != shared.refusable)
    fail(shared.cycle, "refused others than it should", shared.refused, shared.refusable);
  if (!shared.drops && shared.full != 0) fail(shared.cycle, "dropped", shared.full, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: traffic MESSAGES SEED [drop]\n");
    return 2;
  }
  Shared shared;
  shared.wanted = std::strtoull(argv[1], nullptr, 10);
  shared.drops = argc > 3 && std::strcmp(argv[3], "drop") == 0;
  Bench bench(shared, std::strtoull(argv[2], nullptr, 10));
  bench.play();
  check(shared);
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "{\"nodes\": %u, \"messages\": %llu, \"received\": %llu, \"full\": %llu, "
      "\"refused\": %llu, \"bytes\": %llu, \"cycles\": %llu}\n",
      kNodes, number(shared.sent), number(shared.received), number(shared.full),
      number(shared.refused), number(shared.bytes), number(shared.cycle));
  return 0;
}
