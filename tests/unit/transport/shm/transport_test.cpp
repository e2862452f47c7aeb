// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "processes.hpp"
#include "towpath/os/process.hpp"
#include "towpath/transport/shm/shm_transport.hpp"

namespace towpath::transport::shm {
namespace {

using conformance::Processes;
using namespace literals;

std::string unique_name() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("unit-{}-{}", ::getpid(), now);
}

LiveOptions options(const std::string& name, int rank, int ranks, Time timeout = 20_s) {
  return {.rendezvous = name, .rank = rank, .ranks = ranks, .timeout = timeout};
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
}

void expect_each_contains(const std::vector<std::string>& texts,
                          const std::vector<std::string>& parts) {
  for (const std::string& text : texts) expect_contains(text, parts);
}

void expect_each_succeeded(const std::vector<std::string>& outcomes) {
  for (const std::string& outcome : outcomes) EXPECT_EQ(outcome, "");
}

// How each process ended whose only deed is to connect with its options.
std::vector<std::string> outcomes_of_connecting(const std::vector<LiveOptions>& all) {
  Processes processes(static_cast<int>(all.size()), [&](int index) {
    const auto transport = connect(all[static_cast<std::size_t>(index)]);
    transport->barrier(20_s);
  });
  return processes.wait(std::chrono::seconds(30));
}

std::string sentence_of_connecting(const LiveOptions& wrong) {
  try {
    connect(wrong);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "connected";
}

TEST(ShmRendezvous, RejectsOptionsThatAreWrongInThemselves) {
  EXPECT_EQ(sentence_of_connecting(options("x", 3, 3)), "rank 3 is outside the range 0 to 2");
  EXPECT_EQ(sentence_of_connecting(options("x", 0, 0)),
            "there are 0 ranks; there must be at least 1");
  expect_contains(sentence_of_connecting(options("", 0, 1)), {"has 0 bytes; it must have 1 to 64"});
  expect_contains(sentence_of_connecting(options(std::string(65, 'x'), 0, 1)), {"65 bytes"});
  LiveOptions small = options("x", 0, 1);
  small.heap_bytes = 10;
  EXPECT_EQ(sentence_of_connecting(small),
            "a heap of 10 bytes is too small; 1 ranks need at least 1024");
}

TEST(ShmRendezvous, TellsEverybodyThatARankIsThereTwice) {
  const std::string name = unique_name();
  expect_each_contains(
      outcomes_of_connecting({options(name, 0, 3), options(name, 1, 3), options(name, 1, 3)}),
      {"rank 1 is there twice, as pid "});
}

TEST(ShmRendezvous, TellsEverybodyThatRanksWantDifferentNumbersOfRanks) {
  const std::string name = unique_name();
  expect_each_contains(
      outcomes_of_connecting({options(name, 0, 3), options(name, 1, 3), options(name, 2, 4)}),
      {"rank 2 (pid ", "wants 4 ranks, but rank 0 (pid ", "wants 3"});
}

TEST(ShmRendezvous, TellsEverybodyThatRanksWantDifferentHeapsOrSignals) {
  std::vector<LiveOptions> all{options(unique_name(), 0, 2)};
  all.push_back(all[0]);
  all[1].rank = 1;
  all[1].heap_bytes = 1 << 20;
  expect_each_contains(outcomes_of_connecting(all), {"wants 1048576 bytes of heap, but"});
  all[1].heap_bytes = all[0].heap_bytes;
  all[1].signals = 100;
  expect_each_contains(outcomes_of_connecting(all), {"wants 100 signals, but"});
}

TEST(ShmRendezvous, TellsEverybodyWhichRanksAreMissing) {
  const std::string name = unique_name();
  expect_each_contains(
      outcomes_of_connecting({options(name, 0, 5, 100_ms), options(name, 2, 5, 20_s)}),
      {"did not come together within 0.1 s: of 5 ranks, ranks 1, 3, 4 are missing"});
}

// The one that came first gives up first, and still hears who is missing.
TEST(ShmRendezvous, AnswersTheLeastPatientRankInTime) {
  const std::string name = unique_name();
  expect_each_contains(
      outcomes_of_connecting({options(name, 0, 3, 20_s), options(name, 1, 3, 100_ms)}),
      {"rank 2 is missing"});
}

TEST(ShmRendezvous, NamesRank0WhenItIsMissing) {
  const std::string name = unique_name();
  expect_each_contains(outcomes_of_connecting({options(name, 1, 2, 50_ms)}),
                       {"rank 1 (pid ", "found no rank 0 of group \"" + name});
}

TEST(ShmRendezvous, TellsEverybodyThatARankDied) {
  const std::string name = unique_name();
  Processes processes(3, [&](int rank) {
    if (rank == 1) {
      const itimerval soon{{0, 0}, {0, 50'000}};
      ::setitimer(ITIMER_REAL, &soon, nullptr);  // SIGALRM ends it while it waits for rank 3
    }
    connect(options(name, rank, 4));
  });
  const auto ended = processes.wait(std::chrono::seconds(30));
  EXPECT_EQ(ended[1], fmt::format("killed by signal {}", SIGALRM));
  for (const int rank : {0, 2}) {
    expect_contains(ended[static_cast<std::size_t>(rank)],
                    {"rank 1 (pid ", "went away while group"});
  }
}

TEST(ShmRendezvous, TellsASecondRank0ThatTheNameIsTaken) {
  const std::string name = unique_name();
  Processes processes(2, [&](int) { connect(options(name, 0, 2, 300_ms)); });
  const auto ended = processes.wait(std::chrono::seconds(30));
  const std::size_t second = ended[0].find("another rank 0") != std::string::npos ? 0 : 1;
  EXPECT_EQ(
      ended[second],
      fmt::format("another rank 0 is gathering a group \"{}\" now; choose another name", name));
  expect_contains(ended[1 - second], {"rank 1 is missing"});
}

TEST(ShmRendezvous, LeavesNoNameBehindSoThatItCanBeUsedAgain) {
  const std::string name = unique_name();
  for (int i = 0; i < 10; ++i) {
    expect_each_succeeded(outcomes_of_connecting({options(name, 0, 2), options(name, 1, 2)}));
  }
  std::ifstream sockets("/proc/net/unix");
  const std::string all{std::istreambuf_iterator<char>(sockets), {}};
  EXPECT_EQ(all.find(name), std::string::npos);
}

int open_descriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  int count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

TEST(ShmTransport, ClosesAndUnmapsAllWhenItIsDestroyed) {
  const int before = open_descriptors();
  // 64 GiB each: without unmapping, 4,000 would exhaust the address space.
  for (int i = 0; i < 4'000; ++i) connect(options("unit", 0, 1));
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ShmTransport, RejectsPlacesOutsideTheGroupAndTheHeap) {
  LiveOptions small = options(unique_name(), 0, 1);
  small.heap_bytes = 1 << 20;
  small.signals = 40;
  const auto transport = connect(small);
  const char byte = 1;
  const auto sentence = [&](int peer, Offset at, std::uint64_t size, Signal signal) {
    try {
      transport->put_signal(peer, at, {&byte, size}, {signal}, 1_s);
    } catch (const std::out_of_range& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(sentence(0, 1 << 20, 1, 35),
            "1 bytes at offset 1048576 are outside the heap of 1048576 bytes");
  EXPECT_EQ(sentence(0, UINT64_MAX, 1, 35),
            "1 bytes at offset 18446744073709551615 are outside the heap of 1048576 bytes");
  EXPECT_EQ(sentence(0, 5000, 1, 40), "signal 40 is outside the range 0 to 39");
  EXPECT_EQ(sentence(1, 5000, 1, 35), "rank 1 is outside the range 0 to 0");
  EXPECT_EQ(sentence(0, (1 << 20) - 1, 1, 39), "");
  EXPECT_THROW(transport->data((1 << 20) + 1), std::out_of_range);
  EXPECT_THROW(transport->signal_fetch(40), std::out_of_range);
}

TEST(ShmTransport, RejectsAMoveThatContradictsItself) {
  const auto transport = connect(options(unique_name(), 0, 1));
  Move no_peer;
  no_peer.has_signal = true;
  EXPECT_THROW(transport->start(no_peer), std::invalid_argument);
  Move no_pointer;
  no_pointer.has_source = true;
  no_pointer.size_bytes = 8;
  EXPECT_THROW(transport->start(no_pointer), std::invalid_argument);
  Move no_source;
  no_source.has_addend = true;
  EXPECT_THROW(transport->start(no_source), std::invalid_argument);
}

TEST(ShmTransport, PutsBeyondTheFirst4GiBOfAHeap) {
  const auto transport = connect(options(unique_name(), 0, 1));
  const Offset inbox = transport->allocate(std::uint64_t{6} << 30);
  const Offset far = inbox + (std::uint64_t{5} << 30) + 3;
  transport->put(0, far, {"far away", 8}, 20_s);
  EXPECT_EQ(std::memcmp(transport->data(far), "far away", 8), 0);
}

TEST(ShmTransport, PutsMoreThan2GiBAtOnce) {
  if (std::getenv("TOWPATH_LONG_TESTS") == nullptr) {
    GTEST_SKIP() << "takes up to 10 s and 2 GiB of memory; set TOWPATH_LONG_TESTS to run it";
  }
  constexpr std::uint64_t kSize = (std::uint64_t{1} << 31) + 4099;
  // Only its last page is ever written; the others are the system's one page of zeros.
  auto* source = static_cast<char*>(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(source, MAP_FAILED);
  std::memcpy(source + kSize - 4, "last", 4);
  const auto transport = connect(options(unique_name(), 0, 1));
  const Offset inbox = transport->allocate(kSize);
  transport->put(0, inbox, {source, kSize}, 60_s);
  EXPECT_EQ(std::memcmp(transport->data(inbox + kSize - 4), "last", 4), 0);
  ::munmap(source, kSize);
}

// A forked child holds a copy of the transport; its end is not the rank's.
TEST(ShmTransport, AForkedChildDoesNotSpeakForTheRank) {
  const std::string name = unique_name();
  using Count = std::atomic<int>;
  auto* looks = static_cast<Count*>(
      ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(looks, MAP_FAILED);
  Processes processes(2, [&](int rank) {
    LiveOptions mine = options(name, rank, 2);
    if (rank == 1) mine.on_look = [&] { looks->fetch_add(1); };
    auto transport = connect(mine);
    if (rank == 0) {
      Processes child(1, [&](int) { transport.reset(); });
      child.wait(std::chrono::seconds(10));
    }
    transport->barrier(20_s);
    const Signal done = transport->allocate_signals(1);
    // Rank 1 has looked whether rank 0 is there before it hears from it.
    for (const int before = looks->load(); rank == 0 && looks->load() < before + 3;) {
      ::sched_yield();
    }
    transport->put_signal(1 - rank, 0, {}, {done}, 20_s);
    transport->signal_wait_until(done, Comparison::equal, 1, 20_s, 1 - rank);
  });
  expect_each_succeeded(processes.wait(std::chrono::seconds(30)));
  ::munmap(looks, sizeof(Count));
}

// Rank 2 dies; rank 1 gives up and ends without a farewell. Rank 0 looks only then.
TEST(ShmTransport, BlamesTheRankThatDiedFirstNotTheOneThatGaveUp) {
  const std::string name = unique_name();
  struct Shared {
    std::atomic<bool> may_look;
    std::atomic<int> behind_barrier;
  };
  auto* shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  Processes processes(3, [&](int rank) {
    const auto transport = connect(options(name, rank, 3));
    transport->barrier(20_s);
    ++shared->behind_barrier;
    while (shared->behind_barrier < 3) ::sched_yield();
    if (rank == 2) std::raise(SIGKILL);
    while (rank == 0 && !shared->may_look) ::sched_yield();
    try {
      transport->signal_wait_until(Transport::kReservedSignals, Comparison::equal, 1, 20_s, 1);
    } catch (const TransportError& error) {
      if (rank == 0) throw;
      ::_exit(error.peer() == 2 ? 0 : 1);
    }
  });
  siginfo_t end;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(processes.pid(1)), &end, WEXITED | WNOWAIT), 0);
  shared->may_look = true;
  const auto ended = processes.wait(std::chrono::seconds(30));
  expect_contains(ended[0], {"rank 2 (pid ", "died while rank 0 waited for signal"});
  EXPECT_EQ(ended[1], "");
  EXPECT_EQ(ended[2], "killed by signal 9");
  ::munmap(shared, sizeof(Shared));
}

// --- failures and notice

void expect_all_name(const std::vector<std::string>& outcomes, int culprit,
                     const std::string& what) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (static_cast<int>(rank) == culprit) continue;
    expect_contains(outcomes[rank], {fmt::format("rank {} (pid ", culprit), what});
  }
}

TEST(ShmTransport, NamesARankThatGivesUpWithItsReason) {
  const std::string name = unique_name();
  Processes processes(5, [&](int rank) {
    const auto transport = connect(options(name, rank, 5));
    transport->barrier(20_s);
    if (rank == 2) {
      transport->abandon("failed (KeyError: 'x')");
      return;
    }
    // Each waits for its neighbour; only rank 3 waits for the culprit.
    transport->signal_wait_until(Transport::kReservedSignals, Comparison::equal, 1, 20_s,
                                 (rank + 4) % 5);
  });
  const auto ended = processes.wait(std::chrono::seconds(30));
  EXPECT_EQ(ended[2], "");
  expect_all_name(ended, 2, "failed (KeyError: 'x') while rank ");
}

// The reason that counts is that of the rank that gave up first, whichever rank passes it on.
TEST(ShmTransport, ARankThatGivesUpBecauseOfAPeerNamesThatPeer) {
  const std::string name = unique_name();
  Processes processes(3, [&](int rank) {
    const auto transport = connect(options(name, rank, 3));
    transport->barrier(20_s);
    if (rank == 2) return;  // leaves in good order
    try {
      transport->signal_wait_until(Transport::kReservedSignals, Comparison::equal, 1, 20_s,
                                   rank + 1);
    } catch (const TransportError& error) {
      transport->abandon("is not to blame", error.peer());
      throw;
    }
  });
  const auto ended = processes.wait(std::chrono::seconds(30));
  expect_contains(ended[0], {"rank 2 (pid ", "left while rank 0 waited"});
  expect_contains(ended[1], {"rank 2 (pid ", "left while rank 1 waited"});
}

TEST(ShmTransport, NamesAStoppedRankAndNoOtherWhenTheTimeIsUp) {
  const std::string name = unique_name();
  Processes processes(4, [&](int rank) {
    const auto transport = connect(options(name, rank, 4));
    transport->barrier(20_s);
    if (rank == 1) std::raise(SIGSTOP);
    // Rank 3 waits for rank 2, which is as healthy as it is.
    transport->signal_wait_until(Transport::kReservedSignals, Comparison::equal, 1, 1500_ms,
                                 (rank + 3) % 4);
  });
  std::vector<std::string> ended(4);
  siginfo_t end;
  for (const int rank : {0, 2, 3}) {
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(processes.pid(rank)), &end, WEXITED | WNOWAIT), 0);
  }
  ::kill(processes.pid(1), SIGKILL);
  ended = processes.wait(std::chrono::seconds(30));
  expect_all_name(ended, 1, " stopped");
}

TEST(ShmTransport, NewsOfTheLauncherEndsAWaitAndAConnection) {
  const auto notice = std::make_shared<FailureNotice>();
  LiveOptions early = options(unique_name(), 0, 2);
  early.notice = notice;
  notice->post({1, "exited early with status 0"});
  notice->post({0, "is too late"});
  try {
    connect(early);
    ADD_FAILURE() << "it connected";
  } catch (const TransportError& error) {
    EXPECT_EQ(error.peer(), 1);
    expect_contains(error.what(), {"rank 1 exited early with status 0 while group"});
  }
  LiveOptions alone = options(unique_name(), 0, 1);
  alone.notice = std::make_shared<FailureNotice>();
  const auto transport = connect(alone);
  std::const_pointer_cast<FailureNotice>(alone.notice)->post({0, "was told to end"});
  try {
    transport->signal_wait_until(Transport::kReservedSignals, Comparison::equal, 1, 20_s);
    ADD_FAILURE() << "the wait ended";
  } catch (const TransportError& error) {
    expect_contains(error.what(), {"was told to end while rank 0 waited for signal"});
  }
}

TEST(ShmTransport, WhatTheCallerThrowsEndsAWait) {
  LiveOptions mine = options(unique_name(), 0, 1);
  int looks = 0;
  mine.on_look = [&] {
    if (++looks == 3) throw std::runtime_error("enough");
  };
  const auto transport = connect(mine);
  EXPECT_THROW(
      transport->signal_wait_until(Transport::kReservedSignals, Comparison::equal, 1, 20_s),
      std::runtime_error);
  EXPECT_EQ(looks, 3);
}

bool has_ended(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);  // nothing, if the process ends in between
  const std::size_t name_end = text.rfind(')');
  return name_end == std::string::npos || text.substr(name_end + 2, 1) == "Z";
}

// Rank 1 raises the signal and leaves after rank 0 has looked at its signals, and before rank 0
// reads who has left. What rank 1 did before it left still counts.
void expect_last_look(const std::function<bool(LiveTransport&)>& wait) {
  struct Shared {
    std::atomic<bool> may_leave;
    std::atomic<pid_t> pid;
  };
  auto* shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  const std::string name = unique_name();
  Processes processes(2, [&](int rank) {
    LiveOptions mine = options(name, rank, 2);
    bool is_joined = false;
    if (rank == 0) {
      mine.on_look = [&] {
        if (!is_joined) return;
        shared->may_leave.store(true);
        while (!has_ended(shared->pid.load())) ::sched_yield();
      };
    } else {
      shared->pid.store(::getpid());
    }
    const auto transport = connect(mine);
    transport->barrier(20_s);
    is_joined = true;
    const Signal signal = transport->allocate_signals(1);
    if (rank == 1) {
      while (!shared->may_leave.load()) ::sched_yield();
      transport->put_signal(0, 0, {}, {signal}, 20_s);
    } else if (!wait(*transport)) {
      throw std::runtime_error("the signal was not seen");
    }
  });
  const auto ended = processes.wait(std::chrono::seconds(30));
  EXPECT_EQ(ended[0], "");
  EXPECT_EQ(ended[1], "");
  ::munmap(shared, sizeof(Shared));
}

TEST(ShmTransport, ABlockedRankSeesWhatAPeerDidBeforeItLeft) {
  expect_last_look([](LiveTransport& transport) {
    transport.signal_wait_until(Transport::kReservedSignals, Comparison::equal, 1, 20_s, 1);
    return true;
  });
}

TEST(ShmTransport, ProgressSeesWhatAPeerDidBeforeItLeft) {
  expect_last_look([](LiveTransport& transport) {
    bool is_ready = false;
    SignalWait wait;
    wait.signal = Transport::kReservedSignals;
    wait.value = 1;
    wait.peer = 1;
    wait.context = &is_ready;
    wait.ready = [](SignalWait& self) { *static_cast<bool*>(self.context) = true; };
    transport.wait(wait);
    while (!is_ready) transport.progress();
    return is_ready;
  });
}

TEST(ShmTransport, AFullHeapSaysHowLargeItIs) {
  LiveOptions small = options(unique_name(), 0, 1);
  small.heap_bytes = 1 << 20;
  const auto transport = connect(small);
  try {
    transport->allocate(2 << 20);
    ADD_FAILURE() << "it was allocated";
  } catch (const std::bad_alloc& error) {
    expect_contains(error.what(), {"heap of 1048576 bytes", "2097152 more", "heap_bytes"});
  }
}

TEST(ShmTransport, ReservesNoMoreThanTheLimitsOfTheProcessAllow) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer reserves more address space than the limit of this test";
#endif
  EXPECT_EQ(default_heap_bytes(8), std::uint64_t{64} << 30);
  Processes processes(1, [&](int) {
    const rlimit limit{std::uint64_t{6} << 30, std::uint64_t{6} << 30};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto transport = connect(options(unique_name(), 0, 1));
    const Offset all = transport->allocate(std::uint64_t{1} << 30);
    transport->data(all)[(1 << 30) - 1] = std::byte{1};
    if (default_heap_bytes(8) > (std::uint64_t{6} << 30) / 8) throw std::runtime_error("too much");
  });
  EXPECT_EQ(processes.wait(std::chrono::seconds(30))[0], "");
}

// A rank that has read all statements ends at once; others may still wait for one, of a rank that
// the system interrupts between two of its peers.
TEST(ShmTransport, RanksThatDisagreeAllSaySoThoughOthersHaveEnded) {
  constexpr int kRanks = 4;
  const std::string name = unique_name();
  Processes processes(kRanks, [&](int rank) {
    std::signal(SIGALRM, [](int) { ::usleep(4000); });
    for (int round = 0; round < 400; ++round) {
      const auto transport = connect(options(fmt::format("{}-{}", name, round), rank, kRanks));
      transport->barrier(20_s);
      const itimerval soon{{0, 0}, {0, 1 + round % 20}};
      if (rank < 2) ::setitimer(ITIMER_REAL, &soon, nullptr);
      try {
        transport->agree(rank == 2 ? "one thing" : "another", 20_s);
      } catch (const TransportError& error) {
        transport->abandon(fmt::format("failed ({})", error.what()));
        if (error.kind() != TransportError::Kind::disagreement) throw;
        continue;
      }
      throw std::logic_error("ranks that say different things agree");
    }
  });
  expect_each_succeeded(processes.wait(std::chrono::seconds(60)));
}

TEST(CountCores, CountsTheDifferentCoresOfAllProcesses) {
  const pid_t self = ::getpid();
  const std::vector<pid_t> twice{self, self};
  EXPECT_EQ(os::count_cores(twice), os::count_cores(std::vector<pid_t>{self}));
  Processes processes(1, [&](int) {
    cpu_set_t all, first;
    ::sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&first);
    for (int core = 0; CPU_COUNT(&first) == 0; ++core) {
      if (CPU_ISSET(core, &all)) CPU_SET(core, &first);
    }
    ::sched_setaffinity(0, sizeof(first), &first);
    const pid_t mine = ::getpid();
    if (os::count_cores(std::vector<pid_t>{mine}) != 1) throw std::runtime_error("not pinned");
    if (os::count_cores(std::vector<pid_t>{self, mine}) != CPU_COUNT(&all)) {
      throw std::runtime_error("a rank that is pinned hides the cores of others");
    }
  });
  EXPECT_EQ(processes.wait(std::chrono::seconds(30))[0], "");
}

}  // namespace
}  // namespace towpath::transport::shm
