// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers that the environment sets.

namespace towpath::virtual_gpu {

// The value of a variable, `otherwise` if it is not set. Stops the run if it is not a number from
// `least` to `most`.
int setting(const char* name, int least, int most, int otherwise);

// The time after which kernels that do not change anything are reported.
int deadline_s();

}  // namespace towpath::virtual_gpu
