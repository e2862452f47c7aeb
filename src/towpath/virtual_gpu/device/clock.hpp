// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The time that a program reads. It is real unless $TOWPATH_TIMES names a server of simulated times
// (`times.hpp`). Simulated time passes only in streams, and the program reaches it when it waits.

namespace towpath::virtual_gpu {

bool is_time_simulated();

// Now, for the program.
std::int64_t now_ns();
// The same for a program that reads its clock, which takes time.
std::int64_t read_clock_ns();
// The program has waited for work that ended then.
void reach(std::int64_t time_ns);
// This thread has asked for work that has not ended. It waits for that work, so that its next read
// of the clock takes no time.
void note_poll();

// The functions of the C library that read clocks and sleep use real time in this thread, or no
// longer. Returns whether they did so before.
bool read_real_time(bool is_real = true);
bool reads_real_time();

}  // namespace towpath::virtual_gpu
