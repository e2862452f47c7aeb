// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace towpath::virtual_gpu {

// The status of a process that stopped at a call that virtual GPUs do not answer.
inline constexpr int kStoppedStatus = 70;

// Prints "towpath: SENTENCE" to stderr and ends the process with kStoppedStatus. With a guess, a
// program would decide something that no GPU decides.
[[noreturn]] void stop(const std::string& sentence);

// The same in a signal handler. It cuts a sentence of more than 1,000 characters.
[[noreturn]] void stop_at_once(const char* sentence);

// `stop` with a sentence that names the call.
[[noreturn]] void stop_at_unknown(const char* call);

}  // namespace towpath::virtual_gpu
