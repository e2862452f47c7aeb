// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/suite.hpp"

namespace towpath::conformance {
namespace {

using WaitConformance = TransportConformance;
INSTANTIATE_FOR_EACH_TRANSPORT(WaitConformance);

// A wait that counts how often it became ready.
struct CountingWait : SignalWait {
  int calls = 0;

  CountingWait(Signal on, Comparison how, std::uint64_t than, int from = kNoPeer) {
    signal = on;
    comparison = how;
    value = than;
    peer = from;
    ready = [](SignalWait& self) { ++static_cast<CountingWait&>(self).calls; };
  }
};

void block_until_ready(Transport& t, const CountingWait& wait) {
  t.block_until([&] { return wait.calls > 0; }, kTimeout, kNoPeer, [] { return "a wait"; });
}

TEST_P(WaitConformance, ReadyIsCalledExactlyOnceWhenTheSignalArrives) {
  expect_success(2, [](Transport& t) {
    const Signal signal = t.allocate_signals(1);
    CountingWait wait(signal, Comparison::greater_equal, 1, previous_rank(t));
    if (t.rank() == 0) {
      t.wait(wait);
      CHECK_EQUAL(wait.calls, 0);
    }
    t.barrier(kTimeout);
    if (t.rank() == 1) {
      for (std::uint64_t i = 1; i <= 5; ++i) raise_signal(t, 0, signal, i);
    } else {
      block_until_ready(t, wait);
      CHECK(!wait.is_waiting);
    }
    t.barrier(kTimeout);
    for (int i = 0; i < 10; ++i) t.progress();
    CHECK_EQUAL(wait.calls, t.rank() == 0 ? 1 : 0);
  });
}

TEST_P(WaitConformance, ReadyIsCalledAtOnceWhenItHoldsAlready) {
  expect_success(1, [](Transport& t) {
    const Signal signal = t.allocate_signals(1);
    raise_signal(t, 0, signal, 5);
    t.signal_wait_until(signal, Comparison::equal, 5, kTimeout);
    CountingWait wait(signal, Comparison::greater_equal, 5);
    t.wait(wait);
    CHECK_EQUAL(wait.calls, 1);
    CHECK(!wait.is_waiting);
    CHECK_EQUAL(t.pending(), "");
  });
}

TEST_P(WaitConformance, ACancelledWaitIsNeverReady) {
  expect_success(2, [](Transport& t) {
    const Signal signal = t.allocate_signals(2);
    CountingWait cancelled(signal, Comparison::equal, 1), kept(signal, Comparison::equal, 1);
    t.wait(cancelled);
    t.wait(kept);
    t.cancel(cancelled);
    t.cancel(cancelled);  // a second time does no harm
    t.barrier(kTimeout);
    raise_signal(t, next_rank(t), signal);
    block_until_ready(t, kept);
    t.barrier(kTimeout);
    t.progress();
    CHECK_EQUAL(cancelled.calls, 0);
    CHECK_EQUAL(kept.calls, 1);
  });
}

TEST_P(WaitConformance, AWaitMayBeUsedAgain) {
  expect_success(2, [](Transport& t) {
    const Signal signal = t.allocate_signals(1);
    CountingWait wait(signal, Comparison::greater_equal, 0, previous_rank(t));
    for (int round = 1; round <= 100; ++round) {
      wait.value = static_cast<std::uint64_t>(round);
      t.wait(wait);
      raise_signal(t, next_rank(t), signal, 1, SignalOperation::add);
      t.block_until([&] { return wait.calls == round; }, kTimeout, previous_rank(t),
                    [] { return "a wait"; });
    }
  });
}

TEST_P(WaitConformance, ManyWaitsOnManySignalsAllBecomeReady) {
  expect_success(3, [](Transport& t) {
    constexpr std::uint32_t kSignals = 500;
    const Signal first = t.allocate_signals(kSignals);
    std::vector<CountingWait> waits;
    for (Signal i = 0; i < kSignals; ++i) waits.emplace_back(first + i, Comparison::equal, i + 1u);
    for (CountingWait& wait : waits) t.wait(wait);
    t.barrier(kTimeout);
    for (Signal i = kSignals; i-- > 0;) raise_signal(t, next_rank(t), first + i, i + 1u);
    for (CountingWait& wait : waits) block_until_ready(t, wait);
    t.barrier(kTimeout);
    for (CountingWait& wait : waits) CHECK_EQUAL(wait.calls, 1);
    CHECK_EQUAL(t.pending(), "");
  });
}

TEST_P(WaitConformance, SeveralWaitsOnOneSignalAreReadyAtTheirOwnValues) {
  expect_success(2, [](Transport& t) {
    const Signal signal = t.allocate_signals(1);
    CountingWait one(signal, Comparison::greater_equal, 1);
    CountingWait two(signal, Comparison::greater_equal, 2);
    CountingWait also_two(signal, Comparison::equal, 2);
    CountingWait changed(signal, Comparison::not_equal, 0);
    for (CountingWait* wait : {&one, &two, &also_two, &changed}) t.wait(*wait);
    t.barrier(kTimeout);
    raise_signal(t, next_rank(t), signal, 1);
    block_until_ready(t, one);
    block_until_ready(t, changed);
    CHECK_EQUAL(two.calls, 0);
    CHECK_EQUAL(also_two.calls, 0);
    t.barrier(kTimeout);
    raise_signal(t, next_rank(t), signal, 2);
    block_until_ready(t, two);
    block_until_ready(t, also_two);
    for (const CountingWait* wait : {&one, &two, &also_two, &changed}) CHECK_EQUAL(wait->calls, 1);
    t.barrier(kTimeout);
  });
}

TEST_P(WaitConformance, AReadyWaitMayCancelTheOthers) {
  expect_success(2, [](Transport& t) {
    struct Racer : SignalWait {
      Transport* transport = nullptr;
      std::vector<Racer>* all = nullptr;
      int* winners = nullptr;
    };
    const Signal signal = t.allocate_signals(1);
    int winners = 0;
    std::vector<Racer> racers(5);
    for (Racer& racer : racers) {
      racer.signal = signal;
      racer.value = 1;
      racer.transport = &t;
      racer.all = &racers;
      racer.winners = &winners;
      racer.ready = [](SignalWait& wait) {
        auto& self = static_cast<Racer&>(wait);
        ++*self.winners;
        for (Racer& other : *self.all) self.transport->cancel(other);
      };
    }
    for (Racer& racer : racers) t.wait(racer);
    t.barrier(kTimeout);
    raise_signal(t, next_rank(t), signal);
    t.block_until([&] { return winners > 0; }, kTimeout, kNoPeer, [] { return "a winner"; });
    t.barrier(kTimeout);
    t.progress();
    CHECK_EQUAL(winners, 1);
  });
}

// Two ranks play ping-pong from their callbacks alone.
struct Player : SignalWait {
  Transport* transport;
  Move move;
  std::uint64_t hits = 0;

  Player(Transport& t, Signal ball) : transport(&t) {
    signal = move.signal = ball;
    peer = move.peer = next_rank(t);
    move.has_signal = true;
    ready = [](SignalWait& wait) { static_cast<Player&>(wait).hit(); };
  }
  void hit() {
    ++hits;
    move.signal_value = hits;
    transport->start(move);
    if (hits < 1000) await();
  }
  void await() {
    value = transport->rank() == 0 ? hits : hits + 1;
    transport->wait(*this);
  }
};

TEST_P(WaitConformance, ReadyMayStartAMoveAndWaitAgain) {
  expect_success(2, [](Transport& t) {
    Player player(t, t.allocate_signals(1));
    player.comparison = Comparison::equal;
    if (t.rank() == 0) {
      player.hit();
    } else {
      player.await();
    }
    t.block_until([&] { return player.hits == 1000; }, kTimeout, next_rank(t),
                  [&] { return fmt::format("hit {}", player.hits); });
    t.barrier(kTimeout);
  });
}

TEST_P(WaitConformance, PendingSaysWhatIsAwaitedAndThenNothing) {
  expect_success(2, [](Transport& t) {
    const Signal first = t.allocate_signals(2);
    CountingWait described(first, Comparison::equal, 1, next_rank(t));
    described.describe = [](const SignalWait&) { return std::string("slot 3 on channel 1"); };
    CountingWait plain(first + 1, Comparison::equal, 1, next_rank(t));
    t.wait(described);
    t.wait(plain);
    CHECK(mentions(t.pending(), "slot 3 on channel 1"));
    CHECK(mentions(t.pending(), fmt::format("signal {}", first + 1)));
    t.barrier(kTimeout);
    raise_signal(t, next_rank(t), first);
    raise_signal(t, next_rank(t), first + 1);
    block_until_ready(t, described);
    block_until_ready(t, plain);
    CHECK_EQUAL(t.pending(), "");
    t.barrier(kTimeout);
  });
}

TEST_P(WaitConformance, AWaitForASignalThatNobodyRaisesEndsWithATimeoutThatNamesIt) {
  expect_success(2, [](Transport& t) {
    const Signal signal = t.allocate_signals(1);
    const TransportError error = error_of(
        [&] { t.signal_wait_until(signal, Comparison::greater_equal, 77, 20_ms, next_rank(t)); });
    CHECK(error.kind() == TransportError::Kind::timeout);
    CHECK_EQUAL(error.peer(), next_rank(t));
    CHECK(mentions(error.what(), fmt::format("signal {} >= 77", signal)));
    CHECK(mentions(error.what(), fmt::format("rank {}", t.rank())));
    t.barrier(kTimeout);  // a timeout is no end: the transport still works
  });
}

TEST_P(WaitConformance, TimePassesWhileARankBlocks) {
  expect_success(1, [](Transport& t) {
    const Time before = t.now();
    error_of([&] { t.block_until([] { return false; }, 5_ms, kNoPeer, [] { return "never"; }); });
    CHECK(t.now() - before >= 5_ms);
  });
}

}  // namespace
}  // namespace towpath::conformance
