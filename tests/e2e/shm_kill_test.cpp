// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "processes.hpp"
#include "towpath/live/collectives.hpp"
#include "towpath/live/whole_arrays.hpp"
#include "towpath/transport/shm/shm_transport.hpp"

namespace towpath::transport {
namespace {

using conformance::Processes;
using namespace literals;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4;

// How far each rank is, where the parent can see it.
struct Progress {
  std::atomic<int> rounds[kRanks];
};

class SharedProgress {
 public:
  SharedProgress()
      : progress_(static_cast<Progress*>(::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                                                MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedProgress() { ::munmap(progress_, sizeof(Progress)); }
  Progress* operator->() const { return progress_; }

 private:
  Progress* progress_;
};

void exchange_for_ever(Transport& transport, std::atomic<int>& rounds) {
  const int next = (transport.rank() + 1) % kRanks;
  const int previous = (transport.rank() + kRanks - 1) % kRanks;
  const std::vector<std::byte> payload(20'000);
  const Offset inbox = transport.allocate(payload.size());
  const Signal arrived = transport.allocate_signals(1);
  for (std::uint64_t round = 1;; ++round) {
    transport.put_signal(next, inbox, {payload.data(), payload.size()}, {arrived, round}, 60_s);
    transport.signal_wait_until(arrived, Comparison::greater_equal, round, 60_s, previous);
    if (round % 16 == 0) transport.barrier(60_s);
    rounds.store(static_cast<int>(round));
  }
}

// Every collective, small and large, from the symmetric heap and from private memory.
void call_for_ever(LiveTransport& transport, std::atomic<int>& rounds) {
  using namespace live;
  constexpr std::uint64_t kBytesMost = 1 << 20;
  Collectives collectives(transport);
  transport.barrier(60_s);
  std::vector<std::byte> own(2 * kBytesMost);
  std::byte* const heap = transport.data(transport.allocate(2 * kBytesMost));
  const LibraryReduction sum{{DataType::float32, {}}, kRanks};
  for (int round = 1;; ++round) {
    std::byte* const arrays = round % 3 == 0 ? heap : own.data();
    for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{20'000}, kBytesMost}) {
      const Span whole{arrays, bytes}, other{arrays + kBytesMost, bytes};
      const Span part{arrays + kBytesMost, bytes / kRanks};
      collectives.run(request_of("all_reduce", sum, 0, whole, whole), 60_s);
      collectives.run(request_of("broadcast", sum, round % kRanks, whole, whole), 60_s);
      collectives.run(request_of("all_gather", sum, 0, part, whole), 60_s);
      collectives.run(request_of("reduce_scatter", sum, 0, whole, part), 60_s);
      collectives.run(request_of("all_to_all", sum, 0, whole, other), 60_s);
    }
    rounds.store(round);
  }
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The product's promise, and therefore the one bound on wall time in these tests.
constexpr std::chrono::seconds kPromise{1};

using Work = std::function<void(LiveTransport&, std::atomic<int>& rounds)>;

// Kills a rank in the middle of the work; how long the others took to end.
Clock::duration kill_one(const Work& work, const std::string& name, std::mt19937& random,
                         int rounds_most) {
  SharedProgress progress;
  Processes processes(kRanks, [&](int rank) {
    const auto transport = shm::connect({.rendezvous = name, .rank = rank, .ranks = kRanks});
    work(*transport, progress->rounds[rank]);
  });
  const int victim = static_cast<int>(random() % kRanks);
  const pid_t pid = processes.pid(victim);
  const int rounds_min = static_cast<int>(1 + random() % static_cast<unsigned>(rounds_most));
  while (progress->rounds[victim].load() < rounds_min) ::sched_yield();
  EXPECT_EQ(text_of(fmt::format("/proc/{}/maps", pid)).find("/dev/shm"), std::string::npos);

  const Clock::time_point killed = Clock::now();
  ::kill(pid, SIGKILL);
  const auto ended = processes.wait(std::chrono::seconds(60));
  const Clock::duration passed = Clock::now() - killed;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string& outcome = ended[static_cast<std::size_t>(rank)];
    const std::string sentence =
        rank == victim
            ? "killed by signal 9"
            : fmt::format("rank {} (pid {}) died while rank {} waited for ", victim, pid, rank);
    EXPECT_EQ(outcome.substr(0, sentence.size()), sentence);
  }
  EXPECT_EQ(text_of("/proc/net/unix").find(name), std::string::npos);
  return passed;
}

void kill_many(const Work& work, int times, int rounds_most) {
  std::mt19937 random(std::random_device{}());
  Clock::duration slowest{};
  for (int repetition = 0; repetition < times && !testing::Test::HasFailure(); ++repetition) {
    const std::string name = fmt::format("kill-{}-{}", ::getpid(), repetition);
    const Clock::duration passed = kill_one(work, name, random, rounds_most);
    EXPECT_LT(passed, kPromise) << "in repetition " << repetition;
    slowest = std::max(slowest, passed);
  }
  const std::chrono::duration<double, std::milli> slowest_ms = slowest;
  testing::Test::RecordProperty("slowest_ms", std::to_string(slowest_ms.count()));
}

bool is_long() { return std::getenv("TOWPATH_LONG_TESTS") != nullptr; }

TEST(ShmKill, AllOthersEndWithinASecondAndNameTheRankThatWasKilled) {
  kill_many(exchange_for_ever, is_long() ? 100 : 10, 3000);
}

TEST(ShmKill, AKillInAnyCollectiveIsNamedByAllOthers) {
  kill_many(call_for_ever, is_long() ? 1000 : 8, 40);
}

}  // namespace
}  // namespace towpath::transport
