// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/connect.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace towpath::live {
namespace {

TEST(LiveConnect, JoinsByTheNameOfATransport) {
  ASSERT_FALSE(names().empty());
  for (const std::string_view name : names()) {
    const std::string job = "alone-" + std::to_string(::getpid());
    const auto transport = connect(name, {.rendezvous = job, .rank = 0, .ranks = 1});
    EXPECT_EQ(transport->ranks(), 1) << name;
    transport->barrier(Time::from_seconds(10));
  }
}

TEST(LiveConnect, RefusesAnUnknownNameWithThoseThatExist) {
  for (const std::string name : {"", "shmem", "SHM"}) {
    try {
      connect(name, {.rendezvous = "x", .rank = 0, .ranks = 1});
      ADD_FAILURE() << "'" << name << "' is accepted";
    } catch (const std::invalid_argument& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find("'" + name + "'"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find("choose one of shm"), std::string::npos) << sentence;
    }
  }
}

}  // namespace
}  // namespace towpath::live
