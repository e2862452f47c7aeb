// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Functions of the C library for a program on virtual GPUs: libraries that exist only as a part of
// the program, processors that this host does not have, threads that spin on too few cores, and
// large memory that is set to zero.

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "towpath/virtual_gpu/device/stop.hpp"
#include "towpath/virtual_gpu/place.hpp"
#include "towpath/virtual_gpu/system.hpp"

namespace {

// Sixteen ranks initialize in a third of the time that they need if they spin on two processors.
constexpr long kPauseNs = 50'000;

// Not measured: the search of the memory takes less than setting this much to zero.
constexpr size_t kLargeBytes = 64 << 10;

void* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) towpath::virtual_gpu::stop(std::string("the C library has no ") + name);
  return found;
}

void pause_shortly() {
  // Not nanosleep, which moves the simulated time of a program.
  const timespec time{0, kPauseNs};
  syscall(SYS_nanosleep, &time, nullptr);
}

bool is_part_of_program(const char* name) {
  return std::strstr(name, "libnvidia-ml") != nullptr || std::strcmp(name, "libnccl-net.so") == 0 ||
         std::strcmp(name, "librccl-net.so") == 0;
}

// Libraries of this host's hardware, which would add adapters to the described ones.
bool is_of_host(const char* name) {
  return std::strstr(name, "libibverbs") != nullptr || std::strstr(name, "libmlx5") != nullptr ||
         std::strstr(name, "libgdrapi") != nullptr || std::strstr(name, "libcuda") != nullptr;
}

}  // namespace

extern "C" {

void* dlopen(const char* name, int mode) noexcept(noexcept(::dlopen(name, mode))) {
  static const auto system_call = reinterpret_cast<void* (*)(const char*, int)>(next("dlopen"));
  if (name != nullptr && is_part_of_program(name)) return system_call(nullptr, mode);
  if (name != nullptr && is_of_host(name)) {
    return system_call("a library of the described host, which does not exist here", mode);
  }
  return system_call(name, mode);
}

// The described host has other processors than this one, with other numbers.
int sched_setaffinity(pid_t, size_t, const cpu_set_t*) noexcept { return 0; }

// Described hosts have names of their own, from which NCCL and its tests have the ranks of a host.
int gethostname(char* name, size_t size) noexcept {
  using namespace towpath::virtual_gpu;
  utsname own{};
  if (uname(&own) != 0) return -1;
  std::string text = own.nodename;
  if (place_of_process().hosts > 1) text += "-" + std::to_string(place_of_process().host);
  if (text.size() >= size) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(name, text.c_str(), text.size() + 1);
  return 0;
}

// NCCL sets its host memory to zero when it is new, 32 MiB for each rank in some releases. Pages
// that are given back are zero and take no memory. The linker gives NCCL this function.
void* __real_memset(void* address, int value, size_t size);
void* __wrap_memset(void* address, int value, size_t size) {
  if (value != 0 || size < kLargeBytes) return __real_memset(address, value, size);
  auto& memory = towpath::virtual_gpu::system().memory();
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto found = memory.find(number);
  if (!found || found->handle == 0) return __real_memset(address, value, size);
  memory.clear(number, size);
  return address;
}

int sched_yield() noexcept {
  pause_shortly();
  return 0;
}

ssize_t recv(int socket, void* data, size_t size, int flags) {
  static const auto system_call =
      reinterpret_cast<ssize_t (*)(int, void*, size_t, int)>(next("recv"));
  const ssize_t received = system_call(socket, data, size, flags);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    pause_shortly();
    errno = EAGAIN;
  }
  return received;
}

int accept(int socket, sockaddr* address, socklen_t* size) {
  static const auto system_call =
      reinterpret_cast<int (*)(int, sockaddr*, socklen_t*)>(next("accept"));
  const int accepted = system_call(socket, address, size);
  if (accepted < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    pause_shortly();
    errno = EAGAIN;
  }
  return accepted;
}

// The file gets its length. Space is not set aside before it is used.
int posix_fallocate(int file, off_t offset, off_t size) {
  struct stat state;
  if (fstat(file, &state) != 0) return errno;
  if (state.st_size >= offset + size) return 0;
  return ftruncate(file, offset + size) == 0 ? 0 : errno;
}
int fallocate(int file, int mode, off_t offset, off_t size) {
  if (mode != 0) towpath::virtual_gpu::stop_at_unknown("fallocate with a mode");
  errno = posix_fallocate(file, offset, size);
  return errno == 0 ? 0 : -1;
}
int fallocate64(int file, int mode, off64_t offset, off64_t size) {
  return fallocate(file, mode, offset, size);
}

}  // extern "C"
