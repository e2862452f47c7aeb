// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "towpath/transport/shm/shm_transport.hpp"

// Ranks as threads of one process. ThreadSanitizer does not see across processes; here it does, and
// a signal that does not order the data before it is a race (`make tsan`).

namespace towpath::transport::shm {
namespace {

using namespace literals;

void run_ranks(int ranks, const char* what, const std::function<void(LiveTransport&)>& body) {
  const std::string name = fmt::format("threads-{}-{}", what, ::getpid());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      LiveOptions mine;
      mine.rendezvous = name;
      mine.rank = rank;
      mine.ranks = ranks;
      mine.heap_bytes = 1 << 20;
      mine.signals = 64;
      const auto transport = connect(mine);
      body(*transport);
      transport->barrier(60_s);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Round after round into the same inbox: the signal says that the data is there, and the credit
// that it was read.
TEST(ShmThreads, ASignalOrdersTheDataBeforeIt) {
  constexpr int kRanks = 3;
  for (const SignalOperation operation : {SignalOperation::set, SignalOperation::add}) {
    run_ranks(kRanks, operation == SignalOperation::set ? "set" : "add", [&](LiveTransport& t) {
      const Offset inbox = t.allocate(1000 * sizeof(std::uint64_t));
      const Signal arrived = t.allocate_signals(1);
      const Signal credit = t.allocate_signals(1);
      const int next = (t.rank() + 1) % kRanks;
      const int previous = (t.rank() + kRanks - 1) % kRanks;
      std::vector<std::uint64_t> data(1000);
      for (std::uint64_t round = 1; round <= 200; ++round) {
        t.signal_wait_until(credit, Comparison::greater_equal, round - 1, 60_s, next);
        std::iota(data.begin(), data.end(), 1000 * round);
        const std::uint64_t value = operation == SignalOperation::set ? round : 1;
        t.put_signal(next, inbox, {data.data(), 8000}, {arrived, value, operation}, 60_s);
        t.signal_wait_until(arrived, Comparison::greater_equal, round, 60_s, previous);
        const auto* found = reinterpret_cast<const std::uint64_t*>(t.data(inbox));
        ASSERT_EQ(std::accumulate(found, found + 1000, std::uint64_t{0}),
                  1'000'000 * round + 499'500);
        t.put_signal(previous, 0, {}, {credit, value, operation}, 60_s);
      }
    });
  }
}

TEST(ShmThreads, ABarrierOrdersPutsBeforeIt) {
  run_ranks(4, "barrier", [](LiveTransport& t) {
    const Offset places = t.allocate(4 * sizeof(int));
    const Offset place = places + static_cast<Offset>(t.rank()) * sizeof(int);
    for (int round = 0; round < 200; ++round) {
      const int mine = 10 * round + t.rank();
      for (int peer = 0; peer < 4; ++peer) t.put(peer, place, {&mine, sizeof(mine)}, 60_s);
      t.barrier(60_s);
      const int* found = reinterpret_cast<const int*>(t.data(places));
      for (int peer = 0; peer < 4; ++peer) ASSERT_EQ(found[peer], 10 * round + peer);
      t.barrier(60_s);
    }
  });
}

}  // namespace
}  // namespace towpath::transport::shm
