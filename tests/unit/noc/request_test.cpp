// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/request.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "sentence.hpp"

namespace towpath::noc {
namespace {

// --- what is refused ----------------------------------------------------------------------------

std::string refusal(const Request& request) {
  Bench bench;
  EXPECT_THROW(bench.network.issue(request), std::invalid_argument);
  const std::string sentence = sentence_of([&] { bench.network.issue(request); });
  bench.simulation.run();
  EXPECT_EQ(bench.simulation.events(), 0u) << "a refused request did something";
  EXPECT_EQ(bench.counters().writes_issued + bench.counters().reads_issued, 0u);
  return sentence;
}

template <typename Change>
Request changed(Request request, Change change) {
  change(request);
  return request;
}

TEST(Request, IsRefusedWhereItCannotComeFrom) {
  EXPECT_EQ(refusal(changed(write(kFar, 64), [](Request& r) { r.noc = 2; })),
            "core (1, 1), NoC 2: the write of 64 bytes to (3, 2) must use NoC 0 or 1");
  EXPECT_EQ(
      refusal(changed(write(kFar, 64), [](Request& r) { r.core = {4, 0}; })),
      "core (4, 0), NoC 0: the write of 64 bytes to (3, 2) comes from outside the 4 x 4 grid");
  EXPECT_EQ(
      refusal(changed(write(kFar, 64), [](Request& r) { r.core = {0, -1}; })),
      "core (0, -1), NoC 0: the write of 64 bytes to (3, 2) comes from outside the 4 x 4 grid");
  EXPECT_EQ(refusal(changed(write(kFar, 64), [](Request& r) { r.core = kDram; })),
            "core (0, 0), NoC 0: the write of 64 bytes to (3, 2) comes from a dram tile, which "
            "cannot issue requests");
  EXPECT_EQ(refusal(changed(write(kFar, 64), [](Request& r) { r.core = {2, 0}; })),
            "core (2, 0), NoC 0: the write of 64 bytes to (3, 2) comes from a harvested tile, "
            "which cannot issue requests");
  EXPECT_EQ(
      refusal(changed(read(kFar, 64), [](Request& r) { r.initiator = 4; })),
      "core (1, 1), NoC 0: the read of 64 bytes from (3, 2) uses initiator 4; it must be 0 to 3");
  EXPECT_EQ(
      refusal(changed(read(kFar, 64), [](Request& r) { r.initiator = -1; })),
      "core (1, 1), NoC 0: the read of 64 bytes from (3, 2) uses initiator -1; it must be 0 to 3");
  EXPECT_EQ(refusal(changed(read(kFar, 64), [](Request& r) { r.transaction_id = 16; })),
            "core (1, 1), NoC 0: the read of 64 bytes from (3, 2) uses transaction id 16; it must "
            "be 0 to 15");
  EXPECT_EQ(refusal(changed(read(kFar, 64), [](Request& r) { r.is_posted = true; })),
            "core (1, 1), NoC 0: the read of 64 bytes from (3, 2) is posted, but a read always has "
            "an answer");
}

TEST(Request, IsRefusedWhereItCannotGo) {
  EXPECT_EQ(refusal(write({9, 9}, 64)),
            "core (1, 1), NoC 0: the write of 64 bytes to (9, 9) leaves the 4 x 4 grid");
  EXPECT_EQ(refusal(read({-1, 2}, 64)),
            "core (1, 1), NoC 0: the read of 64 bytes from (-1, 2) leaves the 4 x 4 grid");
  EXPECT_EQ(refusal(write({2, 0}, 64)),
            "core (1, 1), NoC 0: the write of 64 bytes to (2, 0) reaches a harvested tile, which "
            "has no memory");
  EXPECT_EQ(refusal(read({0, 2}, 64)),
            "core (1, 1), NoC 0: the read of 64 bytes from (0, 2) reaches a pcie tile, which has "
            "no memory");
  EXPECT_EQ(
      refusal(word_request(RequestKind::atomic_increment, kDram, 1)),
      "core (1, 1), NoC 0: the atomic increment to (0, 0) reaches a dram tile; only L1 accepts it");
  EXPECT_EQ(
      refusal(word_request(RequestKind::inline_write, kDram, 1)),
      "core (1, 1), NoC 0: the inline write to (0, 0) reaches a dram tile; only L1 accepts it");
}

TEST(Request, IsRefusedOnAVcOfAnotherKind) {
  for (const int vc : {-1, 4, 256}) {
    EXPECT_EQ(refusal(changed(write(kFar, 64), [&](Request& r) { r.vc = vc; })),
              "core (1, 1), NoC 0: the write of 64 bytes to (3, 2) uses VC " + std::to_string(vc) +
                  "; it must be 0 to 3 for unicasts");
  }
  for (const int vc : {3, 6}) {
    EXPECT_EQ(refusal(changed(multicast({1, 1}, {2, 2}, 64), [&](Request& r) { r.vc = vc; })),
              "core (1, 1), NoC 0: the write of 64 bytes to the rectangle (1, 1) to (2, 2) uses "
              "VC " +
                  std::to_string(vc) + "; it must be 4 to 5 for multicasts");
  }
}

TEST(Request, IsRefusedBeyondMemory) {
  const std::uint64_t l1_bytes = machine::tiny_chip()->l1_bytes;
  EXPECT_EQ(refusal(write(kFar, 0)),
            "core (1, 1), NoC 0: the write of 0 bytes to (3, 2) moves nothing");
  const auto local = [&](std::uint64_t offset, std::uint64_t size_bytes) {
    return changed(write(kFar, size_bytes), [&](Request& r) { r.local_offset = offset; });
  };
  const auto remote = [&](const Request& request, std::uint64_t offset) {
    return changed(request, [&](Request& r) { r.remote.offset = offset; });
  };
  EXPECT_EQ(refusal(local(l1_bytes - 16, 17)),
            "core (1, 1), NoC 0: the write of 17 bytes to (3, 2) leaves the core's own memory at "
            "offset 1499120; it has 1499136 bytes");
  EXPECT_EQ(refusal(remote(write(kFar, 17), l1_bytes - 16)),
            "core (1, 1), NoC 0: the write of 17 bytes to (3, 2) leaves the memory there at offset "
            "1499120; it has 1499136 bytes");
  EXPECT_EQ(refusal(remote(read(kFar, 16), ~std::uint64_t{15})),
            "core (1, 1), NoC 0: the read of 16 bytes from (3, 2) leaves the memory there at "
            "offset 18446744073709551600; it has 1499136 bytes");
  EXPECT_EQ(refusal(remote(write({1, 0}, 64), 262144 - 32)),
            "core (1, 1), NoC 0: the write of 64 bytes to (1, 0) leaves the memory there at offset "
            "262112; it has 262144 bytes");
  EXPECT_EQ(
      refusal(remote(read(kDram, 64), std::uint64_t{2} << 30)),
      "core (1, 1), NoC 0: the read of 64 bytes from (0, 0) leaves the memory there at offset "
      "2147483648; it has 2147483648 bytes");
  EXPECT_EQ(refusal(remote(word_request(RequestKind::inline_write, kFar, 1), l1_bytes)),
            "core (1, 1), NoC 0: the inline write to (3, 2) leaves the memory there at offset "
            "1499136; it has 1499136 bytes");
  Bench bench;
  bench.run(local(l1_bytes - 16, 16));
  bench.run(remote(write(kFar, 16), l1_bytes - 16));
  EXPECT_EQ(bench.counters().write_acks_received, 2u);
}

TEST(Request, IsRefusedWhenItIsNotAligned) {
  const auto offsets = [](Request request, std::uint64_t local, std::uint64_t remote) {
    request.local_offset = local;
    request.remote.offset = remote;
    return request;
  };
  EXPECT_EQ(refusal(offsets(write(kFar, 64), 8, 64)),
            "core (1, 1), NoC 0: the write of 64 bytes to (3, 2) has local offset 8 and remote "
            "offset 64, which must be equal modulo 16");
  EXPECT_EQ(refusal(offsets(write(kDram, 64), 8, 64)),
            "core (1, 1), NoC 0: the write of 64 bytes to (0, 0) has local offset 8 and remote "
            "offset 64, which must be equal modulo 16");
  EXPECT_EQ(refusal(offsets(read(kDram, 64), 16, 64)),
            "core (1, 1), NoC 0: the read of 64 bytes from (0, 0) has local offset 16 and remote "
            "offset 64, which must be equal modulo 32");
  EXPECT_EQ(refusal(offsets(multicast({1, 1}, {2, 2}, 64), 0, 4)),
            "core (1, 1), NoC 0: the write of 64 bytes to the rectangle (1, 1) to (2, 2) has local "
            "offset 0 and remote offset 4, which must be equal modulo 16");
  EXPECT_EQ(refusal(offsets(write(kFar, 8193), 4, 4)),
            "core (1, 1), NoC 0: the write of 8193 bytes to (3, 2) is split into packets of 8192 "
            "bytes; its offsets must be multiples of 16");
  EXPECT_EQ(refusal(offsets(word_request(RequestKind::atomic_increment, kFar, 1), 0, 6)),
            "core (1, 1), NoC 0: the atomic increment to (3, 2) is at offset 6; it must be a "
            "multiple of 4");
  EXPECT_EQ(refusal(offsets(word_request(RequestKind::inline_write, kFar, 1), 0, 2)),
            "core (1, 1), NoC 0: the inline write to (3, 2) is at offset 2; it must be a multiple "
            "of 4");
  Bench bench;
  bench.put(kCore, 4, pattern(8192, 1));
  bench.run(offsets(write(kFar, 8192), 4, 20));  // equal modulo 16
  EXPECT_EQ(bench.get(kFar, 20, 8192), pattern(8192, 1));
  bench.run(offsets(read(kFar, 8192), 36, 20));
  EXPECT_EQ(bench.get(kCore, 36, 8192), pattern(8192, 1));
}

TEST(Request, IsRefusedWhenItsRectangleIsNone) {
  const std::string begin = "core (1, 1), NoC 0: the write of 64 bytes to the rectangle ";
  EXPECT_EQ(refusal(multicast({1, 1}, {4, 1}, 64)),
            begin + "(1, 1) to (4, 1) leaves the 4 x 4 grid");
  EXPECT_EQ(refusal(multicast({1, 1}, {1, 1}, 64)), begin + "(1, 1) to (1, 1) reaches no worker");
  EXPECT_EQ(refusal(multicast({0, 0}, {3, 0}, 64)), begin + "(0, 0) to (3, 0) reaches no worker");
  Request request = multicast({1, 1}, {2, 2}, 64);
  request.kind = RequestKind::read;
  EXPECT_EQ(
      refusal(request),
      "core (1, 1), NoC 0: the read of 64 bytes from the rectangle (1, 1) to (2, 2) cannot be "
      "a multicast");
}

TEST(Request, IsRefusedWhenItLeavesALinkedPath) {
  Bench bench;
  Request request = multicast({1, 1}, {2, 2}, 64);
  request.is_linked = true;
  bench.run(request);
  const Request elsewhere = multicast({1, 1}, {2, 3}, 64);
  EXPECT_EQ(sentence_of([&] { bench.network.issue(elsewhere); }),
            "core (1, 1), NoC 0: the write of 64 bytes to the rectangle (1, 1) to (2, 3) follows a "
            "linked multicast to the rectangle (1, 1) to (2, 2) and must reach the same workers");
  bench.run(changed(elsewhere, [](Request& r) { r.vc = 5; }));  // has a path of its own
  bench.run(changed(request, [](Request& r) { r.is_linked = false; }));
  bench.run(elsewhere);
  EXPECT_EQ(bench.counters().write_acks_received, 3u + 5u + 3u + 5u);
}

TEST(Request, IsDescribedWhileItIsNotAnswered) {
  Bench bench;
  EXPECT_EQ(bench.network.describe_unanswered(0, kCore), "");
  bench.network.issue(write(kFar, 20000));
  bench.run_to(10);
  bench.network.issue(read(kDram, 64));
  EXPECT_EQ(bench.network.describe_unanswered(0, kCore),
            "its write of 20000 bytes to (3, 2), issued in cycle 0, has 3 of 3 packets to send");
  EXPECT_EQ(bench.network.describe_unanswered(1, kCore), "");
  EXPECT_EQ(bench.network.describe_unanswered(0, kFar), "");
  while (bench.counters().writes_sent < 3) ASSERT_TRUE(bench.simulation.step());
  const std::string answers = bench.network.describe_unanswered(0, kCore);
  EXPECT_EQ(answers.find("its write of 20000 bytes to (3, 2), issued in cycle 0, lacks "), 0u)
      << answers;
  bench.simulation.run();
  EXPECT_EQ(bench.network.describe_unanswered(0, kCore), "");
}

// --- the core's own memory ----------------------------------------------------------------------

TEST(ChipMemory, IsRefusedWhereThereIsNone) {
  Bench bench;
  EXPECT_EQ(sentence_of([&] { bench.network.memory({4, 4}); }), "(4, 4) is outside the 4 x 4 grid");
  EXPECT_EQ(sentence_of([&] { bench.network.memory({2, 0}); }),
            "(2, 0) is a harvested tile, which has no memory");
  Data bytes(16);
  EXPECT_EQ(sentence_of([&] { bench.network.load(kCore, 1499136 - 8, bytes); }),
            "core (1, 1) accesses 16 bytes at offset 1499128 of its memory, which has 1499136");
  EXPECT_EQ(sentence_of([&] { bench.network.store(kCore, ~std::uint64_t{0}, bytes); }),
            "core (1, 1) accesses 16 bytes at offset 18446744073709551615 of its memory, which has "
            "1499136");
  EXPECT_EQ(sentence_of([&] { bench.network.store_word(kCore, 6, 1); }),
            "core (1, 1) accesses a word at offset 6 of its memory; it must be at a multiple of 4");
  EXPECT_EQ(sentence_of([&] { static_cast<void>(bench.network.load_word(kCore, 1499136)); }),
            "core (1, 1) accesses 4 bytes at offset 1499136 of its memory, which has 1499136");
}

TEST(ChipMemory, HoldsWhatTheCoreStores) {
  Bench bench;
  bench.network.store(kCore, 4090, pattern(5000, 1));
  Data bytes(5000);
  bench.network.load(kCore, 4090, bytes);
  EXPECT_EQ(bytes, pattern(5000, 1));
  bench.network.store_word(kCore, 8, 0x01020304);
  EXPECT_EQ(bench.network.load_word(kCore, 8), 0x01020304u);
}

// --- sources that change ------------------------------------------------------------------------

const ChipNetwork::Options kChecked{.checks_sources = true};

TEST(SourceCheck, NamesTheStoreAndTheWriteThatHasYetToRead) {
  Bench bench(kChecked);
  bench.network.issue(write(kFar, 8192));
  bench.run_to(100);
  EXPECT_EQ(sentence_of<std::runtime_error>([&] { bench.network.store_word(kCore, 8188, 1); }),
            "cycle 100: core (1, 1) itself changes bytes 8188 to 8191 of core (1, 1)'s memory, "
            "which its write of 8192 bytes to (3, 2), issued in cycle 0, has yet to read");
  EXPECT_THROW(bench.network.store(kCore, 0, pattern(16, 1)), std::runtime_error);
}

TEST(SourceCheck, LetsBytesChangeThatNoWriteReads) {
  Bench bench(kChecked);
  Request request = write(kFar, 8192);
  request.local_offset = 64;
  bench.network.issue(request);
  bench.network.store(kCore, 0, pattern(64, 1));
  bench.network.store(kCore, 64 + 8192, pattern(64, 1));
  bench.network.store_word(kCore, 64, 0);  // what it was
  while (bench.counters().outgoing[0] > 0) ASSERT_TRUE(bench.simulation.step());
  bench.network.store(kCore, 64, pattern(8192, 1));  // has left
  bench.simulation.run();
  EXPECT_EQ(bench.get(kFar, kTarget, 8192), Data(8192));
}

TEST(SourceCheck, FollowsTheRequestPacketByPacket) {
  Bench bench(kChecked);
  bench.network.issue(write(kFar, 3 * 8192));
  while (bench.counters().writes_sent == 0) ASSERT_TRUE(bench.simulation.step());
  bench.network.store_word(kCore, 8188, 1);
  EXPECT_THROW(bench.network.store_word(kCore, 8192, 1), std::runtime_error);
}

TEST(SourceCheck, SeesWritesOfOthersAndAnswersToReads) {
  {
    Bench bench(kChecked);
    bench.network.issue(write(kFar, 65536));
    Request request = word_request(RequestKind::atomic_increment, kCore, 1, 1);
    request.core = {2, 2};
    request.remote.offset = 60000;
    bench.network.issue(request);
    const std::string sentence = sentence_of<std::runtime_error>([&] { bench.simulation.run(); });
    EXPECT_NE(sentence.find("core (2, 2)'s atomic increment to (1, 1) changes bytes 60000 to "
                            "60003 of core (1, 1)'s memory, which its write of 65536 bytes"),
              std::string::npos)
        << sentence;
  }
  {
    Bench bench(kChecked);
    bench.put(kFar, kTarget, pattern(64, 1));
    bench.network.issue(write(kFar, 65536));
    Request request = read(kFar, 64, 1);
    request.local_offset = 65536 - 64;
    bench.network.issue(request);
    EXPECT_THROW(bench.simulation.run(), std::runtime_error);
  }
}

TEST(SourceCheck, IsOffUnlessAskedFor) {
  Bench bench;
  bench.network.issue(write(kFar, 64));
  bench.network.store(kCore, 0, pattern(64, 9));
  bench.simulation.run();
  EXPECT_EQ(bench.get(kFar, kTarget, 64), pattern(64, 9));  // what it held when the write left
}

// --- order --------------------------------------------------------------------------------------

struct Arrivals {
  Cycle write;
  Cycle atomic;
};

// A write and an atomic 22 cycles behind it, to the same core.
Arrivals write_then_atomic(std::uint64_t size_bytes, int atomic_vc) {
  Bench bench({.records_requests = true});
  bench.network.issue(write(kFar, size_bytes));
  bench.run_to(22);
  Request atomic = word_request(RequestKind::atomic_increment, kFar, 1);
  atomic.vc = atomic_vc;
  atomic.remote.offset += 65536;
  bench.network.issue(atomic);
  bench.simulation.run();
  return {bench.network.requests()[0].received, bench.network.requests()[1].received};
}

TEST(Order, IsKeptOnOneStaticVc) {
  const Arrivals arrivals = write_then_atomic(8192, 1);
  EXPECT_GT(arrivals.atomic, arrivals.write);
}

TEST(Order, IsNotKeptBetweenVcs) {
  for (const int vc : {0, 2, 3}) {
    const Arrivals arrivals = write_then_atomic(16384, vc);
    EXPECT_LT(arrivals.atomic, arrivals.write - 200) << "VC " << vc;
  }
}

TEST(Order, IsKeptAmongTheWritesOfOneInitiator) {
  Bench bench({.records_requests = true});
  std::vector<Request> requests;
  for (const std::uint64_t size_bytes : {20000u, 16u, 8192u, 64u, 9000u, 4u}) {
    requests.push_back(write(kFar, size_bytes));
  }
  bench.issue_all(requests);
  bench.simulation.run();
  for (std::size_t i = 1; i < requests.size(); ++i) {
    EXPECT_GT(bench.network.requests()[i].received, bench.network.requests()[i - 1].received);
  }
}

// The VC was taken when both came, and initiators get it in turn.
TEST(Order, IsNotKeptBetweenInitiators) {
  Bench bench({.records_requests = true});
  Request first = write(kFar, 8192);
  first.initiator = 2;
  bench.network.issue(first);
  bench.network.issue(write(kFar, 8192));
  bench.network.issue(word_request(RequestKind::atomic_increment, {2, 1}, 1));
  bench.simulation.run();
  EXPECT_LT(bench.network.requests()[2].sent, bench.network.requests()[1].sent);
}

TEST(Order, IsNotKeptBetweenNetworks) {
  Bench bench({.records_requests = true});
  bench.network.issue(write(kFar, 8192));
  bench.network.issue(word_request(RequestKind::inline_write, {2, 1}, 1, 1));
  bench.simulation.run();
  EXPECT_LT(bench.network.requests()[1].received, bench.network.requests()[0].received);
}

// --- answers ------------------------------------------------------------------------------------

TEST(Request, ToDramIsAcknowledgedWhenTheDramHasTakenIt) {
  const auto answer_cycles = [](int write_cycles) {
    machine::Chip chip = *machine::tiny_chip();
    chip.workers.clear();
    chip.dram.write_cycles = write_cycles;
    Bench bench({.records_requests = true}, 1, machine::build_chip(chip));
    bench.run(write(kDram, 32));
    const RequestTimes& times = bench.network.requests().at(0);
    return times.completed - times.received;
  };
  EXPECT_EQ(answer_cycles(50), answer_cycles(0) + 50);
}

// Four reads of 8 KiB by one core. Where writes of another core take half of its NIU, responses
// stand in the NIU that sends them. It answers the second when the first response has all but left;
// until then the second waits there, and the third in the network.
TEST(Request, ANiuAnswersNoReadWhileResponsesStandInIt) {
  const auto cycles_between_reads = [](bool is_busy) {
    Bench bench({.records_requests = true});
    std::vector<Request> requests;
    for (int i = 0; i < 4; ++i) {
      requests.push_back(read(kFar, 8192));
      requests.back().initiator = i;
    }
    for (const Request& request : requests) bench.network.issue(request);
    for (int i = 0; is_busy && i < 4; ++i) {
      Request other = write(kCore, 65536);
      other.core = {2, 2};
      other.initiator = i;
      bench.network.issue(other);
    }
    bench.simulation.run();
    const auto& records = bench.network.requests();
    return records.at(2).received - records.at(1).received;
  };
  const Cycle alone = cycles_between_reads(false);
  EXPECT_GE(alone, 257);
  EXPECT_LE(alone, 300);
  EXPECT_GT(cycles_between_reads(true), alone + 100);
}

}  // namespace
}  // namespace towpath::noc
