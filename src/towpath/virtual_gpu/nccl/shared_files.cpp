// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// NCCL's files in /dev/shm as files without a name. The six letters at the end of a name have the
// process that made the file, and a peer finds it among the open files of that process. However the
// processes end, the files end with them.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

constexpr char kBegin[] = "/dev/shm/nccl-";
constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
constexpr std::size_t kLetterCount = 6;
constexpr int kBitsPerLetter = 6, kProcessBits = 22;  // PID_MAX_LIMIT of Linux
constexpr std::uint64_t kFilesMax = std::uint64_t{1}
                                    << (kLetterCount * kBitsPerLetter - kProcessBits);

bool is_shared(const char* path) { return std::strncmp(path, kBegin, sizeof kBegin - 1) == 0; }

std::string letters_of(std::uint64_t number) {
  std::string letters(kLetterCount, 'A');
  for (char& each : letters) {
    each = kLetters[number % 64];
    number /= 64;
  }
  return letters;
}

pid_t process_of(const std::string& path) {
  std::uint64_t number = 0;
  if (path.size() < kLetterCount) return 0;
  for (std::size_t i = 0; i < kLetterCount; ++i) {
    const char* const found = std::strchr(kLetters, path[path.size() - 1 - i]);
    if (found == nullptr) return 0;
    number = number * 64 + static_cast<std::uint64_t>(found - kLetters);
  }
  return static_cast<pid_t>(number / kFilesMax);
}

// The file of this name among the open files of a process. Empty if there is none.
std::string open_file_of(pid_t process, const std::string& path) {
  std::error_code error;
  const std::string wanted = "/memfd:" + path + " (deleted)";
  const std::filesystem::path folder = "/proc/" + std::to_string(process) + "/fd";
  // The process may end meanwhile.
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code is_closed;
    if (std::filesystem::read_symlink(each->path(), is_closed) == wanted) return each->path();
  }
  return {};
}

// A new file for a template that ends in XXXXXX, which it fills in. -1 on failure.
int make_file(char* pattern) {
  static std::atomic<std::uint64_t> last = 0;
  const std::size_t length = std::strlen(pattern);
  if (length < kLetterCount) {
    errno = EINVAL;
    return -1;
  }
  const auto process = static_cast<std::uint64_t>(getpid());
  for (std::uint64_t tries = 0; tries < kFilesMax; ++tries) {
    const std::uint64_t number = last++;
    const std::string letters = letters_of(process * kFilesMax + number % kFilesMax);
    std::memcpy(pattern + length - kLetterCount, letters.data(), kLetterCount);
    // An early file may still be open.
    if (number >= kFilesMax && !open_file_of(getpid(), pattern).empty()) continue;
    return memfd_create(pattern, MFD_CLOEXEC);
  }
  errno = EMFILE;
  return -1;
}

int open_any(const char* name, const char* path, int flags, mode_t mode) {
  const auto system_call =
      reinterpret_cast<int (*)(const char*, int, mode_t)>(dlsym(RTLD_NEXT, name));
  if (!is_shared(path)) return system_call(path, flags, mode);
  const std::string found = open_file_of(process_of(path), path);
  if (!found.empty()) return system_call(found.c_str(), flags & ~O_CREAT, mode);
  errno = ENOENT;
  return -1;
}

mode_t mode_of(int flags, std::va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int mkstemp(char* pattern) {
  if (is_shared(pattern)) return make_file(pattern);
  static const auto system_call = reinterpret_cast<int (*)(char*)>(dlsym(RTLD_NEXT, "mkstemp"));
  return system_call(pattern);
}

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any("open64", path, flags, mode);
}

int unlink(const char* path) noexcept {
  if (is_shared(path)) return 0;
  static const auto system_call =
      reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_NEXT, "unlink"));
  return system_call(path);
}

}  // extern "C"
