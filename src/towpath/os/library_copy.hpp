// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace towpath::os {

// A copy of a shared object, loaded from memory. Each copy has separate global variables and is
// unloaded with this object.
class LibraryCopy {
 public:
  // Throws std::runtime_error if the file cannot be read or loaded.
  explicit LibraryCopy(const std::filesystem::path& file);
  ~LibraryCopy();
  LibraryCopy(const LibraryCopy&) = delete;
  LibraryCopy& operator=(const LibraryCopy&) = delete;

  // An exported symbol; null if absent.
  void* symbol(const char* name) const;

  // FILE:LINE of the instruction before an address from debug information, innermost inlined call
  // first. Empty without debug information.
  std::vector<std::string> places_before(const void* address) const;

  // The addresses of its code and variables.
  struct Extent {
    std::uintptr_t begin = 0;
    std::uint64_t size_bytes = 0;
  };
  Extent extent() const;

  // The return addresses on this thread's stack that are in copies, innermost first.
  static std::vector<const void*> calls();

  // True if any copy contains the address.
  static bool has(const void* address);

 private:
  std::filesystem::path file_;
  void* handle_ = nullptr;
};

}  // namespace towpath::os
