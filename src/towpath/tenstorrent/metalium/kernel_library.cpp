// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_library.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace towpath::tenstorrent::metalium {

KernelLibrary::KernelLibrary(const std::filesystem::path& file)
    : library_(file), entry_(reinterpret_cast<Entry>(library_.symbol("towpath_kernel_entry"))) {
  if (entry_ == nullptr) {
    throw std::runtime_error(fmt::format("{} is not a compiled kernel", file.string()));
  }
}

}  // namespace towpath::tenstorrent::metalium
