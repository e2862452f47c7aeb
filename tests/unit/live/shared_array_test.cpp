// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/shared_array.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "towpath/live/connect.hpp"

namespace towpath::live {
namespace {

using namespace literals;
using transport::kNoPeer;
using transport::LiveOptions;
using transport::TransportError;

constexpr int kRanks = 3;
constexpr std::uint64_t kSizeBytes = 8 << 12;

struct Unmap {
  void operator()(std::byte* place) const { ::munmap(place, kSizeBytes); }
};
using Pages = std::unique_ptr<std::byte, Unmap>;

Pages new_pages() {
  void* const place =
      ::mmap(nullptr, kSizeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return Pages(static_cast<std::byte*>(place));
}

LiveOptions options_of(int rank, const char* what) {
  LiveOptions options;
  options.rendezvous = fmt::format("array-{}-{}", what, ::getpid());
  options.rank = rank;
  options.ranks = kRanks;
  options.timeout = 60_s;
  return options;
}

void run_ranks(const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back([&, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

std::atomic_ref<std::uint64_t> word(const SharedArray& array, int rank, std::size_t index) {
  return std::atomic_ref(reinterpret_cast<std::uint64_t*>(array.of(rank))[index]);
}

void wait_for(SharedArray& array, int rank, std::size_t index, std::uint64_t value) {
  array.wait([&] { return word(array, rank, index).load() == value; }, 60_s, kNoPeer, "a word");
}

TEST(SharedArray, KeepsWhatThePlaceHeldAndShowsItToAll) {
  run_ranks([](int rank) {
    const Pages pages = new_pages();
    std::memset(pages.get(), rank + 1, kSizeBytes);
    const SharedArray array(options_of(rank, "kept"), pages.get(), kSizeBytes);
    EXPECT_EQ(array.of(rank), pages.get());
    for (int peer = 0; peer < kRanks; ++peer) {
      EXPECT_EQ(array.of(peer)[0], std::byte(peer + 1));
      EXPECT_EQ(array.of(peer)[kSizeBytes - 1], std::byte(peer + 1));
    }
  });
}

// UCX exchanges functions of the C library.
TEST(SharedArray, WorksOnceEveryTransportIsLoaded) {
  for (const std::string_view name : names()) {
    const std::string job = fmt::format("loaded-{}-{}", name, ::getpid());
    connect(name, {.rendezvous = job, .rank = 0, .ranks = 1, .timeout = 60_s});
    const Pages pages = new_pages();
    const SharedArray array({.rendezvous = job, .rank = 0, .ranks = 1, .timeout = 60_s},
                            pages.get(), kSizeBytes);
    EXPECT_EQ(array.of(0), pages.get()) << name;
  }
}

// Neither thread of a rank can go on before the other rank has seen what the other one stored.
TEST(SharedArray, TwoThreadsOfARankWaitAtOnce) {
  run_ranks([](int rank) {
    const Pages pages = new_pages();
    SharedArray array(options_of(rank, "threads"), pages.get(), kSizeBytes);
    const int following = (rank + 1) % kRanks;
    const auto pass = [&](std::size_t index) {
      for (std::uint64_t turn = 1; turn <= 50; ++turn) {
        word(array, following, index).store(turn);
        array.wake_peers();
        wait_for(array, rank, index, turn);
        word(array, (rank + kRanks - 1) % kRanks, index + 2).store(turn);  // it was read
        array.wake_peers();
        wait_for(array, rank, index + 2, turn);
      }
    };
    std::thread other([&] { pass(1); });
    pass(0);
    other.join();
  });
}

TEST(SharedArray, AWaitInVainNamesTheRankAndWhatIsAwaited) {
  run_ranks([](int rank) {
    const Pages pages = new_pages();
    SharedArray array(options_of(rank, "vain"), pages.get(), kSizeBytes);
    if (rank == 0) {
      try {
        array.wait([] { return false; }, 200_ms, 1, "a flag of rank 1");
        ADD_FAILURE() << "the wait ends well";
      } catch (const TransportError& error) {
        EXPECT_EQ(error.peer(), 1);
        EXPECT_NE(std::string(error.what()).find("a flag of rank 1"), std::string::npos)
            << error.what();
      }
      word(array, 1, 0).store(1);
      word(array, 2, 0).store(1);
      array.wake_peers();
    } else {
      wait_for(array, rank, 0, 1);
    }
  });
}

TEST(SharedArray, RefusesWhatIsNoWholePages) {
  std::byte place[64];
  EXPECT_THROW(SharedArray(options_of(0, "refused"), place, sizeof(place)), std::invalid_argument);
}

}  // namespace
}  // namespace towpath::live
