// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/compile_cache.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace towpath::os {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kPrime = 0x100000001b3;

fs::path root() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "towpath";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".cache" / "towpath";
  const passwd* const user = getpwuid(geteuid());
  if (user == nullptr || user->pw_dir == nullptr || *user->pw_dir != '/') {
    throw std::runtime_error(
        "there is no folder for compiled kernels; set XDG_CACHE_HOME or HOME to a folder");
  }
  return fs::path(user->pw_dir) / ".cache" / "towpath";
}

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void check_private(const fs::path& folder) {
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
      found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw std::runtime_error(
        fmt::format("the folder {} of compiled code can be written by other users; correct its "
                    "owner and mode, or name another folder in XDG_CACHE_HOME",
                    folder.string()));
  }
}

void Digest::add(std::string_view text) {
  for (const char character : text) {
    first_ = (first_ ^ static_cast<unsigned char>(character)) * kPrime;
    second_ = (second_ ^ static_cast<unsigned char>(character)) * kPrime + (second_ >> 29);
  }
  first_ = (first_ ^ text.size()) * kPrime;
  second_ = (second_ ^ text.size()) * kPrime;
}

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", first_, second_); }

std::string compiler() {
  const char* const chosen = std::getenv("CXX");
  return chosen != nullptr && *chosen != '\0' ? chosen : "g++";
}

std::string missing_compiler(const std::string& source) {
  return fmt::format(
      "{} is compiled when it is run, with '{}', which cannot be started; install g++ or name "
      "another compiler in CXX",
      source, compiler());
}

std::string compiler_identity() {
  const std::string name = compiler();
  const char* const path = std::getenv("PATH");
  std::istringstream folders(name.find('/') != std::string::npos ? ""
                             : path != nullptr                   ? path
                                                                 : "");
  fs::path file = name;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / name).c_str(), X_OK) != 0) continue;
    file = fs::path(folder) / name;
    break;
  }
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return name;
  return fmt::format("{} {} {}", file.string(), found.st_size, nanoseconds(found.st_mtim));
}

fs::path compile_cache(std::string_view kind) {
  const fs::path all = root();
  fs::path folder = all / kind;
  std::error_code error;
  fs::create_directories(all.parent_path(), error);
  for (const fs::path& made : {all, folder}) {
    if (!error && ::mkdir(made.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      error = {errno, std::generic_category()};
    }
  }
  if (error) {
    throw std::runtime_error(
        fmt::format("the folder {} of compiled kernels cannot be created: {}; name another folder "
                    "in XDG_CACHE_HOME",
                    folder.string(), error.message()));
  }
  check_private(all);
  check_private(folder);
  return folder;
}

void evict(const fs::path& folder, std::uint64_t bytes_most) {
  struct Entry {
    fs::file_time_type changed;
    std::uint64_t size_bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code gone;  // other processes also compile and evict
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, gone)) {
    if (!entry.is_regular_file(gone)) continue;
    entries.push_back({entry.last_write_time(gone), entry.file_size(gone), entry.path()});
    total += entries.back().size_bytes;
  }
  if (total <= bytes_most) return;
  std::ranges::sort(entries, {}, &Entry::changed);
  for (const Entry& entry : entries) {
    if (total <= bytes_most / 2) return;
    fs::remove(entry.path, gone);
    total -= entry.size_bytes;
  }
}

namespace {

std::string digest_of(const fs::path& path) {
  Digest digest;
  digest.add(read_file(path));
  return digest.hex();
}

}  // namespace

void Manifest::add(const fs::path& file) {
  text_ += fmt::format("{} {}\n", digest_of(file), file.string());
}

bool Manifest::is_current(const fs::path& manifest) {
  std::ifstream file(manifest);
  std::string line;
  bool has_lines = false;
  while (std::getline(file, line)) {
    constexpr std::size_t kDigestDigits = 32;
    if (line.size() < kDigestDigits + 2) return false;
    const fs::path path = line.substr(kDigestDigits + 1);
    std::error_code unreachable;
    if (!fs::exists(path, unreachable) || digest_of(path) != line.substr(0, kDigestDigits)) {
      return false;
    }
    has_lines = true;
  }
  return has_lines;
}

std::vector<fs::path> dependencies(const fs::path& rule) {
  std::string text = read_file(rule);
  text.erase(0, text.find(':') + 1);
  std::vector<fs::path> paths;
  std::string path;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool is_escaped = i + 1 < text.size() && text[i] == '\\';
    if (is_escaped && text[i + 1] == ' ') {
      path += text[++i];
    } else if (i == text.size() || text[i] == ' ' || text[i] == '\n' || text[i] == '\\') {
      if (!path.empty()) paths.emplace_back(path);
      path.clear();
    } else {
      path += text[i];
    }
  }
  return paths;
}

FileTime file_time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

bool has_changed_since(const fs::path& file, FileTime time) {
  constexpr FileTime kCoarse = 20'000'000;  // two ticks of the slowest kernels
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return true;
  return nanoseconds(found.st_ctim) >= time - kCoarse;
}

fs::path manifest_of(const fs::path& object) { return object.string() + ".deps"; }

void write_manifest(const fs::path& object, const std::vector<fs::path>& sources, FileTime begun) {
  Manifest manifest;
  manifest.add(object);
  for (const fs::path& source : sources) manifest.add(source);
  Scratch scratch;
  const fs::path& fresh = scratch.add(unfinished(object).string() + ".deps");
  write_file(fresh, manifest.text());
  fs::rename(fresh, manifest_of(object));
  const bool is_stale = std::ranges::any_of(
      sources, [begun](const fs::path& path) { return has_changed_since(path, begun); });
  if (is_stale) fs::remove(manifest_of(object));
}

Scratch::~Scratch() {
  std::error_code ignored;
  for (const fs::path& path : paths_) fs::remove_all(path, ignored);
}

const fs::path& Scratch::add(fs::path path) { return paths_.emplace_back(std::move(path)); }

fs::path unfinished(const fs::path& path) {
  static std::atomic<unsigned> number = 0;
  return fmt::format("{}.{}-{}", path.string(), getpid(), ++number);
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) {
    throw std::runtime_error(fmt::format(
        "{} cannot be written; name another folder for compiled kernels in XDG_CACHE_HOME",
        path.string()));
  }
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace towpath::os
