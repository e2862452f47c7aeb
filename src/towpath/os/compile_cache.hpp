// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

// The message about a source whose compiler cannot be started.
std::string compiler();

// The sentence about a source whose compiler cannot be started.
std::string missing_compiler(const std::string& source);

// The compiler's file, size and modification time, which differ between versions.
std::string compiler_identity();

// The user's cache folder for one kind of output: $XDG_CACHE_HOME/towpath/KIND, or
// .cache/towpath/KIND in $HOME, or in the home of the user database. Creates it, for only this
// user. Throws std::runtime_error on failure, or if another user owns the folder or may write to
// it, because its contents are executed.
std::filesystem::path compile_cache(std::string_view kind);
// Throws std::runtime_error unless only this user can write to a folder.
void check_private(const std::filesystem::path& folder);

// If a cache folder has more than `bytes_most`, removes the entries that have been unchanged for
// the longest time, until half of that is left.
void evict(const std::filesystem::path& folder, std::uint64_t bytes_most = 2ULL << 30);

// The content of files at one moment, in lines of digest and path.
class Manifest {
 public:
  void add(const std::filesystem::path& file);
  const std::string& text() const { return text_; }
  // True if every file of a written manifest is unchanged. False without files.
  static bool is_current(const std::filesystem::path& manifest);

 private:
  std::string text_;
};

// The files that the compiler read, in the make rule that -MD writes.
std::vector<std::filesystem::path> dependencies(const std::filesystem::path& rule);

// True if a file, or its name, was changed after a time. A compiler that started at that time may
// have read other content. Changes up to 20 ms before also count, because the clock of files is
// coarse.
using FileTime = std::int64_t;  // nanoseconds since 1970
FileTime file_time_now();
bool has_changed_since(const std::filesystem::path& file, FileTime time);

std::filesystem::path manifest_of(const std::filesystem::path& object);
// Writes the manifest of an object and its sources next to the object. Writes none if a source has
// changed since the compiler started: the next run then compiles again.
void write_manifest(const std::filesystem::path& object,
                    const std::vector<std::filesystem::path>& sources, FileTime begun);

// Removes files and folders at the end of its lifetime.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& add(std::filesystem::path path);

 private:
  std::deque<std::filesystem::path> paths_;
};

// A unique name next to `path`, across processes and threads, for a file that is renamed on
// completion.
std::filesystem::path unfinished(const std::filesystem::path& path);

// Throws std::runtime_error on a failed or partial write.
void write_file(const std::filesystem::path& path, std::string_view text);

// Empty if the file does not exist.
std::string read_file(const std::filesystem::path& path);

}  // namespace towpath::os
