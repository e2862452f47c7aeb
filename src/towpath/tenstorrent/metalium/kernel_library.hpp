// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "towpath/os/library_copy.hpp"
#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"

namespace towpath::tenstorrent::metalium {

// A copy of a compiled kernel in memory, with a copy of its global variables.
class KernelLibrary {
 public:
  // Throws std::runtime_error if the file cannot be loaded.
  explicit KernelLibrary(const std::filesystem::path& file);

  using Entry = void (*)(const TowpathCore*);
  Entry entry() const { return entry_; }
  // See os::LibraryCopy.
  std::vector<std::string> places_before(const void* address) const {
    return library_.places_before(address);
  }

 private:
  os::LibraryCopy library_;
  Entry entry_ = nullptr;
};

}  // namespace towpath::tenstorrent::metalium
