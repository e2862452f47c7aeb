// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "fabrics.hpp"
#include "sentence.hpp"
#include "towpath/tenstorrent/ccl/pages.hpp"
#include "towpath/tenstorrent/ccl/simulated_chips.hpp"

namespace towpath::tenstorrent::ccl {
namespace {

using transport::Move;
using transport::Transport;

TEST(PageRing, GivesPagesInTurnAndSkipsWhatIsTooShortAtTheEnd) {
  PageRing ring(100, 10);
  const auto first_page = [&ring](std::uint64_t count) {
    const std::uint64_t number = ring.take(count).value();
    ring.release(number);
    return ring.first_page(number);
  };
  EXPECT_EQ(first_page(4), 100u);
  EXPECT_EQ(first_page(4), 104u);
  EXPECT_EQ(first_page(3), 100u);
  EXPECT_EQ(first_page(7), 103u);
  EXPECT_EQ(first_page(10), 100u);
  EXPECT_EQ(ring.take(11), std::nullopt);
}

TEST(PageRing, GivesNothingAgainBeforeItIsReleased) {
  PageRing ring(0, 10);
  const std::uint64_t one = ring.take(4).value();
  const std::uint64_t two = ring.take(4).value();
  EXPECT_EQ(ring.take(3), std::nullopt);
  ring.release(two);
  EXPECT_EQ(ring.take(3), std::nullopt);  // the first pages are the oldest ones'
  ring.release(one);
  EXPECT_EQ(ring.take(3), 10u);
}

TEST(PageRing, NothingAtAllMayBeTakenBesideSomething) {
  PageRing ring(0, 10);
  const std::uint64_t nothing = ring.take(0).value();
  const std::uint64_t all = ring.take(10).value();
  EXPECT_EQ(nothing, all);
  ring.release(nothing);
  EXPECT_EQ(ring.take(1), std::nullopt);
}

// The two streams to a chip share the lower half of its 12 GiB.
TEST(ChipMoves, MoreUnderWayThanAChipHasRoomForIsRefused) {
  constexpr std::uint64_t kBytes = 4ull << 30;
  SimulatedChipsOptions options;
  options.carries_data = false;
  options.run.threads = 0;
  options.heap_bytes = 2 * kBytes;
  SimulatedChips cluster(machine::chips_on_grid(2, 1, false, 1), 2, options);
  Transport& sender = cluster.transport(0);
  Move move;
  move.has_source = true;
  move.size_bytes = kBytes;
  move.peer = 1;
  move.remote = sender.allocate(kBytes);
  EXPECT_EQ(sentence_of<std::runtime_error>([&] { sender.start(move); }),
            "more data is in flight than the 3221225472 bytes that the DRAM of chip 1 has for it; "
            "use smaller messages");
}

// A store to the sender's own DRAM beside a put keeps its pages until the put has arrived, and no
// longer: 20 messages go one after the other where six find room.
TEST(ChipMoves, PagesAreUsedAgain) {
  constexpr std::uint64_t kBytes = 64 << 10;
  machine::ChipCluster small = *machine::chips_on_grid(2, 1, false, 1);
  for (machine::ClusterChip& each : small.chips) {
    machine::Chip with_little_memory = *each.chip;
    with_little_memory.dram.channel_bytes = 64 << 10;
    each.chip = std::make_shared<const machine::Chip>(std::move(with_little_memory));
  }
  SimulatedChipsOptions options;
  options.carries_data = false;
  options.run.threads = 0;
  SimulatedChips cluster(std::make_shared<const machine::ChipCluster>(std::move(small)), 2,
                         options);
  Transport& sender = cluster.transport(0);
  int sent = 0;
  Move move;
  move.has_source = move.has_destination = true;
  move.size_bytes = kBytes;
  move.peer = 1;
  move.remote = sender.allocate(kBytes);
  move.context = &sent;
  move.done = [](Move& done) { ++*static_cast<int*>(done.context); };
  for (int i = 0; i < 20; ++i) {
    sender.start(move);
    cluster.run();
  }
  EXPECT_EQ(sent, 20);
  EXPECT_TRUE(sender.is_quiet());
}

}  // namespace
}  // namespace towpath::tenstorrent::ccl
