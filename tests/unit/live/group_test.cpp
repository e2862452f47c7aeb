// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/group.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "towpath/transport/reduction.hpp"

// Ranks as threads of one process, so that `make tsan` sees what they share.

namespace towpath::live {
namespace {

using namespace literals;
using transport::kNoPeer;
using transport::TransportError;

void run_ranks(int ranks, const std::function<void(Group&)>& body) {
  static std::atomic<int> jobs{0};
  const std::string name = fmt::format("direct-{}-{}", ::getpid(), ++jobs);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      transport::LiveOptions options;
      options.rendezvous = name;
      options.rank = rank;
      options.ranks = ranks;
      Group group("shm", options);
      body(group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <typename T>
Span span_of(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

Combination sum_of_floats() {
  Combination how;
  how.combine = [](void*, std::byte* result, const std::byte* a, const std::byte* b,
                   std::uint64_t size) {
    transport::reduce(result, a, b, size, {transport::DataType::float32, {}});
  };
  how.element_bytes = 4;
  return how;
}

Request all_reduce(std::vector<float>& values) {
  Request request;
  request.kind = Kind::all_reduce;
  request.name = "all_reduce";
  request.inputs = request.outputs = {span_of(values)};
  request.combination = sum_of_floats();
  return request;
}

Request message(Kind kind, std::vector<int>& values, int peer, std::uint64_t tag) {
  Request request;
  request.kind = kind;
  request.name = kind == Kind::send ? "send" : "receive";
  request.peer = peer;
  request.tag = tag;
  (kind == Kind::send ? request.inputs : request.outputs).push_back(span_of(values));
  return request;
}

// Barrier-like: one byte to and from every rank.
Request exchange(std::vector<std::byte>& sent, std::vector<std::byte>& received) {
  Request request;
  request.name = "all_to_all";
  const std::size_t ranks = received.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    request.inputs.push_back({&sent[rank], 1});
    request.outputs.push_back({&received[rank], 1});
  }
  return request;
}

void finish(Group& group, Request request) {
  const CallPointer call = group.post(std::move(request));
  ASSERT_TRUE(group.wait(call, 60_s));
  ASSERT_EQ(call->state, State::done) << (call->error ? call->error->what() : "");
}

// Sizes around a line, a slot, and several blocks of slots.
TEST(LiveGroup, AnAllReduceOfAnySizeIsTheSum) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_ranks(ranks, [](Group& group) {
      for (const std::size_t count : {0, 1, 17, 4096, 4097, 16384, 16385, 1'000'003}) {
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = static_cast<float>(i % 97) + static_cast<float>(group.rank());
        }
        finish(group, all_reduce(values));
        const auto ranks = static_cast<float>(group.ranks());
        for (std::size_t i = 0; i < count; ++i) {
          const float expected = static_cast<float>(i % 97) * ranks + ranks * (ranks - 1) / 2;
          ASSERT_EQ(values[i], expected) << i << " of " << count;
        }
      }
    });
  }
}

// Sums of floats depend on their order.
TEST(LiveGroup, EveryRankGetsTheSameBits) {
  constexpr int kRanks = 4;
  constexpr std::size_t kCount = 300'000;
  for (const std::size_t count : {std::size_t{100}, kCount}) {
    std::vector<std::vector<float>> results(kRanks, std::vector<float>(count));
    run_ranks(kRanks, [&](Group& group) {
      std::vector<float>& values = results[static_cast<std::size_t>(group.rank())];
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = 1.0F / static_cast<float>(i + 1 + 7 * static_cast<std::size_t>(group.rank()));
      }
      finish(group, all_reduce(values));
    });
    for (const auto& result : results) {
      ASSERT_EQ(std::memcmp(result.data(), results[0].data(), count * sizeof(float)), 0);
    }
  }
}

TEST(LiveGroup, AReduceLeavesTheInputsOfOthersAlone) {
  for (const std::size_t count : {std::size_t{10}, std::size_t{200'000}}) {
    run_ranks(3, [&](Group& group) {
      std::vector<float> input(count, static_cast<float>(group.rank() + 1));
      std::vector<float> output(count, -1.0F);
      Request request = all_reduce(input);
      request.kind = Kind::reduce;
      request.peer = 1;
      request.outputs = {span_of(output)};
      finish(group, std::move(request));
      ASSERT_EQ(input, std::vector<float>(count, static_cast<float>(group.rank() + 1)));
      ASSERT_EQ(output, std::vector<float>(count, group.rank() == 1 ? 6.0F : -1.0F));
    });
  }
}

TEST(LiveGroup, MessagesAreMatchedByTagInTheOrderOfSending) {
  run_ranks(2, [](Group& group) {
    const int peer = 1 - group.rank();
    constexpr int kLarge = 200'000;  // more than all slots hold
    std::vector<int> first(kLarge, 1), second(3, 2), third(3, 3);
    std::vector<int> got_first(kLarge), got_second(3), got_third(3);
    const CallPointer sends[] = {group.post(message(Kind::send, first, peer, 7)),
                                 group.post(message(Kind::send, second, peer, 8)),
                                 group.post(message(Kind::send, third, peer, 8))};
    group.wake();
    // The last first; the large one is kept until it is asked for.
    finish(group, message(Kind::receive, got_second, peer, 8));
    finish(group, message(Kind::receive, got_third, kNoPeer, 8));
    finish(group, message(Kind::receive, got_first, peer, 7));
    for (const CallPointer& send : sends) ASSERT_TRUE(group.wait(send, 60_s));
    ASSERT_EQ(got_first, first);
    ASSERT_EQ(got_second, second);
    ASSERT_EQ(got_third, third);
  });
}

// What one thread posts goes on while another waits, and without anyone waiting.
TEST(LiveGroup, MessagesGoOnDuringACollective) {
  run_ranks(2, [](Group& group) {
    std::vector<int> data(500'000, group.rank()), got(500'000);
    std::vector<float> values(10, 1.0F);
    if (group.rank() == 0) {
      const CallPointer send = group.post(message(Kind::send, data, 1, 0));
      group.wake();
      finish(group, all_reduce(values));
      ASSERT_TRUE(group.wait(send, 60_s));
    } else {
      finish(group, message(Kind::receive, got, 0, 0));
      ASSERT_EQ(got, std::vector<int>(500'000, 0));
      finish(group, all_reduce(values));
    }
    ASSERT_EQ(values[0], 2.0F);
  });
}

TEST(LiveGroup, ManyThreadsMayPostAndWait) {
  run_ranks(2, [](Group& group) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&group, thread] {
        const int peer = 1 - group.rank();
        const auto tag = static_cast<std::uint64_t>(thread);
        for (int round = 0; round < 50; ++round) {
          std::vector<int> sent(1000, round), got(1000);
          const CallPointer send = group.post(message(Kind::send, sent, peer, tag));
          finish(group, message(Kind::receive, got, peer, tag));
          ASSERT_TRUE(group.wait(send, 60_s));
          ASSERT_EQ(got, sent);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(LiveGroup, ADeadlineNamesTheStraggler) {
  std::atomic<int> timeouts{0};
  run_ranks(3, [&](Group& group) {
    std::vector<float> values(10);
    finish(group, all_reduce(values));
    if (group.rank() == 2) {
      std::vector<int> nothing(1);
      Request request = message(Kind::receive, nothing, 0, 99);
      request.timeout = 20_s;
      const CallPointer call = group.post(std::move(request));
      ASSERT_TRUE(group.wait(call, 60_s));
      ASSERT_EQ(call->state, State::failed);
      return;
    }
    Request request = all_reduce(values);
    request.timeout = 200_ms;
    const CallPointer call = group.post(std::move(request));
    ASSERT_TRUE(group.wait(call, 60_s));
    ASSERT_EQ(call->state, State::failed);
    // Where the other rank was first, this one repeats what it said.
    const bool is_own = call->error->kind() == TransportError::Kind::timeout;
    timeouts += is_own ? 1 : 0;
    const std::string first = call->error->what();
    EXPECT_NE(first.find("ended by a timeout"), std::string::npos) << first;
    if (!is_own) return;
    const std::string said = call->error->what();
    EXPECT_EQ(call->error->peer(), 2);
    EXPECT_NE(said.find("rank 2: after all_reduce number 1 of 40 bytes"), std::string::npos)
        << said;
    EXPECT_NE(said.find("in all_reduce number 2 of 40 bytes"), std::string::npos) << said;
  });
  EXPECT_GE(timeouts, 1);
}

TEST(LiveGroup, CallsThatDifferAreADisagreement) {
  run_ranks(2, [](Group& group) {
    std::vector<float> values(group.rank() == 0 ? 10 : 11);
    const CallPointer call = group.post(all_reduce(values));
    ASSERT_TRUE(group.wait(call, 60_s));
    ASSERT_EQ(call->state, State::failed);
    EXPECT_EQ(call->error->peer(), 1 - group.rank());
  });
}

TEST(LiveGroup, AMessageThatIsNotReceivedInTimeHurtsNoOther) {
  run_ranks(2, [](Group& group) {
    std::vector<int> got(4);
    Request request = message(Kind::receive, got, 1 - group.rank(), 5);
    request.timeout = 50_ms;
    const CallPointer call = group.post(std::move(request));
    ASSERT_TRUE(group.wait(call, 60_s));
    EXPECT_EQ(call->error->kind(), TransportError::Kind::timeout);
    std::vector<float> values(1, 1.0F);
    finish(group, all_reduce(values));
    EXPECT_EQ(values[0], 2.0F);
  });
}

TEST(LiveGroup, AnAbortEndsTheCallsOfAllRanks) {
  run_ranks(2, [](Group& group) {
    std::vector<int> got(4);
    const CallPointer call = group.post(message(Kind::receive, got, 1 - group.rank(), 5));
    group.wake();
    if (group.rank() == 0) {
      EXPECT_FALSE(group.failure().has_value());
      group.abort("lost interest");
    }
    ASSERT_TRUE(group.wait(call, 60_s));
    ASSERT_EQ(call->state, State::failed);
    const std::string said = call->error->what();
    EXPECT_EQ(said.find("rank 0"), 0U) << said;
    EXPECT_NE(said.find(" lost interest"), std::string::npos) << said;
    ASSERT_TRUE(group.failure().has_value());
    EXPECT_EQ(group.failure()->peer(), 0);
  });
}

TEST(LiveGroup, ARequestThatIsWrongInItselfIsRefused) {
  run_ranks(1, [](Group& group) {
    std::vector<float> values(4);
    Request request = all_reduce(values);
    request.peer = 3;
    EXPECT_THROW(group.post(request), std::invalid_argument);
    request.peer = 0;
    request.combination.element_bytes = 3;
    EXPECT_THROW(group.post(request), std::invalid_argument);
    std::vector<std::byte> bytes(2);
    EXPECT_THROW(group.post(exchange(bytes, bytes)), std::invalid_argument);
  });
}

TEST(LiveGroup, AnOwnPartOfAnotherSizeIsRefused) {
  run_ranks(2, [](Group& group) {
    std::vector<std::byte> sent(4), received(8);
    Request request;
    request.name = "all_to_all";
    for (int rank = 0; rank < 2; ++rank) {
      request.inputs.push_back({sent.data(), 4});
      request.outputs.push_back({received.data(), rank == group.rank() ? 8U : 4U});
    }
    EXPECT_THROW(group.post(request), std::invalid_argument);
    std::vector<float> values(4), fewer(3);
    Request sum = all_reduce(values);
    sum.outputs = {span_of(fewer)};
    EXPECT_THROW(group.post(sum), std::invalid_argument);
  });
}

// Around a line, a slot, a block and several of them, with parts that differ.
TEST(LiveGroup, EveryCollectiveGivesEachRankItsParts) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_ranks(ranks, [](Group& group) {
      const auto ranks = static_cast<std::size_t>(group.ranks());
      const auto self = static_cast<std::size_t>(group.rank());
      for (const std::size_t count : {1, 13, 500, 2048, 2049, 70'000, 300'001}) {
        const auto value = [&](std::size_t from, std::size_t to, std::size_t i) {
          return static_cast<float>(from * 1000 + to * 100 + i % 89);
        };
        std::vector<std::vector<float>> inputs(ranks), outputs(ranks, std::vector<float>(count));
        Request exchanged;
        exchanged.kind = Kind::all_to_all;
        exchanged.name = "all_to_all";
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          for (std::size_t i = 0; i < count; ++i) inputs[rank].push_back(value(self, rank, i));
          exchanged.inputs.push_back(span_of(inputs[rank]));
          exchanged.outputs.push_back(span_of(outputs[rank]));
        }
        finish(group, exchanged);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(outputs[rank][i], value(rank, self, i)) << rank << " " << i;
          }
        }
        std::vector<std::vector<float>> gathered(ranks);
        Request gather;
        gather.kind = Kind::all_gather;
        gather.name = "all_gather";
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          gathered[rank].resize(count + 3 * rank);
          gather.outputs.push_back(span_of(gathered[rank]));
        }
        std::vector<float> own(count + 3 * self, static_cast<float>(self + 1));
        gather.inputs = {span_of(own)};
        finish(group, gather);
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          ASSERT_EQ(gathered[rank],
                    std::vector<float>(count + 3 * rank, static_cast<float>(rank + 1)));
        }
        Request scatter = exchanged;
        std::vector<float> sum(count);
        scatter.kind = Kind::reduce_scatter;
        scatter.name = "reduce_scatter";
        scatter.outputs = {span_of(sum)};
        scatter.combination = sum_of_floats();
        finish(group, scatter);
        for (std::size_t i = 0; i < count; ++i) {
          float expected = 0;
          for (std::size_t rank = 0; rank < ranks; ++rank) expected += value(rank, self, i);
          ASSERT_EQ(sum[i], expected) << i;
        }
        std::vector<float> word(count, self == ranks - 1 ? 7.0F : 0.0F);
        Request broadcast;
        broadcast.kind = Kind::broadcast;
        broadcast.name = "broadcast";
        broadcast.peer = group.ranks() - 1;
        broadcast.inputs = broadcast.outputs = {span_of(word)};
        finish(group, broadcast);
        ASSERT_EQ(word, std::vector<float>(count, 7.0F));
        Request barrier;
        barrier.kind = Kind::barrier;
        barrier.name = "barrier";
        finish(group, barrier);
      }
    });
  }
}

// One rank waits for nobody, so that its calls end before it would look around.
TEST(LiveGroup, DoneIsCalledBeforeAWaitForACallThatEndsAtOnceReturns) {
  run_ranks(1, [](Group& group) {
    std::atomic<int> done{0};
    std::vector<float> values(3, 1);
    for (int calls = 1; calls <= 3; ++calls) {
      Request request = all_reduce(values);
      request.context = &done;
      request.done = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
      finish(group, std::move(request));
      EXPECT_EQ(done, calls);
    }
  });
}

TEST(LiveGroup, DoneIsCalledOnce) {
  run_ranks(2, [](Group& group) {
    std::vector<std::byte> sent(2, static_cast<std::byte>(group.rank())), received(2);
    std::atomic<int> calls{0};
    Request request = exchange(sent, received);
    request.context = &calls;
    request.done = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
    const CallPointer call = group.post(std::move(request));
    group.wake();
    const auto begin = std::chrono::steady_clock::now();
    while (calls == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60)) {
      std::this_thread::yield();
    }
    ASSERT_TRUE(group.wait(call, 60_s));
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(received, (std::vector<std::byte>{std::byte{0}, std::byte{1}}));
  });
}

}  // namespace
}  // namespace towpath::live
