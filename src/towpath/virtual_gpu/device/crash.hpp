// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Accesses of kernels to addresses without memory, and stacks that are too small: sentences instead
// of a signal.

namespace towpath::virtual_gpu {

// The process ends with a sentence if a kernel gets SIGSEGV or SIGBUS.
void explain_crashes();
// Signals of this operating-system thread have another stack. A kernel's may be full.
void use_own_stack_for_signals();

}  // namespace towpath::virtual_gpu
