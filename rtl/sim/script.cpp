// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Plays random programs (script.hpp) on the RTL, and prints when each step is over.
//
// Usage: script FIRST_SEED COUNT; host/script_model.cpp prints the same for the model.

#include "script.hpp"

#include <verilated.h>

#include <cstdio>
#include <cstdlib>

#include "Vtraffic_top.h"

namespace {

using script::Step;

constexpr std::uint32_t kCounters = 0x48, kDescriptor = 0x40, kPoll = 0x80, kData = 0x88;
constexpr std::int64_t kCyclesMax = 100'000;
// From a notice's arrival until a load sees it in the counters: 2 cycles. Another 2 are those in
// which the mailbox decides on a header; the model's notices leave without them.
constexpr std::int64_t kNoticeSeenCycles = 4;

// What a core of the costs of script.hpp does; `time` is the software's.
class Core {
 public:
  Core(Vtraffic_top& top, int node, std::vector<Step> steps)
      : top_(top), node_(node), steps_(std::move(steps)) {}

  bool is_over() const { return step_ == steps_.size(); }
  const std::vector<script::Event>& events() const { return events_; }

  // The access of this cycle.
  void before(std::int64_t cycle) {
    access(false, 0, 0);
    while (!is_over() && steps_[step_].kind == Step::Kind::pause) {
      time_ += steps_[step_].cycles;
      finish(time_);
    }
    if (is_over()) return;
    const Step& step = steps_[step_];
    switch (step.kind) {
      case Step::Kind::send: return send(step, cycle - time_ - script::kSendCycles);
      case Step::Kind::receive: return receive(cycle);
      case Step::Kind::flush:
        if (cycle >= time_) load(kCounters);
        return;
      case Step::Kind::pause: return;
    }
  }

  // What the access of this cycle loaded.
  void after(std::int64_t cycle) {
    if (is_over()) return;
    const std::uint64_t data = top_.port_rdata[node_];
    const Step& step = steps_[step_];
    if (step.kind == Step::Kind::flush && cycle >= time_) {
      if (static_cast<std::uint16_t>(data) != static_cast<std::uint16_t>(data >> 16)) return;
      time_ = std::max(time_, cycle - kNoticeSeenCycles);
      finish(time_);
    } else if (step.kind == Step::Kind::receive && is_polled_ && words_left_ == 0) {
      is_polled_ = false;
      if (data == 0) return;
      words_left_ = (static_cast<int>(data & 0x7F) + 7) / 8;
      poll_at_ = cycle;
    } else if (step.kind == Step::Kind::send &&
               cycle - time_ - script::kSendCycles == step.size_bytes / 8) {
      time_ = cycle + 1;
      finish(time_);
    } else if (step.kind == Step::Kind::receive && words_left_ > 0 && cycle == next_load_) {
      if (--words_left_ > 0) return;
      time_ = cycle;
      poll_at_ = -1;
      finish(time_);
    }
  }

 private:
  void access(bool is_store, std::uint32_t address, std::uint64_t data, bool valid = false) {
    top_.port_valid[node_] = valid;
    top_.port_is_store[node_] = is_store;
    top_.port_address[node_] = address;
    top_.port_wdata[node_] = data;
  }
  void load(std::uint32_t address) { access(false, address, 0, true); }

  void send(const Step& step, std::int64_t word) {
    if (word < 0) return;
    const int words = step.size_bytes / 8;
    if (word < words) {
      access(true, static_cast<std::uint32_t>(8 * word), static_cast<std::uint64_t>(word), true);
    } else {
      access(
          true, kDescriptor,
          static_cast<std::uint64_t>(step.size_bytes) << 32 | static_cast<std::uint64_t>(step.to),
          true);
    }
  }

  void receive(std::int64_t cycle) {
    if (words_left_ > 0) {
      if ((cycle - poll_at_) % script::kLoadCycles != 0) return;
      next_load_ = cycle;
      return load(kData);
    }
    const std::int64_t since = cycle - time_ - script::kReceiveCycles - script::kLoadCycles;
    if (since < 0 || since % script::kLoadCycles != 0) return;
    is_polled_ = true;
    load(kPoll);
  }

  void finish(std::int64_t cycle) {
    events_.push_back({node_, static_cast<int>(step_), cycle});
    ++step_;
  }

  Vtraffic_top& top_;
  int node_;
  std::vector<Step> steps_;
  std::size_t step_ = 0;
  std::int64_t time_ = 0;
  std::int64_t poll_at_ = -1;
  std::int64_t next_load_ = -1;
  int words_left_ = 0;
  bool is_polled_ = false;
  std::vector<script::Event> events_;
};

void play(std::uint64_t seed) {
  VerilatedContext context;
  Vtraffic_top top(&context);
  top.bits_per_cycle = 100;
  top.latency_cycles = 15;
  const auto tick = [&] {
    top.clk = 0;
    top.eval();
    top.clk = 1;
    top.eval();
  };
  top.rst = 1;
  for (int i = 0; i < 4; ++i) tick();
  top.rst = 0;
  for (int node = 0; node < script::kNodes; ++node) {
    top.port_valid[node] = true;
    top.port_is_store[node] = true;
    top.port_address[node] = 0x800000;
    top.port_wdata[node] = 1 << 16;  // context 0 is open, in domain 0
  }
  tick();
  std::vector<Core> cores;
  const auto steps = script::make(seed);
  for (int node = 0; node < script::kNodes; ++node)
    cores.emplace_back(top, node, steps[static_cast<std::size_t>(node)]);
  bool is_over = false;
  for (std::int64_t cycle = 0; !is_over; ++cycle) {
    for (Core& core : cores) core.before(cycle);
    tick();
    is_over = true;
    for (Core& core : cores) {
      core.after(cycle);
      is_over &= core.is_over();
    }
    if (cycle > kCyclesMax) {
      std::fprintf(stderr, "script: seed %llu does not end\n",
                   static_cast<unsigned long long>(seed));
      std::exit(1);
    }
  }
  for (const Core& core : cores) {
    for (const script::Event& event : core.events())
      std::printf("%llu %d %d %lld\n", static_cast<unsigned long long>(seed), event.node,
                  event.step, static_cast<long long>(event.cycle));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: script FIRST_SEED COUNT\n");
    return 2;
  }
  const std::uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  for (std::uint64_t seed = first; seed < first + count; ++seed) play(seed);
  return 0;
}
