// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/collectives.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "towpath/live/connect.hpp"
#include "towpath/live/whole_arrays.hpp"
#include "towpath/os/process.hpp"

// Ranks as threads of one process, so that `make tsan` sees what they share.

namespace towpath::live {
namespace {

using namespace literals;

void run_ranks(int ranks, const std::function<void(transport::LiveTransport&)>& body) {
  const std::string name = fmt::format("live-collectives-{}-{}", ::getpid(), ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      transport::LiveOptions options;
      options.rendezvous = name;
      options.rank = rank;
      options.ranks = ranks;
      options.heap_bytes = 64 << 20;
      const auto transport = live::connect("shm", options);
      body(*transport);
      transport->barrier(60_s);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// An array of floats on the symmetric heap, or in memory of its own.
class Floats {
 public:
  Floats(transport::LiveTransport& transport, bool is_on_heap, std::size_t count) : size_(count) {
    const transport::Offset place = transport.allocate(count * sizeof(float));
    own_.resize(is_on_heap ? 0 : count);
    data_ = is_on_heap ? reinterpret_cast<float*>(transport.data(place)) : own_.data();
  }
  void fill(float value) { std::fill_n(data_, size_, value); }
  bool are_all(float value) const {
    return std::all_of(data_, data_ + size_, [&](float each) { return each == value; });
  }
  float& operator[](std::size_t place) { return data_[place]; }
  Span span() { return {reinterpret_cast<std::byte*>(data_), size_ * sizeof(float)}; }

 private:
  std::size_t size_;
  std::vector<float> own_;
  float* data_;
};

// Where only some have their arrays on the heap, all ranks still agree where each block is staged;
// call after call, through several laps of the ring.
TEST(LiveCollectives, SomeRanksMayHaveTheirArraysOnTheHeap) {
  for (const int ranks : {2, 3}) {
    run_ranks(ranks, [&](transport::LiveTransport& transport) {
      Collectives collectives(transport);
      transport.barrier(60_s);
      const LibraryReduction sum{{transport::DataType::float32, {}}, ranks};
      for (const std::size_t count : {5'000U, 100'001U, 400'000U}) {
        Floats values(transport, transport.rank() == 0, count);
        for (int call = 1; call <= 12; ++call) {
          values.fill(static_cast<float>(call * (transport.rank() + 1)));
          collectives.run(request_of("all_reduce", sum, 0, values.span(), values.span()), 60_s);
          const int total = call * ranks * (ranks + 1) / 2;
          ASSERT_TRUE(values.are_all(static_cast<float>(total)))
              << count << " elements, call " << call << ", rank " << transport.rank();
        }
      }
    });
  }
}

// What a rank brings for a place of an array, and another one when it is called again.
float value_of(int rank, std::size_t place, int call) {
  return static_cast<float>(
      (place * 7 + static_cast<std::size_t>(rank) * 13 + static_cast<std::size_t>(call) * 5) %
      1024);
}

// Enough calls that each way of showing an array is tried and one of them kept.
constexpr int kCalls = 12;

// A part is read from a stage, from the heap and from the memory of its process, by ranks that show
// theirs in different ways, and in blocks of which the last one is shorter.
TEST(LiveCollectives, ReduceScatterReadsPartsWhereEachRankHasThem) {
  for (const int ranks : {2, 3}) {
    for (const int on_heap : {0, 1, ranks}) {
      run_ranks(ranks, [&](transport::LiveTransport& transport) {
        Collectives collectives(transport);
        transport.barrier(60_s);
        const LibraryReduction sum{{transport::DataType::float32, {}}, ranks};
        const int rank = transport.rank();
        for (const std::size_t part : {3'000U, 50'000U, 130'003U}) {
          const std::size_t whole = part * static_cast<std::size_t>(ranks);
          Floats input(transport, rank < on_heap, whole);
          Floats output(transport, rank < on_heap, part);
          for (int call = 0; call < kCalls; ++call) {
            for (std::size_t i = 0; i < whole; ++i) input[i] = value_of(rank, i, call);
            collectives.run(request_of("reduce_scatter", sum, 0, input.span(), output.span()),
                            60_s);
            for (std::size_t i = 0; i < part; ++i) {
              const std::size_t place = part * static_cast<std::size_t>(rank) + i;
              float expected = 0;
              for (int other = 0; other < ranks; ++other) expected += value_of(other, place, call);
              ASSERT_EQ(output[i], expected)
                  << part << " elements, " << on_heap << " ranks on the heap, call " << call;
            }
          }
        }
      });
    }
  }
}

// How the ranks have the arrays of an all_reduce.
enum class Arrays { in_place, apart, first_on_heap, last_on_heap };

// Ranks read each other's operands and results where they are, and nobody's result is stored before
// all have read the operand there. A rank on the heap is met by all.
TEST(LiveCollectives, AllReduceReadsArraysWhereTheyAre) {
  constexpr std::size_t kCount = 300'001;
  constexpr int kAllWaysTried = 40;
  for (const int ranks : {2, 3}) {
    for (const Arrays arrays :
         {Arrays::in_place, Arrays::apart, Arrays::first_on_heap, Arrays::last_on_heap}) {
      run_ranks(ranks, [&](transport::LiveTransport& transport) {
        Collectives collectives(transport);
        transport.barrier(60_s);
        const LibraryReduction sum{{transport::DataType::float32, {}}, ranks};
        const int rank = transport.rank();
        const bool is_last = rank == ranks - 1;
        const bool is_on_heap = (arrays == Arrays::first_on_heap && rank == 0) ||
                                (arrays == Arrays::last_on_heap && is_last);
        Floats values(transport, is_on_heap, kCount);
        Floats results(transport, is_on_heap, kCount);
        const Span input = values.span();
        const Span output = arrays == Arrays::apart ? results.span() : input;
        for (int call = 0; call < kAllWaysTried; ++call) {
          for (std::size_t i = 0; i < kCount; ++i) values[i] = value_of(rank, i, call);
          collectives.run(request_of("all_reduce", sum, 0, input, output), 60_s);
          const auto* const got = reinterpret_cast<const float*>(output.data);
          for (std::size_t i = 0; i < kCount; ++i) {
            float expected = 0;
            for (int other = 0; other < ranks; ++other) expected += value_of(other, i, call);
            ASSERT_EQ(got[i], expected) << "arrays " << static_cast<int>(arrays) << ", place " << i
                                        << ", call " << call << ", rank " << rank;
          }
        }
      });
    }
  }
}

// Results that the cache has no room for are stored past it, whatever line they begin in.
TEST(LiveCollectives, ResultsThatTheCacheHasNoRoomForAreWhole) {
  constexpr int kRanks = 2;
  constexpr std::uint64_t kBytesMost = 24 << 20;  // a larger cache is not filled here
  const std::uint64_t cache = os::last_level_cache_bytes().value_or(0);
  const std::size_t count = std::min(cache / 4 + (1 << 20), kBytesMost) / sizeof(float) / 2 * 2;
  for (const bool is_on_heap : {false, true}) {
    run_ranks(kRanks, [&](transport::LiveTransport& transport) {
      Collectives collectives(transport);
      transport.barrier(60_s);
      const LibraryReduction none{{transport::DataType::float32, {}}, kRanks};
      const int rank = transport.rank();
      Floats memory(transport, is_on_heap, 2 * count + 1);
      float* const input = &memory[0];
      float* const output = &memory[count + 1];
      const auto span = [](float* data, std::size_t size) {
        return Span{reinterpret_cast<std::byte*>(data), size * sizeof(float)};
      };
      for (int call = 0; call < 3; ++call) {
        for (std::size_t i = 0; i < count; ++i) input[i] = value_of(rank, i, call);
        collectives.run(request_of("all_to_all", none, 0, span(input, count), span(output, count)),
                        60_s);
        const std::size_t half = count / 2;
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t place = half * static_cast<std::size_t>(rank) + i % half;
          ASSERT_EQ(output[i], value_of(static_cast<int>(i / half), place, call)) << i;
        }
        collectives.run(request_of("all_gather", none, 0, span(input, half), span(output, count)),
                        60_s);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(output[i], value_of(static_cast<int>(i / half), i % half, call)) << i;
        }
        collectives.run(request_of("broadcast", none, 0, span(input, count), span(input, count)),
                        60_s);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(input[i], value_of(0, i, call)) << i;
      }
    });
  }
}

}  // namespace
}  // namespace towpath::live
