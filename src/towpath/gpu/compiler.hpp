// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

// Compiles CUDA sources for this host with g++, once: objects are kept in
// $XDG_CACHE_HOME/towpath under a hash of the source's path and the options, with the digests of
// all files that the compiler read.

namespace towpath::gpu {

struct CompileOptions {
  std::filesystem::path include;  // our headers, or those of this source tree or install if empty
  std::vector<std::string> kernels;  // kernel template instances that are launched by name
  std::vector<std::string> flags;    // from the user: -I, -D
  bool counts_accesses = true;       // instruments each load and store, for simulated time
};

// The folder with cuda_runtime.h and nvshmem.h, from TOWPATH_GPU_INCLUDE or this library.
std::filesystem::path default_include();

// The object's file. Throws KernelError, of kind compilation, with the compiler's message.
std::filesystem::path compile(const std::string& source, const CompileOptions& options);

}  // namespace towpath::gpu
