// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/compile_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace towpath::os {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kPrime = 0x100000001b3;

fs::path root() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "towpath";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".cache" / "towpath";
  return fs::temp_directory_path() / fmt::format("towpath-{}", getuid());
}

}  // namespace

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

fs::path compile_cache(std::string_view kind) {
  fs::path folder = root() / kind;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw std::runtime_error(
        fmt::format("the folder {} of compiled kernels cannot be made: {}; "
                    "XDG_CACHE_HOME names another one",
                    folder.string(), error.message()));
  }
  return folder;
}

fs::path unfinished(const fs::path& path) {
  static std::atomic<unsigned> number = 0;
  return fmt::format("{}.{}-{}", path.string(), getpid(), ++number);
}

void write_file(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) {
    throw std::runtime_error(
        fmt::format("{} cannot be written; XDG_CACHE_HOME names another folder of compiled kernels",
                    path.string()));
  }
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace towpath::os
