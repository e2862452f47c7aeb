// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/nccl/connection.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

namespace towpath::virtual_gpu {
namespace {

struct Pair {
  Listener listener;
  std::unique_ptr<Sender> sender = Sender::connect(listener.address());
  std::unique_ptr<Receiver> receiver = listener.accept();
};

bool is_done(NetworkRequest* request) {
  for (int tries = 0; tries < 10'000 && request->left > 0; ++tries) {
    if (request->sender != nullptr) request->sender->advance();
    if (request->receiver != nullptr) request->receiver->advance();
  }
  return request->left == 0;
}

TEST(Connection, IsAcceptedOnce) {
  Listener listener;
  EXPECT_EQ(listener.accept(), nullptr);
  const auto sender = Sender::connect(listener.address());
  ASSERT_NE(sender, nullptr);
  EXPECT_NE(listener.accept(), nullptr);
  EXPECT_EQ(listener.accept(), nullptr);
}

TEST(Connection, AMessageWaitsForABufferWithItsTag) {
  Pair pair;
  const int value = 42;
  EXPECT_EQ(pair.sender->send(&value, sizeof value, 7), nullptr);
  int found = 0;
  void* const buffers[] = {&found};
  const std::unique_ptr<NetworkRequest> received(
      pair.receiver->receive({1, {7}, {sizeof found}}, buffers));
  EXPECT_EQ(pair.sender->send(&value, sizeof value, 8), nullptr);
  const std::unique_ptr<NetworkRequest> sent(pair.sender->send(&value, sizeof value, 7));
  ASSERT_NE(sent, nullptr);
  EXPECT_TRUE(is_done(sent.get()));
  EXPECT_TRUE(is_done(received.get()));
  EXPECT_EQ(found, 42);
}

TEST(Connection, BuffersOfARequestAreFilledByTagBeforeThoseOfTheNextOne) {
  Pair pair;
  int found[4] = {};
  void* const first[] = {&found[0], &found[1]};
  void* const second[] = {&found[2], &found[3]};
  const Announcement both{2, {5, 9}, {sizeof(int), sizeof(int)}};
  const std::unique_ptr<NetworkRequest> one(pair.receiver->receive(both, first));
  const std::unique_ptr<NetworkRequest> two(pair.receiver->receive(both, second));
  const int values[] = {10, 11, 12, 13};
  const std::unique_ptr<NetworkRequest> a(pair.sender->send(&values[1], sizeof(int), 9));
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(pair.sender->send(&values[3], sizeof(int), 9), nullptr);
  const std::unique_ptr<NetworkRequest> b(pair.sender->send(&values[0], sizeof(int), 5));
  const std::unique_ptr<NetworkRequest> c(pair.sender->send(&values[2], sizeof(int), 5));
  const std::unique_ptr<NetworkRequest> d(pair.sender->send(&values[3], sizeof(int), 9));
  ASSERT_NE(d, nullptr);
  EXPECT_TRUE(is_done(one.get()));
  EXPECT_TRUE(is_done(two.get()));
  EXPECT_TRUE(std::equal(std::begin(found), std::end(found), std::begin(values)));
}

TEST(Connection, TheReceiverGetsTheSizeOfAMessageUpToTheSizeOfItsBuffer) {
  Pair pair;
  char found[8] = "-------";
  void* const buffers[] = {&found[0], &found[3], &found[7]};
  const std::unique_ptr<NetworkRequest> received(
      pair.receiver->receive({3, {1, 2, 3}, {3, 4, 1}}, buffers));
  const std::unique_ptr<NetworkRequest> long_one(pair.sender->send("abcdef", 6, 1));
  const std::unique_ptr<NetworkRequest> short_one(pair.sender->send("xy", 2, 2));
  const std::unique_ptr<NetworkRequest> empty(pair.sender->send("", 0, 3));
  ASSERT_TRUE(is_done(received.get()));
  EXPECT_EQ(received->sizes[0], 3);
  EXPECT_EQ(received->sizes[1], 2);
  EXPECT_EQ(received->sizes[2], 0);
  EXPECT_STREQ(found, "abcxy--");
}

TEST(Connection, LongMessagesArriveInParts) {
  Pair pair;
  std::vector<std::uint32_t> values(5'000'003), found(values.size() + 1);
  std::iota(values.begin(), values.end(), 1);
  const auto size_bytes = static_cast<int>(values.size() * sizeof values[0]);
  // Not at a multiple of 8 bytes.
  void* const buffers[] = {&found[1]};
  const std::unique_ptr<NetworkRequest> received(
      pair.receiver->receive({1, {0}, {size_bytes}}, buffers));
  const std::unique_ptr<NetworkRequest> sent(pair.sender->send(values.data(), size_bytes, 0));
  ASSERT_NE(sent, nullptr);
  EXPECT_EQ(sent->left, 1);
  for (int tries = 0; tries < 10'000 && received->left > 0; ++tries) {
    pair.receiver->advance();
    pair.sender->advance();
  }
  EXPECT_EQ(received->left, 0);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), found.begin() + 1));
}

TEST(Connection, TheEndOfTheOtherSideIsSeen) {
  Pair pair;
  int found = 0;
  void* const buffers[] = {&found};
  const std::unique_ptr<NetworkRequest> received(
      pair.receiver->receive({1, {0}, {sizeof found}}, buffers));
  EXPECT_FALSE(pair.receiver->is_closed());
  pair.sender.reset();
  EXPECT_FALSE(is_done(received.get()));
  EXPECT_TRUE(pair.receiver->is_closed());
}

}  // namespace
}  // namespace towpath::virtual_gpu
