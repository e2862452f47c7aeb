// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

// Translates the extensions of a CUDA source into C++. The input is the output of the preprocessor,
// so that launches in macros and in headers are found. Every line keeps its number:
//   - a launch, `kernel<<<grid, block>>>(arguments)`, becomes a call of our launch();
//   - a `__shared__` variable becomes a reference into the block's shared memory;
//   - a `__global__` function is registered by its name, unless it is a template, and takes its
//     `__grid_constant__` parameters by reference;
//   - an asm statement with PTX becomes C++ (ptx_statement.hpp);
//   - main() becomes towpath_gpu_main();
//   - functions of our headers without a use are left out: there are thousands.

namespace towpath::gpu {

// `kernels` are additional kernel template instances to register: "ring<float>". Throws KernelError
// of kind compilation for a launch with invalid syntax. A program keeps its main() if it is linked
// and started as any other one.
std::string cpp_from_cuda(std::string_view preprocessed, const std::vector<std::string>& kernels,
                          bool keeps_main = false);

}  // namespace towpath::gpu
