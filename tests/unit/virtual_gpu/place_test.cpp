// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/place.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

TEST(Place, ANumberOfHostsThatIsNoneIsASentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("TOWPATH_HOSTS", "two", 1);
  EXPECT_EXIT(place_of_process(), testing::ExitedWithCode(kStoppedStatus),
              "TOWPATH_HOSTS is 'two'; it must be a number from 1 to");
  unsetenv("TOWPATH_HOSTS");
}

}  // namespace
}  // namespace towpath::virtual_gpu
