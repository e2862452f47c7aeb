// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// A cache of compiler output, keyed by a digest of all inputs.

namespace towpath::os {

// FNV-1a with 64 bits, twice with different seeds. Includes lengths, so concatenated texts differ.
class Digest {
 public:
  void add(std::string_view text);
  std::string hex() const;

 private:
  std::uint64_t first_ = 0xcbf29ce484222325;
  std::uint64_t second_ = 0x9e3779b97f4a7c15;
};

// $CXX, or g++.
std::string compiler();

// The user's cache folder for one kind of output: $XDG_CACHE_HOME/towpath/KIND, or
// ~/.cache/towpath/KIND, or a folder of this user in the system's temporary folder. Creates it.
// Throws std::runtime_error on failure.
std::filesystem::path compile_cache(std::string_view kind);

// A unique name next to `path`, across processes and threads, for a file that is renamed on
// completion.
std::filesystem::path unfinished(const std::filesystem::path& path);

// Throws std::runtime_error on a failed or partial write.
void write_file(const std::filesystem::path& path, std::string_view text);

// Empty if the file does not exist.
std::string read_file(const std::filesystem::path& path);

}  // namespace towpath::os
