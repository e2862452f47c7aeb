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
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "conformance/processes.hpp"
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

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The product's promise, and therefore the one bound on wall time in these tests.
constexpr std::chrono::seconds kPromise{1};

TEST(ShmKill, AllOthersEndWithinASecondAndNameTheRankThatWasKilled) {
  std::mt19937 random(std::random_device{}());
  Clock::duration slowest{};
  for (int repetition = 0; repetition < 10; ++repetition) {
    const std::string name = fmt::format("kill-{}-{}", ::getpid(), repetition);
    SharedProgress progress;
    Processes processes(kRanks, [&](int rank) {
      const auto transport = shm::connect({.rendezvous = name, .rank = rank, .ranks = kRanks});
      exchange_for_ever(*transport, progress->rounds[rank]);
    });
    const int victim = static_cast<int>(random() % kRanks);
    const pid_t pid = processes.pid(victim);
    const int rounds_min = static_cast<int>(1 + random() % 3000);
    while (progress->rounds[victim].load() < rounds_min) ::sched_yield();
    EXPECT_EQ(text_of(fmt::format("/proc/{}/maps", pid)).find("/dev/shm"), std::string::npos);

    const Clock::time_point killed = Clock::now();
    ::kill(pid, SIGKILL);
    const auto ended = processes.wait(std::chrono::seconds(60));
    const Clock::duration passed = Clock::now() - killed;

    EXPECT_LT(passed, kPromise) << "in repetition " << repetition;
    slowest = std::max(slowest, passed);
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string& outcome = ended[static_cast<std::size_t>(rank)];
      const std::string sentence =
          rank == victim
              ? "killed by signal 9"
              : fmt::format("rank {} (pid {}) died while rank {} waited for ", victim, pid, rank);
      EXPECT_EQ(outcome.substr(0, sentence.size()), sentence);
    }
    EXPECT_EQ(text_of("/proc/net/unix").find(name), std::string::npos);
  }
  const std::chrono::duration<double, std::milli> slowest_ms = slowest;
  RecordProperty("slowest_ms", std::to_string(slowest_ms.count()));
}

}  // namespace
}  // namespace towpath::transport
