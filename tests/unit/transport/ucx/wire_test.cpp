// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#ifdef TOWPATH_HAS_UCX
#include "towpath/transport/ucx/wire.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace towpath::transport::ucx {
namespace {

os::KeyedDigest key_of(int number) {
  os::KeyedDigest key{};
  key.fill(static_cast<std::byte>(number));
  return key;
}

// Two ends of a wire in one process, and what each hears.
struct Ends {
  std::vector<std::unique_ptr<Wire>> wires;
  std::vector<std::vector<std::string>> heard{2};

  explicit Ends(const std::vector<os::KeyedDigest>& keys) {
    std::vector<std::vector<std::byte>> addresses;
    for (int end = 0; end < 2; ++end) {
      wires.push_back(std::make_unique<Wire>("lo"));
      wires.back()->admit(std::nullopt);
      addresses.push_back(wires.back()->address());
    }
    for (std::size_t end = 0; end < 2; ++end) {
      wires[end]->connect(
          static_cast<int>(end), addresses, keys[end],
          {.arrived = [this, end](Incoming& message) { hear(end, message); }, .lost = {}});
    }
  }
  void hear(std::size_t end, Incoming& message) {
    auto text = std::make_shared<std::string>(message.header().size_bytes, '\0');
    auto* const to = reinterpret_cast<std::byte*>(text->data());
    wires[end]->receive(message, to, [this, end, text] { heard[end].push_back(*text); });
  }
  // The text stays until it is sent.
  void send(std::size_t from, std::string_view text) {
    wires[from]->send(1 - static_cast<int>(from), {}, std::as_bytes(std::span(text)), {});
  }
  void pass_messages_for(std::chrono::milliseconds time, std::size_t until_heard) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end &&
           heard[0].size() + heard[1].size() < until_heard) {
      for (const auto& wire : wires) wire->progress();
    }
  }
};

TEST(UcxWire, MessagesOfTheJobAreHeardWhole) {
  Ends ends({key_of(1), key_of(1)});
  const std::string large(3 << 20, 'x');
  ends.send(0, "to 1");
  ends.send(1, "to 0");
  ends.send(0, large);
  ends.pass_messages_for(std::chrono::seconds(20), 3);
  EXPECT_EQ(ends.heard[0], std::vector<std::string>{"to 0"});
  ASSERT_EQ(ends.heard[1].size(), 2u);
  EXPECT_TRUE(ends.heard[1][0] == large || ends.heard[1][1] == large);
}

TEST(UcxWire, WhoDoesNotHaveTheKeyIsNotHeard) {
  Ends ends({key_of(1), key_of(2)});
  ends.send(0, "let me in");
  ends.send(1, "and me");
  ends.pass_messages_for(std::chrono::milliseconds(300), 1);
  EXPECT_TRUE(ends.heard[0].empty());
  EXPECT_TRUE(ends.heard[1].empty());
}

}  // namespace
}  // namespace towpath::transport::ucx
#endif
