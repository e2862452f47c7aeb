// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/direct/live_collectives.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "towpath/collective/direct/whole_arrays.hpp"
#include "towpath/transport/live/connect.hpp"

// Ranks as threads of one process, so that `make tsan` sees what they share.

namespace towpath::collective::direct {
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
      const auto transport = transport::live::connect("shm", options);
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
      LiveCollectives collectives(transport);
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

}  // namespace
}  // namespace towpath::collective::direct
