// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Device code of a library that is compiled when it is first called, file by file. Its functions
// have stubs in the library, whose addresses the host part has.

namespace towpath::virtual_gpu {

// The function in whose place a stub stands. Null for other addresses.
void* code_of_stub(const void* stub);
// True while a file is being compiled, which may take a minute.
bool is_compiling_unit();

}  // namespace towpath::virtual_gpu
