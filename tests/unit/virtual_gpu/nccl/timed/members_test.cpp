// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/nccl/timed/members.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

TEST(Members, AbsentRanksOfAllProcessesAreNamed) {
  const int file = memfd_create("members", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 1 << 20), 0);
  setenv("TOWPATH_MEMBERS", ("/proc/self/fd/" + std::to_string(file)).c_str(), 1);
  const auto call = [](int rank, int calls) {
    join(1234, rank, 5);
    for (int i = 0; i < calls; ++i) count_call(1234, rank);
  };
  call(0, 3);
  EXPECT_NE(absent_members().find("rank 4 of 5 has not entered the communicator"),
            std::string::npos);
  const auto in_a_process = [](auto action) {
    const pid_t child = fork();
    if (child == 0) {
      action();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    return std::to_string(child);
  };
  const std::string ended = in_a_process([&] { call(1, 3); });
  const std::string left = in_a_process([&] {
    call(2, 0);
    leave(1234, 2);
  });
  call(3, 2);
  call(4, 3);
  // Of another communicator, in which no rank of this process is.
  in_a_process([] { join(99, 0, 2); });
  EXPECT_EQ(absent_members(), "\n  rank 1 (process " + ended +
                                  ") has ended"
                                  "\n  rank 2 (process " +
                                  left +
                                  ") has left the communicator"
                                  "\n  rank 3 (process " +
                                  std::to_string(getpid()) + ") has entered 2 of 3 calls");
  for (const int rank : {0, 3, 4}) leave(1234, rank);
  EXPECT_EQ(absent_members(), "");
  // A rank that was refused has not entered. Its entry is free again, with no calls.
  join(5, 0, 2);
  join(5, 1, 2);
  count_call(5, 1);
  withdraw(5, 1);
  EXPECT_EQ(absent_members(), "\n  rank 1 of 2 has not entered the communicator");
  join(5, 1, 2);
  EXPECT_EQ(absent_members(), "");
  close(file);
  EXPECT_EXIT(for (;;) join(6, 0, 2), testing::ExitedWithCode(kStoppedStatus),
              "the communicators of this run have more than [0-9]+ ranks in all");
}

}  // namespace
}  // namespace towpath::virtual_gpu
