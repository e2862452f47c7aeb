// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/host/pci_endpoint.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "pcie_bench.hpp"
#include "towpath/machine/load.hpp"

namespace towpath::tenstorrent {
namespace {

using machine::Coordinate;
using pcie::counted;

constexpr std::uint64_t kRegisters = 0x1FC0'0000;

struct Slot {
  explicit Slot(const std::string& chip, const std::string& host)
      : cluster(machine::load_host(host), {machine::load_chip(chip)}, {}), endpoint(cluster, 0) {}

  // Writes the register of a window, little-endian, in words of 4 bytes, as drivers do.
  void point(std::uint64_t register_offset, std::uint64_t low, std::uint32_t high = 0) {
    std::byte bytes[12];
    std::memcpy(bytes, &low, 8);
    std::memcpy(bytes + 8, &high, 4);
    for (std::size_t word = 0; word < register_words; ++word) {
      endpoint.write(PciEndpoint::bar(0) + kRegisters + register_offset + 4 * word,
                     std::span(bytes).subspan(4 * word, 4));
    }
  }
  std::string refusal_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }

  std::size_t register_words = 3;
  HostCluster cluster;
  PciEndpoint endpoint;
};

struct Blackhole : Slot {
  Blackhole() : Slot("blackhole", "blackhole-host") {}
  static constexpr std::uint64_t target(std::uint64_t x, std::uint64_t y, std::uint64_t window) {
    return window | x << 43 | y << 49;
  }
};

struct Wormhole : Slot {
  Wormhole() : Slot("wormhole", "ryzen-host") { register_words = 2; }
};

TEST(PciEndpoint, ShowsIdentifiersAndWhereItsRegionsBegin) {
  Blackhole slot;
  EXPECT_EQ(slot.endpoint.configuration(0), 0xB140'1E52U);
  for (const int bar : {0, 2, 4}) {
    const auto offset = static_cast<std::uint32_t>(0x10 + 4 * bar);
    const std::uint64_t low = slot.endpoint.configuration(offset) & ~15U;
    const std::uint64_t high = slot.endpoint.configuration(offset + 4);
    EXPECT_EQ(high << 32 | low, PciEndpoint::bar(bar));
  }
  EXPECT_EQ(Wormhole().endpoint.configuration(0), 0x401E'1E52U);
}

TEST(PciEndpoint, BytesGoThroughTheWindowThatARegisterDescribes) {
  Blackhole slot;
  slot.point(12, Blackhole::target(1, 2, 0));  // window 1
  const std::vector<std::byte> data = counted(5000);
  slot.endpoint.write(PciEndpoint::bar(0) + (2 << 20) + 0x123, data);
  std::vector<std::byte> back(data.size());
  slot.endpoint.read(PciEndpoint::bar(0) + (2 << 20) + 0x123, back);
  EXPECT_EQ(back, data);
  std::byte first;
  slot.cluster.memory(0, {1, 2}).read(0x123, std::span(&first, 1));
  EXPECT_EQ(first, data.front());
}

TEST(PciEndpoint, AWindowsAddressIsInUnitsOfItsSize) {
  Blackhole slot;
  slot.point(0, Blackhole::target(0, 0, 3));
  slot.endpoint.write(PciEndpoint::bar(0) + 8, counted(4));
  slot.cluster.flush();
  std::byte first;
  slot.cluster.memory(0, {0, 0}).read((std::uint64_t{3} << 21) + 8, std::span(&first, 1));
  EXPECT_EQ(first, counted(4).front());

  slot.point(std::uint64_t{12} * 202, 1 | std::uint64_t{9} << 32);  // of 4 GiB, in BAR 4
  EXPECT_EQ(slot.refusal_of([&] { slot.endpoint.write(PciEndpoint::bar(4) + 16, counted(4)); }),
            "4 bytes at address 4294967312 of (9, 0) are beyond its memory, which has 4294967296");
}

TEST(PciEndpoint, WindowsOfWormholeLieOneAfterTheOtherSmallestFirst) {
  Wormhole slot;
  const std::uint64_t last_small = 155, first_large = 166;
  slot.point(8 * last_small, std::uint64_t{1} << 16 | std::uint64_t{1} << 22);
  slot.point(8 * first_large, std::uint64_t{2} << 12 | std::uint64_t{1} << 18);
  const std::uint64_t large = (156 << 20) + 10 * (std::uint64_t{2} << 20);
  slot.endpoint.write(PciEndpoint::bar(0) + (last_small << 20), counted(4, 5));
  slot.endpoint.write(PciEndpoint::bar(0) + large, counted(4, 9));
  slot.cluster.flush();
  std::vector<std::byte> back(4);
  slot.cluster.memory(0, {1, 1}).read(0, back);
  EXPECT_EQ(back, counted(4, 5));
  slot.cluster.memory(0, {2, 1}).read(0, back);
  EXPECT_EQ(back, counted(4, 9));
}

TEST(PciEndpoint, TakesTheTimeOfTheHostLink) {
  Blackhole slot, other;
  const auto timed = [](Slot& of, const std::function<void()>& body) {
    const Time begin = of.cluster.now();
    body();
    return of.cluster.now() - begin;
  };
  slot.point(0, Blackhole::target(1, 2, 0));
  const Coordinate worker{1, 2};
  const auto on_link = [&](auto calls) { return other.cluster.on_link(0, calls); };
  on_link(
      [&](auto& link) { return link.configure_tlb(worker, 2 << 20, 0, pcie::Ordering::standard); });
  std::vector<std::byte> data = counted(4096);
  const std::uint64_t at = PciEndpoint::bar(0);
  EXPECT_EQ(timed(slot, [&] { slot.endpoint.write(at, data); }), timed(other, [&] {
              on_link([&](auto& link) { return link.write_to_device(data, worker, 0); });
            }));
  EXPECT_EQ(timed(slot, [&] { slot.endpoint.read(at, data); }), timed(other, [&] {
              on_link([&](auto& link) { return link.read_from_device(data, worker, 0); });
            }));
  // A register of 12 bytes is three uncached stores.
  const Time store = machine::load_host("blackhole-host")->core.uncached_store_time;
  EXPECT_EQ(timed(slot, [&] { slot.point(0, 0); }), store * 3);
}

TEST(PciEndpoint, WhatNoLinkCarriesIsRefused) {
  Blackhole slot;
  const std::uint64_t at = PciEndpoint::bar(0);
  slot.point(0, Blackhole::target(1, 2, 0), 1 << 5);  // multicast
  EXPECT_EQ(slot.refusal_of([&] { slot.endpoint.write(at, counted(4)); }),
            "the register of window 0 of blackhole selects a multicast, NoC 1 or another order; a "
            "window here reaches one tile over NoC 0 in default order");
  slot.point(0, Blackhole::target(8, 0, 0));
  EXPECT_NE(slot.refusal_of([&] { slot.endpoint.write(at, counted(4)); }), "");
  EXPECT_EQ(slot.refusal_of([&] { slot.endpoint.write(at + 201 * (2 << 20), counted(4)); }),
            "a driver cannot access offset 0x19200000 of BAR 0 of blackhole");
  EXPECT_EQ(slot.refusal_of([&] { slot.endpoint.write(0x40, counted(4)); }),
            "no base address region of chip 0 (blackhole) contains bus address 0x40");
  slot.point(0, Blackhole::target(1, 2, 0));
  EXPECT_EQ(slot.refusal_of([&] { slot.endpoint.write(at + (2 << 20) - 2, counted(4)); }),
            "4 bytes at offset 2097150 are beyond a window of 2097152");
}

TEST(PciEndpoint, AChipOfUnknownArchitectureIsRefused) {
  machine::Chip chip = pcie::link_chip();
  chip.architecture = "drawn";
  HostCluster cluster(machine::load_host("blackhole-host"), {machine::build_chip(chip)}, {});
  try {
    const PciEndpoint endpoint(cluster, 0);
    FAIL() << "it was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "the registers of chip 'small' are unknown; its architecture must be "
                 "wormhole_b0 or blackhole");
  }
}

}  // namespace
}  // namespace towpath::tenstorrent
