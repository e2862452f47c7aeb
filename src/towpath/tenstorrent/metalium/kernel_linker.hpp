// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace towpath::tenstorrent::metalium {

// The parts of a kernel's shared object.
struct KernelParts {
  std::string compiler;
  std::string kernel;  // its name in errors
  std::filesystem::path object;
  std::filesystem::path support;  // the object of towpath_support.h
};

// Links a kernel without the libraries of the host, except for mathematics. Throws
// std::invalid_argument with the function and its line if the kernel uses a function that no core
// has, such as exit, malloc or fork, or one that it does not define.
void link_kernel(const KernelParts& parts, const std::filesystem::path& library);

}  // namespace towpath::tenstorrent::metalium
