// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

// The stacks of the threads of kernels, and the change from one to another.

namespace towpath::virtual_gpu {

// Stacks of one operating-system thread. One that is given back is taken next, so that threads that
// end without waiting use the same one.
class Stacks {
 public:
  static constexpr std::size_t kBytes = 16 << 10;

  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();

  // Its lowest address.
  std::byte* take();
  void give_back(std::byte* stack);
  // False if a thread has used more than a stack. It has overwritten the word at the lowest
  // address.
  static bool is_intact(const std::byte* stack);

 private:
  void add_slab();

  std::vector<std::byte*> slabs_;
  std::vector<std::byte*> free_;
};

// The stack pointer with which a new thread starts in `body`, which must not return.
void* first_context(std::byte* stack, void (*body)());

}  // namespace towpath::virtual_gpu

// Saves the registers of the caller and its stack pointer in `from`, and continues at `to`.
extern "C" void towpath_change_stack(void** from, void* to);
