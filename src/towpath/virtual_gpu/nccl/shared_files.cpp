// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Files in /dev/shm as files without a name. The ranks of a node are threads of one process, so
// that a name needs to be known only here. However the process ends, its files end with it.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr char kFolder[] = "/dev/shm/";

class SharedFiles {
 public:
  // A new file for a template that ends in XXXXXX, which it fills in. -1 on failure.
  int make(char* pattern) {
    const std::size_t length = std::strlen(pattern);
    if (length < 6) return -1;
    const std::scoped_lock lock(mutex_);
    char number[7];
    std::snprintf(number, sizeof number, "%06u", ++last_ % 1000000);
    std::memcpy(pattern + length - 6, number, 6);
    return add(pattern);
  }
  int open(const std::string& path, bool may_create) {
    const std::scoped_lock lock(mutex_);
    const auto found = files_.find(path);
    if (found != files_.end()) return fcntl(found->second, F_DUPFD_CLOEXEC, 0);
    if (may_create) return add(path);
    errno = ENOENT;
    return -1;
  }
  // Descriptors of it stay open.
  int remove(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const auto found = files_.find(path);
    if (found == files_.end()) {
      errno = ENOENT;
      return -1;
    }
    close(found->second);
    files_.erase(found);
    return 0;
  }

 private:
  int add(const std::string& path) {
    const int file = memfd_create(path.c_str(), MFD_CLOEXEC);
    if (file < 0) return -1;
    files_[path] = file;
    return fcntl(file, F_DUPFD_CLOEXEC, 0);
  }

  std::mutex mutex_;
  unsigned last_ = 0;
  std::map<std::string, int> files_;
};

SharedFiles& shared_files() {
  static SharedFiles* const only = new SharedFiles;
  return *only;
}

bool is_shared(const char* path) { return std::strncmp(path, kFolder, sizeof kFolder - 1) == 0; }

int open_any(const char* name, const char* path, int flags, mode_t mode) {
  if (is_shared(path)) return shared_files().open(path, (flags & O_CREAT) != 0);
  const auto system_call =
      reinterpret_cast<int (*)(const char*, int, mode_t)>(dlsym(RTLD_NEXT, name));
  return system_call(path, flags, mode);
}

mode_t mode_of(int flags, std::va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int mkstemp(char* pattern) {
  if (is_shared(pattern)) return shared_files().make(pattern);
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
  if (is_shared(path)) return shared_files().remove(path);
  static const auto system_call =
      reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_NEXT, "unlink"));
  return system_call(path);
}

}  // extern "C"
