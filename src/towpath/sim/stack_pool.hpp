// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <vector>

namespace towpath::sim {

// Stacks for processes, mapped in batches and reused. A guard page below each stack turns an
// overflow into SIGSEGV instead of corruption of the neighbour.
class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // At least `size_bytes`. Throws std::runtime_error if the system maps no more memory.
  boost::context::stack_context acquire(std::size_t size_bytes);
  void release(const boost::context::stack_context& stack);

 private:
  struct Shelf {
    std::size_t stack_bytes;  // whole pages
    std::size_t stacks = 0;   // mapped so far
    std::vector<boost::context::stack_context> free;
  };
  struct Slab {
    void* address;
    std::size_t size_bytes;
  };

  Shelf& shelf_for(std::size_t stack_bytes);
  void map_slab(Shelf& shelf);

  std::vector<Shelf> shelves_;
  std::vector<Slab> slabs_;
};

}  // namespace towpath::sim
