// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/stack_pool.hpp"

#include <fmt/format.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "towpath/base/index.hpp"

namespace towpath::sim {

namespace {

constexpr std::size_t kSlabStacks = 16;

// Stacks start at different lines of their first page. Otherwise the lines that a switch uses would
// compete for the same cache sets. The fiber aligns its record to 256 bytes, hence the step. 15 is
// coprime to the 8 or 16 positions of a page in the cache.
constexpr std::size_t kColours = 15;
constexpr std::size_t kColourBytes = 256;

std::size_t page_bytes() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Linux 6.13 guards a page without splitting its mapping. A process is limited to 65,530 mappings.
constexpr int kGuardInstall = 102;  // MADV_GUARD_INSTALL

bool guard(void* page) {
  return madvise(page, page_bytes(), kGuardInstall) == 0 ||
         mprotect(page, page_bytes(), PROT_NONE) == 0;
}

}  // namespace

StackPool::~StackPool() {
  for (const Slab& slab : slabs_) munmap(slab.address, slab.size_bytes);
}

boost::context::stack_context StackPool::acquire(std::size_t size_bytes) {
  Shelf& shelf = shelf_for(round_up(size_bytes + kColours * kColourBytes, page_bytes()));
  if (shelf.free.empty()) map_slab(shelf);
  const boost::context::stack_context stack = shelf.free.back();
  shelf.free.pop_back();
  return stack;
}

// Frames that a finished fiber never returned from are still poisoned for the sanitizer.
void StackPool::release(const boost::context::stack_context& stack) {
  ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(stack.sp) - stack.size, stack.size);
  shelf_for(round_up(stack.size, page_bytes())).free.push_back(stack);
}

StackPool::Shelf& StackPool::shelf_for(std::size_t stack_bytes) {
  for (Shelf& shelf : shelves_) {
    if (shelf.stack_bytes == stack_bytes) return shelf;
  }
  return shelves_.emplace_back(Shelf{stack_bytes, 0, {}});
}

void StackPool::map_slab(Shelf& shelf) {
  const std::size_t stride = page_bytes() + shelf.stack_bytes;
  const std::size_t size_bytes = kSlabStacks * stride;
  void* const address = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    throw std::runtime_error(fmt::format(
        "cannot map {} process stacks of {} bytes after {} stacks: {}; use fewer processes or "
        "smaller stacks",
        kSlabStacks, shelf.stack_bytes, shelf.stacks, std::strerror(errno)));
  }
  slabs_.push_back({address, size_bytes});
  for (std::size_t i = 0; i < kSlabStacks; ++i) {
    char* const bottom = static_cast<char*>(address) + i * stride;
    if (!guard(bottom)) {
      throw std::runtime_error(fmt::format(
          "cannot guard the stack of process {}: {}; use fewer processes or raise the system's "
          "limit vm.max_map_count",
          shelf.stacks, std::strerror(errno)));
    }
    const std::size_t colour = shelf.stacks++ % kColours * kColourBytes;
    boost::context::stack_context stack;
    stack.sp = bottom + stride - colour;
    stack.size = shelf.stack_bytes - colour;
    shelf.free.push_back(stack);
  }
  std::reverse(shelf.free.end() - kSlabStacks, shelf.free.end());
}

}  // namespace towpath::sim
