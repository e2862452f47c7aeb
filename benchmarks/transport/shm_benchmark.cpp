// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "towpath/transport/shm/shm_transport.hpp"

// Two ranks, each a process on a core of its own. one_way_s is half a round trip, or one message of
// a stream. Each time is a mean over many messages; --benchmark_repetitions gives their median.

namespace towpath::transport {
namespace {

using namespace literals;

constexpr std::uint64_t kStop = UINT64_MAX;
constexpr Time kTimeout = Time::from_seconds(20);
constexpr std::uint64_t kSlots = 8;

void pin_to_core(int rank) {
  cpu_set_t allowed, one;
  ::sched_getaffinity(0, sizeof(allowed), &allowed);
  CPU_ZERO(&one);
  for (int core = 0, nth = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || nth++ % CPU_COUNT(&allowed) != rank) continue;
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

// One rank's end: numbered messages to the other, and from it.
struct End {
  explicit End(const std::string& name, int rank, std::uint64_t size)
      : payload(size, std::byte{1}),
        transport(shm::connect({.rendezvous = name, .rank = rank, .ranks = 2})),
        inbox(transport->allocate(kSlots * size)),
        arrived(transport->allocate_signals(1)) {}

  void send(std::uint64_t number, bool with_payload = true) {
    const std::uint64_t size = with_payload ? payload.size() : 0;
    const Offset slot = inbox + number % kSlots * size;
    transport->put_signal(1 - transport->rank(), slot, {payload.data(), size}, {arrived, number},
                          kTimeout);
  }
  std::uint64_t receive(std::uint64_t at_least) {
    transport->signal_wait_until(arrived, Comparison::greater_equal, at_least, kTimeout,
                                 1 - transport->rank());
    return transport->signal_fetch(arrived);
  }

  std::vector<std::byte> payload;
  std::unique_ptr<Transport> transport;
  Offset inbox;
  Signal arrived;
};

// Rank 1 in a process of its own answers each message, with a payload or without.
class Pair {
 public:
  Pair(std::uint64_t size, bool answers_with_payload) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string name = fmt::format("benchmark-{}-{}", ::getpid(), now);
    CPU_ZERO(&before_);
    ::sched_getaffinity(0, sizeof(before_), &before_);
    child_ = ::fork();
    if (child_ == 0) {
      pin_to_core(1);
      answer(End(name, 1, size), answers_with_payload);
      ::_exit(0);
    }
    pin_to_core(0);
    end_ = std::make_unique<End>(name, 0, size);
  }
  ~Pair() {
    end_->send(kStop, false);
    ::waitpid(child_, nullptr, 0);
    ::sched_setaffinity(0, sizeof(before_), &before_);
  }
  End& end() { return *end_; }

 private:
  static void answer(End end, bool with_payload) {
    for (std::uint64_t number = 1; (number = end.receive(number)) != kStop; ++number) {
      end.send(number, with_payload);
    }
  }

  cpu_set_t before_;
  pid_t child_;
  std::unique_ptr<End> end_;
};

void ping_pong(benchmark::State& state) {
  Pair pair(static_cast<std::uint64_t>(state.range(0)), true);
  std::uint64_t number = 0;
  for (auto _ : state) {
    pair.end().send(++number);
    pair.end().receive(number);
  }
  state.counters["one_way_s"] =
      benchmark::Counter(2.0 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(ping_pong)
    ->Name("shm/ping_pong/size_bytes")
    ->Arg(0)
    ->Arg(8)
    ->Arg(1024)
    ->Arg(8192)
    ->UseRealTime();

void stream(benchmark::State& state) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  Pair pair(size, false);
  std::uint64_t number = 0;
  for (auto _ : state) {
    pair.end().send(++number);
    if (number > kSlots) pair.end().receive(number - kSlots);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(stream)->Name("shm/put_signal/size_bytes")->Arg(64 << 10)->Arg(1 << 20)->UseRealTime();

void copy(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> source(size, std::byte{1});
  std::vector<std::byte> slots(kSlots * size);
  std::size_t number = 0;
  for (auto _ : state) {
    std::memcpy(slots.data() + number++ % kSlots * size, source.data(), size);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(copy)->Name("shm/memcpy/size_bytes")->Arg(64 << 10)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace towpath::transport
