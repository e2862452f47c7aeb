// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// What is compiled at run time, and where it is kept: by a digest of all that it was made from.

namespace towpath::os {

// FNV-1a of 64 bits, twice with different beginnings; texts do not run into each other.
class Digest {
 public:
  void add(std::string_view text);
  std::string hex() const;

 private:
  std::uint64_t first_ = 0xcbf29ce484222325;
  std::uint64_t second_ = 0x9e3779b97f4a7c15;
};

// The system's compiler: $CXX, or g++.
std::string compiler();

// The user's folder of what is compiled of one kind: $XDG_CACHE_HOME/towpath/KIND, or
// ~/.cache/towpath/KIND; without both, one of the user's in the system's temporary folder. Makes
// it. Throws std::runtime_error where it cannot be made.
std::filesystem::path compile_cache(std::string_view kind);

// A name beside `path` that no other process or thread uses, for a file that is renamed when it is
// complete.
std::filesystem::path unfinished(const std::filesystem::path& path);

// Throws std::runtime_error where the file cannot be written to its end.
void write_file(const std::filesystem::path& path, std::string_view text);

// Empty if there is none.
std::string read_file(const std::filesystem::path& path);

}  // namespace towpath::os
