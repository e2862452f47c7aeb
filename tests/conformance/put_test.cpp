// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "conformance/suite.hpp"

namespace towpath::conformance {
namespace {

using PutConformance = TransportConformance;
INSTANTIATE_FOR_EACH_TRANSPORT(PutConformance);

TEST_P(PutConformance, PutsToAllRanksAreVisibleAfterABarrier) {
  expect_success(5, [](Transport& t) {
    const std::uint64_t size = 30'001;
    const Offset inbox = t.allocate(size * static_cast<std::uint64_t>(t.ranks()));
    const auto seed = [&](int from, int to) { return static_cast<std::uint64_t>(100 * from + to); };
    for (int to = 0; to < t.ranks(); ++to) {
      const auto mine = patterned(seed(t.rank(), to), size);
      t.put(to, inbox + size * static_cast<std::uint64_t>(t.rank()), {mine.data(), size}, kTimeout);
    }
    t.barrier(kTimeout);
    for (int from = 0; from < t.ranks(); ++from) {
      CHECK(is_patterned(t.data(inbox + size * static_cast<std::uint64_t>(from)),
                         seed(from, t.rank()), size));
    }
  });
}

TEST_P(PutConformance, PutsAreVisibleAfterQuietAndASignal) {
  expect_success(2, [](Transport& t) {
    const Offset inbox = t.allocate(1 << 20);
    const Signal told = t.allocate_signals(1);
    const auto mine = patterned(static_cast<std::uint64_t>(t.rank()), 1 << 20);
    for (std::uint64_t at = 0; at < mine.size(); at += 1 << 17) {
      t.put(next_rank(t), inbox + at, {mine.data() + at, 1 << 17}, kTimeout);
    }
    t.quiet(kTimeout);
    CHECK(t.is_quiet());
    raise_signal(t, next_rank(t), told);
    t.signal_wait_until(told, Comparison::equal, 1, kTimeout, previous_rank(t));
    CHECK(is_patterned(t.data(inbox), static_cast<std::uint64_t>(previous_rank(t)), mine.size()));
    t.barrier(kTimeout);
  });
}

// Sends each size in turn to the next rank, which answers when it has looked.
void check_payload_before_signal(Transport& t, const std::vector<std::uint64_t>& sizes,
                                 std::uint64_t misalignment) {
  const Offset inbox = t.allocate((1 << 20) + misalignment) + misalignment;
  const Signal arrived = t.allocate_signals(1), answered = t.allocate_signals(1);
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    const auto mine = patterned(i + static_cast<std::uint64_t>(t.rank()), sizes[i]);
    t.put_signal(next_rank(t), inbox, {mine.data(), sizes[i]}, {arrived, i + 1}, kTimeout);
    t.signal_wait_until(arrived, Comparison::equal, i + 1, kTimeout, previous_rank(t));
    CHECK(is_patterned(t.data(inbox), i + static_cast<std::uint64_t>(previous_rank(t)), sizes[i]));
    raise_signal(t, previous_rank(t), answered, i + 1);
    t.signal_wait_until(answered, Comparison::equal, i + 1, kTimeout, next_rank(t));
  }
  t.barrier(kTimeout);
}

TEST_P(PutConformance, PutSignalShowsItsPayloadAtEverySizeUpTo300Bytes) {
  expect_success(2, [](Transport& t) {
    std::vector<std::uint64_t> sizes(301);
    std::iota(sizes.begin(), sizes.end(), 0);
    check_payload_before_signal(t, sizes, 0);
  });
}

TEST_P(PutConformance, PutSignalShowsItsPayloadAtUnalignedPlaces) {
  expect_success(3, [](Transport& t) {
    for (const std::uint64_t misalignment : {1, 3, 7, 63}) {
      check_payload_before_signal(t, {1, 2, 31, 64, 4095, 65'537}, misalignment);
    }
  });
}

TEST_P(PutConformance, PutSignalShowsItsPayloadUpTo1MiB) {
  expect_success(2, [](Transport& t) {
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t size = 512; size <= 1 << 20; size *= 2) {
      sizes.insert(sizes.end(), {size - 1, size, size == 1 << 20 ? size : size + 1});
    }
    check_payload_before_signal(t, sizes, 0);
  });
}

TEST_P(PutConformance, SetReplacesAndAddAdds) {
  expect_success(2, [](Transport& t) {
    const Signal signal = t.allocate_signals(1);
    const auto expect = [&](std::uint64_t value) {
      t.signal_wait_until(signal, Comparison::equal, value, kTimeout, previous_rank(t));
      t.barrier(kTimeout);
    };
    raise_signal(t, next_rank(t), signal, 10, SignalOperation::set);
    expect(10);
    raise_signal(t, next_rank(t), signal, 5, SignalOperation::add);
    expect(15);
    raise_signal(t, next_rank(t), signal, 3, SignalOperation::set);
    expect(3);
    raise_signal(t, next_rank(t), signal, UINT64_MAX, SignalOperation::add);  // that is, -1
    expect(2);
  });
}

TEST_P(PutConformance, AddsOfAllRanksSumUp) {
  expect_success(4, [](Transport& t) {
    const Signal signal = t.allocate_signals(1);
    for (int i = 0; i < 500; ++i) {
      for (int to = 0; to < t.ranks(); ++to) raise_signal(t, to, signal, 3, SignalOperation::add);
    }
    t.barrier(kTimeout);
    CHECK_EQUAL(t.signal_fetch(signal), 3u * 500 * static_cast<std::uint64_t>(t.ranks()));
    t.barrier(kTimeout);
  });
}

TEST_P(PutConformance, ARankPutsToItself) {
  expect_success(3, [](Transport& t) {
    const Offset inbox = t.allocate(5000);
    const Signal arrived = t.allocate_signals(1);
    const auto mine = patterned(static_cast<std::uint64_t>(t.rank()), 5000);
    t.put_signal(t.rank(), inbox, {mine.data(), 5000}, {arrived, 4, SignalOperation::add},
                 kTimeout);
    t.signal_wait_until(arrived, Comparison::equal, 4, kTimeout, t.rank());
    CHECK(is_patterned(t.data(inbox), static_cast<std::uint64_t>(t.rank()), 5000));
  });
}

TEST_P(PutConformance, AFenceKeepsASignalBehindTheDataBeforeIt) {
  expect_success(2, [](Transport& t) {
    const std::uint64_t size = 100'003;
    const Offset inbox = t.allocate(size);
    const Signal arrived = t.allocate_signals(1);
    for (std::uint64_t round = 1; round <= 50; ++round) {
      const auto mine = patterned(round + static_cast<std::uint64_t>(t.rank()), size);
      t.put(next_rank(t), inbox, {mine.data(), size}, kTimeout);
      t.fence();
      raise_signal(t, next_rank(t), arrived, round);
      t.signal_wait_until(arrived, Comparison::equal, round, kTimeout, previous_rank(t));
      CHECK(
          is_patterned(t.data(inbox), round + static_cast<std::uint64_t>(previous_rank(t)), size));
      t.barrier(kTimeout);
    }
  });
}

// Starts the move and blocks until it is done; counts the calls of done.
int completed(Transport& t, Move& move) {
  int calls = 0;
  move.context = &calls;
  move.done = [](Move& finished) { ++*static_cast<int*>(finished.context); };
  t.start(move);
  t.block_until([&] { return calls > 0; }, kTimeout, move.peer, [] { return "a move"; });
  return calls;
}

// A move of `size_bytes` from `source` to the next rank, with a signal.
Move move_to_next(const Transport& t, const std::vector<std::byte>& source, Offset remote,
                  Signal signal, std::uint64_t value) {
  Move move;
  move.source = source.data();
  move.has_source = true;
  move.size_bytes = source.size();
  move.peer = next_rank(t);
  move.remote = remote;
  move.has_signal = true;
  move.signal = signal;
  move.signal_value = value;
  return move;
}

std::vector<std::byte> integers(std::uint64_t count, int base) {
  std::vector<std::byte> bytes(count * 4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int32_t value = base + static_cast<std::int32_t>(i);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

// What integers(count, a) + integers(count, b) is.
bool are_sums(const std::byte* bytes, std::uint64_t count, int a, int b) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::int32_t value;
    std::memcpy(&value, bytes + 4 * i, 4);
    if (value != a + b + 2 * static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

constexpr std::uint64_t kCount = 50'001;
const transport::Reduction kSum{transport::DataType::int32, transport::ReductionOperation::sum};

TEST_P(PutConformance, AMoveReducesIntoLocalMemory) {
  expect_success(2, [](Transport& t) {
    const auto a = integers(kCount, t.rank()), b = integers(kCount, 1000);
    std::vector<std::byte> result(a.size());
    Move move;
    move.source = a.data();
    move.addend = b.data();
    move.destination = result.data();
    move.has_source = move.has_addend = move.has_destination = true;
    move.size_bytes = a.size();
    move.reduction = kSum;
    CHECK_EQUAL(completed(t, move), 1);
    CHECK(are_sums(result.data(), kCount, t.rank(), 1000));
  });
}

// Reduces to the next rank; `destination` also takes the result when it is not null.
void check_reduce_and_put(Transport& t, std::byte* destination, std::vector<std::byte>& source) {
  const auto addend = integers(kCount, 500);
  const Offset inbox = t.allocate(source.size());
  const Signal arrived = t.allocate_signals(1);
  Move move = move_to_next(t, source, inbox, arrived, 1);
  move.addend = addend.data();
  move.destination = destination;
  move.has_addend = true;
  move.has_destination = destination != nullptr;
  move.reduction = kSum;
  CHECK_EQUAL(completed(t, move), 1);
  t.signal_wait_until(arrived, Comparison::equal, 1, kTimeout, previous_rank(t));
  CHECK(are_sums(t.data(inbox), kCount, previous_rank(t), 500));
  if (destination != nullptr) CHECK(are_sums(destination, kCount, t.rank(), 500));
  t.barrier(kTimeout);
}

TEST_P(PutConformance, AMoveReducesToThePeer) {
  expect_success(3, [](Transport& t) {
    auto source = integers(kCount, t.rank());
    check_reduce_and_put(t, nullptr, source);
    CHECK(source == integers(kCount, t.rank()));
  });
}

TEST_P(PutConformance, AMoveReducesLocallyAndToThePeer) {
  expect_success(3, [](Transport& t) {
    auto source = integers(kCount, t.rank());
    std::vector<std::byte> result(source.size());
    check_reduce_and_put(t, result.data(), source);
    CHECK(source == integers(kCount, t.rank()));
  });
}

TEST_P(PutConformance, AMoveReducesInPlaceAndToThePeer) {
  expect_success(3, [](Transport& t) {
    auto source = integers(kCount, t.rank());
    check_reduce_and_put(t, source.data(), source);
  });
}

TEST_P(PutConformance, AMoveCopiesLocallyAndToThePeer) {
  expect_success(2, [](Transport& t) {
    const auto mine = patterned(static_cast<std::uint64_t>(t.rank()), 70'001);
    const Offset inbox = t.allocate(mine.size());
    const Signal arrived = t.allocate_signals(1);
    std::vector<std::byte> copy(mine.size());
    Move move = move_to_next(t, mine, inbox, arrived, 1);
    move.destination = copy.data();
    move.has_destination = true;
    CHECK_EQUAL(completed(t, move), 1);
    CHECK(copy == mine);
    t.signal_wait_until(arrived, Comparison::equal, 1, kTimeout, previous_rank(t));
    CHECK(is_patterned(t.data(inbox), static_cast<std::uint64_t>(previous_rank(t)), mine.size()));
    t.barrier(kTimeout);
  });
}

TEST_P(PutConformance, AMoveWithoutAPeerCopiesLocally) {
  expect_success(1, [](Transport& t) {
    const auto mine = patterned(3, 1234);
    std::vector<std::byte> copy(mine.size());
    Move move;
    move.source = mine.data();
    move.destination = copy.data();
    move.has_source = move.has_destination = true;
    move.size_bytes = mine.size();
    CHECK_EQUAL(completed(t, move), 1);
    CHECK(copy == mine);
  });
}

TEST_P(PutConformance, AMoveWithoutAPayloadRaisesItsSignal) {
  expect_success(2, [](Transport& t) {
    const Signal arrived = t.allocate_signals(1);
    Move move = move_to_next(t, {}, 0, arrived, 9);
    move.has_source = false;
    move.source = nullptr;
    CHECK_EQUAL(completed(t, move), 1);
    t.signal_wait_until(arrived, Comparison::equal, 9, kTimeout, previous_rank(t));
    t.barrier(kTimeout);
  });
}

TEST_P(PutConformance, ManyMovesInFlightAllArriveAndAreDoneOnce) {
  expect_success(3, [](Transport& t) {
    constexpr std::uint64_t kMoves = 300, kSize = 777;
    const Offset inbox = t.allocate(kMoves * kSize);
    const Signal arrived = t.allocate_signals(1);
    std::uint64_t calls = 0;
    std::vector<std::vector<std::byte>> payloads;
    std::vector<Move> moves;
    for (std::uint64_t i = 0; i < kMoves; ++i) {
      payloads.push_back(patterned(i + static_cast<std::uint64_t>(t.rank()), kSize));
      moves.push_back(move_to_next(t, payloads.back(), inbox + i * kSize, arrived, 1));
      moves.back().signal_operation = SignalOperation::add;
      moves.back().context = &calls;
      moves.back().done = [](Move& move) { ++*static_cast<std::uint64_t*>(move.context); };
    }
    for (Move& move : moves) t.start(move);
    t.signal_wait_until(arrived, Comparison::equal, kMoves, kTimeout, previous_rank(t));
    for (std::uint64_t i = 0; i < kMoves; ++i) {
      CHECK(is_patterned(t.data(inbox + i * kSize),
                         i + static_cast<std::uint64_t>(previous_rank(t)), kSize));
    }
    t.barrier(kTimeout);
    CHECK_EQUAL(calls, kMoves);
  });
}

}  // namespace
}  // namespace towpath::conformance
