// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/window_table.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "pcie_bench.hpp"

namespace towpath::pcie {
namespace {
using namespace literals;

constexpr std::uint64_t kMiB = 1 << 20;

WindowTable table() { return WindowTable(machine::build_chip(link_chip())); }

template <typename Call>
std::string sentence(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(WindowTable, HasWhatTheDriverLeaves) {
  const WindowTable windows = table();
  EXPECT_EQ(windows.available(kMiB), 2);
  EXPECT_EQ(windows.available(2 * kMiB), 2);  // one of three is the driver's
  EXPECT_EQ(windows.available(16 * kMiB), 0);
}

TEST(WindowTable, RefusesASizeThatTheChipDoesNotHaveWithThoseItHas) {
  WindowTable windows = table();
  EXPECT_EQ(sentence([&] { windows.allocate(16 * kMiB); }),
            "small has no windows of 16 MiB; it has windows of 1 MiB, 2 MiB");
  EXPECT_EQ(sentence([&] { windows.allocate(12345); }),
            "small has no windows of 12345 bytes; it has windows of 1 MiB, 2 MiB");
}

TEST(WindowTable, SaysWhenAllAreTakenAndGivesFreedOnesAgain) {
  WindowTable windows = table();
  const WindowNumber first = windows.allocate(kMiB);
  windows.allocate(kMiB);
  EXPECT_EQ(sentence([&] { windows.allocate(kMiB); }),
            "all windows of 1 MiB of small are in use; free one first");
  windows.free(first);
  EXPECT_EQ(windows.allocate(kMiB), first);
}

TEST(WindowTable, ShowsThePieceThatHoldsAnAddress) {
  WindowTable windows = table();
  const WindowNumber number = windows.allocate(kMiB);
  EXPECT_FALSE(windows.find(kDram, 0).has_value());  // allocated, but it points nowhere
  windows.configure(number, kDram, 3 * kMiB + 5, Ordering::posted, Mapping::uncached);
  EXPECT_EQ(windows.window(number).address, 3 * kMiB);
  EXPECT_EQ(windows.find(kDram, 3 * kMiB), number);
  EXPECT_EQ(windows.find(kDram, 4 * kMiB - 1), number);
  EXPECT_FALSE(windows.find(kDram, 4 * kMiB).has_value());
  EXPECT_FALSE(windows.find(kDram, 3 * kMiB - 1).has_value());
  EXPECT_FALSE(windows.find(kOther, 3 * kMiB).has_value());
}

TEST(WindowTable, RefusesWhatIsNotThere) {
  WindowTable windows = table();
  EXPECT_EQ(sentence([&] { windows.free(0); }), "window 0 of small is not allocated");
  EXPECT_EQ(sentence([&] { static_cast<void>(windows.window(99)); }),
            "window 99 of small is not allocated");
  const WindowNumber number = windows.allocate(kMiB);
  EXPECT_EQ(sentence([&] {
              windows.configure(number, kOther, kMiB * 2, Ordering::standard,
                                Mapping::write_combining);
            }),
            "a window at address 2097152 of (1, 1) is beyond its memory, which has 1499136 bytes");
}

TEST(WindowTable, NeedsAHostLink) {
  machine::Chip chip = link_chip();
  chip.pcie.windows.clear();
  const auto built = machine::build_chip(chip);
  EXPECT_EQ(sentence([&] { WindowTable windows(built); }), "chip 'small' has no host link");
}

TEST(NocWay, RefusesAHarvestedCoreWithTheMaskAndWhatIsLeft) {
  const auto chip = machine::build_chip(link_chip());
  EXPECT_EQ(sentence([&] { static_cast<void>(noc_way(*chip, kHarvested)); }),
            "core (2, 1) of small is harvested: mask 0x2 over the columns with workers leaves "
            "columns 1, 3");
  EXPECT_EQ(sentence([&] { static_cast<void>(noc_way(*chip, {0, 1})); }),
            "(0, 1) of small is a router_only tile, which has no memory");
  EXPECT_EQ(sentence([&] { static_cast<void>(noc_way(*chip, {4, 0})); }),
            "(4, 0) is outside the 4 x 4 grid of small");
}

TEST(NocWay, DependsOnWhichAxesDiffer) {
  const auto chip = machine::build_chip(link_chip());
  EXPECT_EQ(noc_way(*chip, kSameRow).write(), 36_ns + 50_ns);
  EXPECT_EQ(noc_way(*chip, {3, 3}).write(), 36_ns + 50_ns);
  EXPECT_EQ(noc_way(*chip, kOther).write(), 72_ns + 50_ns);
  EXPECT_EQ(noc_way(*chip, kOther).read(), 72_ns + 70_ns);
  EXPECT_EQ(noc_way(*chip, kDram).read(), 36_ns + 70_ns + 150_ns);
}

}  // namespace
}  // namespace towpath::pcie
