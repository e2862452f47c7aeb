// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/transports.hpp"
#include "towpath/transport/transport.hpp"

// What the cases of the suite share. A body runs once per rank, in a process of its own or as one
// of many in a simulation: it uses the contract and nothing else, shares nothing with other ranks,
// and reports by throwing.

namespace towpath::conformance {

using namespace towpath::literals;
using transport::Comparison;
using transport::kNoPeer;
using transport::Move;
using transport::Offset;
using transport::Signal;
using transport::SignalOperation;
using transport::SignalWait;
using transport::Transport;
using transport::TransportError;

inline constexpr Time kTimeout = Time::from_seconds(30);

template <class A, class B>
void check_equal(const A& actual, const B& expected, const char* expression, std::string_view file,
                 int line) {
  if (actual == expected) return;
  throw std::runtime_error(fmt::format("{}:{}: {} is {}, not {}", file.substr(file.rfind('/') + 1),
                                       line, expression, actual, expected));
}

#define CHECK_EQUAL(actual, expected) \
  ::towpath::conformance::check_equal(actual, expected, #actual, __FILE__, __LINE__)
#define CHECK(condition) \
  ::towpath::conformance::check_equal(condition, true, #condition, __FILE__, __LINE__)

class TransportConformance : public testing::TestWithParam<TransportUnderTest> {
 protected:
  std::vector<std::string> outcomes(int ranks, const Body& body) const {
    return GetParam().run(ranks, body);
  }

  void expect_success(int ranks, const Body& body) const {
    const std::vector<std::string> ended = outcomes(ranks, body);
    for (std::size_t rank = 0; rank < ended.size(); ++rank) {
      EXPECT_EQ(ended[rank], "") << "on rank " << rank << " of " << ranks;
    }
  }
};

#define INSTANTIATE_FOR_EACH_TRANSPORT(suite)                            \
  INSTANTIATE_TEST_SUITE_P(Each, suite, testing::ValuesIn(transports()), \
                           [](const auto& info) { return info.param.name; })

inline int next_rank(const Transport& t) { return (t.rank() + 1) % t.ranks(); }
inline int previous_rank(const Transport& t) { return (t.rank() + t.ranks() - 1) % t.ranks(); }

// Bytes that tell from whom they are, and which they are.
inline std::byte pattern(std::uint64_t seed, std::uint64_t index) {
  return static_cast<std::byte>((seed * 0x9e3779b97f4a7c15 + index * 0xbf58476d1ce4e5b9) >> 56);
}

inline std::vector<std::byte> patterned(std::uint64_t seed, std::uint64_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::uint64_t i = 0; i < size_bytes; ++i) bytes[i] = pattern(seed, i);
  return bytes;
}

inline bool is_patterned(const std::byte* bytes, std::uint64_t seed, std::uint64_t size_bytes) {
  const std::vector<std::byte> expected = patterned(seed, size_bytes);
  return size_bytes == 0 || std::memcmp(bytes, expected.data(), size_bytes) == 0;
}

// Raises a signal without a payload.
inline void raise_signal(Transport& t, int peer, Signal signal, std::uint64_t value = 1,
                         SignalOperation operation = SignalOperation::set) {
  t.put_signal(peer, 0, {}, {signal, value, operation}, kTimeout);
}

// The error that `call` throws; anything else is a failure of the case.
template <class Call>
TransportError error_of(const Call& call) {
  try {
    call();
  } catch (const TransportError& error) {
    return error;
  }
  throw std::runtime_error("no TransportError was thrown");
}

inline bool mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace towpath::conformance
