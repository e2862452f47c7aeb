// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace towpath::tenstorrent::metalium {

// A header for kernels, with its include path.
struct KernelHeader {
  std::string_view path;
  std::string_view text;
};

// All headers. cmake/kernel_headers.cmake generates a source file from kernel_include/.
std::span<const KernelHeader> kernel_headers();

// Prefix of their folder's name in the cache.
constexpr std::string_view kHeaderFolder = "towpath-headers-";

}  // namespace towpath::tenstorrent::metalium
