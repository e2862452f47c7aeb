// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "chip_bench.hpp"
#include "towpath/noc/chip_network.hpp"

// Requests for what is behind a tile without memory: a host behind the PCIe tile.

namespace towpath::noc {
namespace {

constexpr std::uint64_t kSizes[] = {1, 16, 33, 64, 8192, 8193, 20000};

// What hears of requests, and when.
struct Host final : Outside {
  explicit Host(Bench& of) : bench(of) {}
  void request_left(std::uint64_t number) override {
    left.emplace_back(number, bench.network.cycle());
  }
  void request_completed(std::uint64_t number, std::span<const std::byte> data) override {
    completed.emplace_back(number, bench.network.cycle());
    read.assign(data.begin(), data.end());
  }
  Bench& bench;
  std::vector<std::pair<std::uint64_t, Cycle>> left;
  std::vector<std::pair<std::uint64_t, Cycle>> completed;
  Data read;
};

Request from_pcie(RequestKind kind, Coordinate to, std::uint64_t size_bytes) {
  Request request = kind == RequestKind::read ? read(to, size_bytes) : write(to, size_bytes);
  request.core = {0, 2};
  request.initiator = 0;
  return request;
}

TEST(ChipNetworkOutside, AWriteBringsItsOwnDataAndIsToldOfWhenItLeftAndWasAnswered) {
  for (const std::uint64_t size_bytes : kSizes) {
    Bench bench({.records_requests = true});
    Host host(bench);
    const Data data = pattern(size_bytes, 3);
    bench.network.issue(from_pcie(RequestKind::write, kFar, size_bytes),
                        {.owner = host, .number = 7, .data = data});
    bench.simulation.run();
    EXPECT_EQ(bench.get(kFar, kTarget, size_bytes), data);
    const RequestTimes& times = bench.network.requests().front();
    ASSERT_EQ(host.left.size(), 1U);
    ASSERT_EQ(host.completed.size(), 1U);
    EXPECT_EQ(host.left.front(), std::pair(std::uint64_t{7}, times.sent));
    EXPECT_EQ(host.completed.front(), std::pair(std::uint64_t{7}, times.completed));
    EXPECT_EQ(bench.network.unfinished(), 0);
  }
}

TEST(ChipNetworkOutside, APostedWriteIsCompletedWhenItIsInMemory) {
  Bench bench({.records_requests = true});
  Host host(bench);
  Request request = from_pcie(RequestKind::write, kFar, 64);
  request.is_posted = true;
  bench.network.issue(request, {.owner = host, .number = 1, .data = pattern(64, 1)});
  bench.simulation.run();
  EXPECT_EQ(host.completed.front().second, bench.network.requests().front().received);
}

TEST(ChipNetworkOutside, AReadGivesItsDataToItsOwner) {
  for (const std::uint64_t size_bytes : kSizes) {
    Bench bench;
    Host host(bench);
    bench.put(kFar, kTarget, pattern(size_bytes, 5));
    bench.network.issue(from_pcie(RequestKind::read, kFar, size_bytes),
                        {.owner = host, .number = 2, .data = {}});
    bench.simulation.run();
    EXPECT_EQ(host.read, pattern(size_bytes, 5));
  }
}

TEST(ChipNetworkOutside, WithoutDataOnlyTimePasses) {
  Bench bench;
  Host host(bench);
  bench.put(kFar, kTarget, pattern(64, 5));
  bench.network.issue(from_pcie(RequestKind::write, kFar, 64),
                      {.owner = host, .number = 0, .data = {}, .carries_data = false});
  bench.simulation.run();
  EXPECT_EQ(host.completed.size(), 1U);
  EXPECT_EQ(bench.get(kFar, kTarget, 64), pattern(64, 5));
}

TEST(ChipNetworkOutside, RequestsBeyondAMemoryAreRefused) {
  Bench bench;
  Host host(bench);
  Request request = from_pcie(RequestKind::write, kFar, 64);
  request.remote.offset = bench.network.memory(kFar).size_bytes() - 32;
  EXPECT_THROW(bench.network.issue(request, {.owner = host, .number = 0, .data = pattern(64, 1)}),
               std::invalid_argument);
  EXPECT_EQ(bench.network.unfinished(), 0);
}

// A kernel's write is under way from where the host writes: the network says who changed it.
TEST(ChipNetworkOutside, AWriteOverWhatACoreHasYetToSendIsNamed) {
  Bench bench({.checks_sources = true});
  Host host(bench);
  Request slow = write(kFar, 65536);
  slow.local_offset = 0;
  bench.network.issue(slow);
  Request over = from_pcie(RequestKind::write, kCore, 64);
  over.remote.offset = 60000;
  bench.network.issue(over, {.owner = host, .number = 0, .data = pattern(64, 1)});
  try {
    bench.simulation.run();
    FAIL() << "nothing is said";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("tile (0, 2)'s write of 64 bytes"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace towpath::noc
