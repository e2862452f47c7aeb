// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// A library of the program explains the waits of its kernels. It installs itself: no file of this
// folder names a library.

namespace towpath::virtual_gpu {

struct Library {
  // True for a kernel that does calls of the library.
  bool (*has_kernel)(const char* name) = nullptr;
  // The reason for which a thread of such a kernel polls a word, as a clause. The block's shared
  // memory is the current one. False if the word is not the library's.
  bool (*explain_poll)(const void* address, char* text, unsigned long size) = nullptr;
  // The calls that do not end and the ranks that they wait for, as clauses that begin with ": " or
  // "; ". Empty if there are none.
  std::string (*explain_calls)() = nullptr;
};

// The functions of the library. All are null without one.
Library& library();

inline bool is_of_library(const char* kernel) {
  return library().has_kernel != nullptr && library().has_kernel(kernel);
}

}  // namespace towpath::virtual_gpu
