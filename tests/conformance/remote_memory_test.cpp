// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/remote_memory.hpp"

#include <algorithm>
#include <atomic>

#include "conformance/suite.hpp"

namespace towpath::conformance {
namespace {

using transport::Access;
using transport::AccessKind;
using transport::AtomicOperation;
using transport::MemoryWait;
using transport::RemoteMemory;

// The suite over the transports that have remote memory. The others have none: a program of
// kernels runs on GPUs and on processes of a host.
class RemoteMemoryConformance : public TransportConformance {
 protected:
  void expect_success_with(int ranks, const std::function<void(Transport&, RemoteMemory&)>& body) {
    const std::string& name = GetParam().name;
    const bool has_memory = name == "shm" || name.starts_with("simulated_cluster");
    if (!has_memory) {
      expect_success(1, [](Transport& t) { CHECK(t.remote_memory() == nullptr); });
      GTEST_SKIP() << name << " has no remote memory";
    }
    expect_success(ranks, [&](Transport& t) {
      RemoteMemory* const memory = t.remote_memory();
      CHECK(memory != nullptr);
      body(t, *memory);
    });
  }
};
INSTANTIATE_FOR_EACH_TRANSPORT(RemoteMemoryConformance);

std::uint64_t word_at(Transport& t, Offset at) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(t.data(at)))
      .load(std::memory_order_relaxed);
}

// Starts an access and blocks until it is done.
void complete(Transport& t, RemoteMemory& memory, Access& access) {
  bool is_done = false;
  access.context = &is_done;
  access.done = [](Access& done) { *static_cast<bool*>(done.context) = true; };
  memory.start(access);
  t.block_until([&] { return is_done; }, kTimeout, access.peer, [] { return "an access"; });
}

// A wait until a word has a value.
struct WordWait : MemoryWait {
  WordWait(Transport& t, Offset at, std::uint64_t expected) : transport(&t), value(expected) {
    first = at;
    size_bytes = 8;
    holds = [](const MemoryWait& wait) {
      const auto& self = static_cast<const WordWait&>(wait);
      return word_at(*self.transport, self.first) == self.value;
    };
    ready = [](MemoryWait& wait) { ++static_cast<WordWait&>(wait).times; };
  }
  Transport* transport;
  std::uint64_t value;
  int times = 0;
};

void wait_for(Transport& t, RemoteMemory& memory, Offset at, std::uint64_t value) {
  WordWait wait(t, at, value);
  memory.wait(wait);
  t.block_until(
      [&] {
        t.progress();
        return wait.times == 1;
      },
      kTimeout, kNoPeer, [] { return "a word"; });
}

// Words that are zero, the same on every rank.
Offset allocate_words(Transport& t, std::uint64_t count) {
  const Offset words = t.allocate(8 * count);
  std::memset(t.data(words), 0, 8 * count);
  t.barrier(kTimeout);
  return words;
}

Access signal_to(int peer, Offset at, std::uint64_t value) {
  Access access;
  access.peer = peer;
  access.has_signal = true;
  access.signal_at = at;
  access.signal_value = value;
  return access;
}

// A word of a rank, and an operation on it.
struct Change {
  int peer;
  Offset at;
  AtomicOperation operation;
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;
};

std::uint64_t changed(Transport& t, RemoteMemory& memory, const Change& change) {
  Access access;
  access.kind = AccessKind::atomic;
  access.peer = change.peer;
  access.remote = change.at;
  access.size_bytes = 8;
  access.operation = change.operation;
  access.operand = change.operand;
  access.expected = change.expected;
  access.fetches = true;
  complete(t, memory, access);
  return access.result;
}

TEST_P(RemoteMemoryConformance, ASignalIsSeenAfterThePayloadOfItsPut) {
  expect_success_with(5, [](Transport& t, RemoteMemory& memory) {
    const Offset inbox = t.allocate(1 << 17);
    const Offset words = allocate_words(t, 2);
    std::uint64_t round = 0;
    for (const std::uint64_t size : {1, 16, 300, 4096, 100'001}) {
      ++round;
      for (const int threads : {1, 32, 512}) {
        const std::uint64_t value = 10 * round + static_cast<std::uint64_t>(threads);
        auto mine = patterned(value + static_cast<std::uint64_t>(t.rank()), size);
        Access put = signal_to(next_rank(t), words, value);
        put.remote = inbox;
        put.local = mine.data();
        put.size_bytes = size;
        put.issuer = {.threads = threads, .lane = threads, .rate_max = {}};
        complete(t, memory, put);
        std::fill(mine.begin(), mine.end(), std::byte{0});  // the source may be overwritten
        wait_for(t, memory, words, value);
        const auto from = static_cast<std::uint64_t>(previous_rank(t));
        CHECK(is_patterned(t.data(inbox), value + from, size));
        Access answer = signal_to(previous_rank(t), words + 8, value);
        complete(t, memory, answer);
        wait_for(t, memory, words + 8, value);
      }
    }
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, AFenceOfALaneOrdersASeparateSignal) {
  expect_success_with(4, [](Transport& t, RemoteMemory& memory) {
    const Offset inbox = t.allocate(4 * 50'000);
    const Offset word = allocate_words(t, 1);
    const auto mine = patterned(static_cast<std::uint64_t>(t.rank()), 50'000);
    for (int part = 0; part < 4; ++part) {
      Access put;
      put.peer = (t.rank() + 2) % 4;
      put.remote = inbox + 50'000 * static_cast<std::uint64_t>(part);
      put.local = const_cast<std::byte*>(mine.data());
      put.size_bytes = mine.size();
      put.issuer = {.threads = 256, .lane = 7, .rate_max = {}};
      complete(t, memory, put);
    }
    Access fence;
    fence.kind = AccessKind::fence;
    fence.issuer = {.threads = 256, .lane = 7, .rate_max = {}};
    complete(t, memory, fence);
    Access signal = signal_to((t.rank() + 2) % 4, word, 1);
    signal.issuer.lane = 8;
    complete(t, memory, signal);
    wait_for(t, memory, word, 1);
    for (std::uint64_t part = 0; part < 4; ++part) {
      CHECK(is_patterned(t.data(inbox + 50'000 * part), static_cast<std::uint64_t>(t.rank() ^ 2),
                         50'000));
    }
    t.quiet(kTimeout);
    CHECK(t.is_quiet());
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, FencesOfTheTransportOrderPutsToOnePeer) {
  expect_success_with(4, [](Transport& t, RemoteMemory& memory) {
    const Offset inbox = t.allocate(200'000);
    const Offset words = allocate_words(t, 1);
    const auto mine = patterned(static_cast<std::uint64_t>(t.rank()), 200'000);
    const int peer = (t.rank() + 3) % 4;
    Access put;
    put.peer = peer;
    put.remote = inbox;
    put.local = const_cast<std::byte*>(mine.data());
    put.size_bytes = mine.size();
    put.issuer.lane = 1;
    bool is_visible = false;
    put.context = &is_visible;
    put.visible = [](Access& access) { *static_cast<bool*>(access.context) = true; };
    memory.start(put);
    t.fence();
    Access signal = signal_to(peer, words, 1);
    signal.issuer.lane = 2;
    complete(t, memory, signal);
    wait_for(t, memory, words, 1);
    CHECK(is_patterned(t.data(inbox), static_cast<std::uint64_t>((t.rank() + 1) % 4), 200'000));
    t.quiet(kTimeout);
    CHECK(is_visible);
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, AGetBringsThePeersBytes) {
  expect_success_with(4, [](Transport& t, RemoteMemory& memory) {
    const Offset place = t.allocate(30'001);
    const auto mine = patterned(static_cast<std::uint64_t>(t.rank()), 30'001);
    std::memcpy(t.data(place), mine.data(), mine.size());
    t.barrier(kTimeout);
    for (int peer = 0; peer < t.ranks(); ++peer) {
      std::vector<std::byte> bytes(mine.size());
      Access get;
      get.kind = AccessKind::get;
      get.peer = peer;
      get.remote = place;
      get.local = bytes.data();
      get.size_bytes = bytes.size();
      complete(t, memory, get);
      CHECK(is_patterned(bytes.data(), static_cast<std::uint64_t>(peer), bytes.size()));
    }
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, EachAtomicOperationReturnsTheWordBeforeIt) {
  expect_success_with(2, [](Transport& t, RemoteMemory& memory) {
    const Offset word = allocate_words(t, 1);
    const int peer = next_rank(t);
    const auto change = [&](AtomicOperation operation, std::uint64_t operand,
                            std::uint64_t expected = 0) {
      return changed(t, memory, {peer, word, operation, operand, expected});
    };
    CHECK_EQUAL(change(AtomicOperation::set, 12), 0u);
    CHECK_EQUAL(change(AtomicOperation::add, 3), 12u);
    CHECK_EQUAL(change(AtomicOperation::bit_and, 14), 15u);
    CHECK_EQUAL(change(AtomicOperation::bit_or, 1), 14u);
    CHECK_EQUAL(change(AtomicOperation::bit_xor, 5), 15u);
    CHECK_EQUAL(change(AtomicOperation::swap, 100), 10u);
    CHECK_EQUAL(change(AtomicOperation::compare_swap, 7, 99), 100u);
    CHECK_EQUAL(change(AtomicOperation::compare_swap, 7, 100), 100u);
    CHECK_EQUAL(change(AtomicOperation::fetch, 0), 7u);
    t.barrier(kTimeout);
    CHECK_EQUAL(word_at(t, word), 7u);
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, AtomicsOfAllRanksOnOneWordAreOneAfterTheOther) {
  expect_success_with(5, [](Transport& t, RemoteMemory& memory) {
    const Offset words = allocate_words(t, 3);
    std::uint64_t latest = 0;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t before = changed(t, memory, {0, words, AtomicOperation::add, 1});
      if (i > 0) CHECK(before > latest);
      latest = before;
      // A half word beside another one, and a word that all ranks exchange.
      Access half;
      half.kind = AccessKind::atomic;
      half.peer = 0;
      half.remote = words + 8;
      half.size_bytes = 4;
      half.operation = AtomicOperation::add;
      half.operand = 0x1'0000'0001;
      complete(t, memory, half);
      std::uint64_t seen = changed(t, memory, {0, words + 16, AtomicOperation::fetch});
      while (true) {
        const std::uint64_t found =
            changed(t, memory, {0, words + 16, AtomicOperation::compare_swap, seen + 2, seen});
        if (found == seen) break;
        seen = found;
      }
    }
    t.quiet(kTimeout);
    t.barrier(kTimeout);
    if (t.rank() == 0) {
      CHECK_EQUAL(word_at(t, words), 250u);
      CHECK_EQUAL(word_at(t, words + 8), 250u);
      CHECK_EQUAL(word_at(t, words + 16), 500u);
    }
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, SignalsThatAddComeTogether) {
  expect_success_with(5, [](Transport& t, RemoteMemory& memory) {
    const Offset word = allocate_words(t, 1);
    for (int peer = 0; peer < t.ranks(); ++peer) {
      Access signal = signal_to(peer, word, 3);
      signal.signal_operation = SignalOperation::add;
      complete(t, memory, signal);
    }
    wait_for(t, memory, word, 15);
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, AWaitSeesWhatItsOwnRankStoresAndSays) {
  expect_success_with(1, [](Transport& t, RemoteMemory& memory) {
    const Offset words = allocate_words(t, 2);
    WordWait wait(t, words, 5), other(t, words + 8, 5);
    memory.wait(wait);
    memory.wait(other);
    CHECK(mentions(t.pending(), "8 bytes"));
    const std::uint64_t five = 5;
    std::memcpy(t.data(words), &five, 8);
    memory.stored(words, 8);
    t.block_until(
        [&] {
          t.progress();
          return wait.times == 1;
        },
        kTimeout, kNoPeer, [] { return "a word"; });
    CHECK_EQUAL(other.times, 0);
    CHECK(other.is_waiting);
    memory.cancel(other);
    CHECK(!other.is_waiting);
    std::memcpy(t.data(words + 8), &five, 8);
    memory.stored(words + 8, 8);
    t.progress();
    t.barrier(kTimeout);
    CHECK_EQUAL(other.times, 0);
    memory.cancel(wait);
    CHECK(t.pending().empty());
    wait_for(t, memory, words, 5);  // holds already
  });
}

TEST_P(RemoteMemoryConformance, WhatDoesNotExistIsRefused) {
  expect_success_with(2, [](Transport& t, RemoteMemory& memory) {
    const Offset words = allocate_words(t, 2);
    std::uint64_t value = 0;
    Access put = signal_to(2, words, 1);
    const auto refused = [&]<class Error>(const Access& asked, Error*) {
      Access access = asked;
      try {
        memory.start(access);
      } catch (const Error&) {
        return true;
      }
      return false;
    };
    std::out_of_range* const range = nullptr;
    std::invalid_argument* const argument = nullptr;
    CHECK(refused(put, range));
    put.peer = -1;
    CHECK(refused(put, range));
    put.peer = 1;
    put.local = reinterpret_cast<std::byte*>(&value);
    put.size_bytes = 8;
    put.remote = ~std::uint64_t{0} - 8;
    CHECK(refused(put, range));
    put.remote = words;
    put.signal_at = words + 4;
    CHECK(refused(put, argument));
    Access atomic;
    atomic.kind = AccessKind::atomic;
    atomic.peer = 1;
    atomic.remote = words;
    atomic.size_bytes = 2;
    CHECK(refused(atomic, argument));
    atomic.size_bytes = 8;
    atomic.remote = words + 4;
    CHECK(refused(atomic, argument));
    t.quiet(kTimeout);  // nothing of what was refused is under way
    t.barrier(kTimeout);
  });
}

TEST_P(RemoteMemoryConformance, ReachIsAPeersMemoryWhereItIsAddressable) {
  expect_success_with(4, [](Transport& t, RemoteMemory& memory) {
    const Offset word = allocate_words(t, 1);
    for (int peer = 0; peer < t.ranks(); ++peer) {
      CHECK_EQUAL(memory.reach(peer, word) != nullptr, t.is_addressable(peer));
    }
    CHECK(memory.reach(t.rank(), word) == t.data(word));
  });
}

}  // namespace
}  // namespace towpath::conformance
