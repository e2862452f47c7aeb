// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace towpath::os {

// A copy of a shared object, loaded from memory: it has global variables of its own, however often
// the same file is loaded, and is gone with this object.
class LibraryCopy {
 public:
  // Throws std::runtime_error when the file cannot be read or loaded.
  explicit LibraryCopy(const std::filesystem::path& file);
  ~LibraryCopy();
  LibraryCopy(const LibraryCopy&) = delete;
  LibraryCopy& operator=(const LibraryCopy&) = delete;

  // What it exports under a name; null if nothing.
  void* symbol(const char* name) const;

  // FILE:LINE of the instruction before an address, innermost call first, as its debug information
  // says; empty without any.
  std::vector<std::string> places_before(const void* address) const;

  // Whether an address lies in some copy.
  static bool has(const void* address);

 private:
  std::filesystem::path file_;
  void* handle_ = nullptr;
};

}  // namespace towpath::os
