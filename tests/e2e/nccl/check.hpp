// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <source_location>

// Ends the program with the line of a call of NCCL that fails.
inline void check(ncclResult_t result,
                  std::source_location where = std::source_location::current()) {
  if (result == ncclSuccess) return;
  std::printf("%s:%u: %s\n", where.file_name(), static_cast<unsigned>(where.line()),
              ncclGetErrorString(result));
  std::fflush(stdout);
  std::_Exit(2);
}
