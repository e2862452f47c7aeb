// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/base/invariant.hpp"

#include <gtest/gtest.h>

namespace towpath::sim {
namespace {

TEST(Invariant, ThrowsTheSentenceWhenBroken) {
  const int credits = -1;
  try {
    TOWPATH_CHECK(credits >= 0, "port {} has {} credits", 3, credits);
    FAIL() << "the check let it pass";
  } catch (const InvariantError& error) {
    EXPECT_STREQ(error.what(), "port 3 has -1 credits");
  }
}

TEST(Invariant, EvaluatesItsSentenceOnlyWhenBroken) {
  int evaluated = 0;
  TOWPATH_CHECK(true, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

}  // namespace
}  // namespace towpath::sim
