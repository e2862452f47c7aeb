// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/l1_window.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace towpath::tenstorrent::metalium {

namespace {

// The addresses belong to the process, and so does their lock.
std::recursive_mutex window_mutex;

bool map(std::uintptr_t begin, std::size_t size_bytes) {
  void* const wanted = reinterpret_cast<void*>(begin);
  void* const mapped = mmap(wanted, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == wanted) return true;
  if (mapped != MAP_FAILED) munmap(mapped, size_bytes);
  return false;
}

// The first address that could be mapped. Page 0 is excluded, so that null pointers still fault.
std::uintptr_t map_window() {
  for (const std::uintptr_t begin : {std::uintptr_t{0x1000}, std::uintptr_t{0x10000}}) {
    if (!map(begin, L1Window::kL1End - begin)) continue;
    if (map(L1Window::kRegisterBase, L1Window::kRegisterBytes)) return begin;
    munmap(reinterpret_cast<void*>(begin), L1Window::kL1End - begin);
    break;
  }
  throw std::runtime_error(
      fmt::format("kernels in source form need the addresses from 0x10000 to {:#x} and from {:#x}, "
                  "and this process cannot map them: {}",
                  L1Window::kL1End, L1Window::kRegisterBase, std::strerror(errno)));
}

}  // namespace

std::uintptr_t L1Window::l1_begin() {
  static const std::uintptr_t begin = map_window();
  return begin;
}

L1Window::L1Window() {
  static_cast<void>(l1_begin());
  window_mutex.lock();
}

L1Window::~L1Window() { window_mutex.unlock(); }

}  // namespace towpath::tenstorrent::metalium
