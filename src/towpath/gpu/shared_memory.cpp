// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/shared_memory.hpp"

namespace towpath::gpu {

void SharedMemory::allocate() {
  if (bytes_ != nullptr) return;
  capacity_ = kStaticBytes + dynamic_bytes_ + 2 * alignof(std::max_align_t) + 128;
  bytes_.reset(new std::byte[capacity_]);
  used_ = (128 - reinterpret_cast<std::uintptr_t>(bytes_.get()) % 128) % 128;
  variables_.push_back({nullptr, used_});
  used_ += (dynamic_bytes_ + 127) / 128 * 128;
}

void* SharedMemory::dynamic() {
  allocate();
  return bytes_.get() + variables_.front().offset;
}

void* SharedMemory::variable(const void* declaration, std::uint64_t size_bytes,
                             std::uint64_t alignment) {
  allocate();
  for (const Variable& variable : variables_) {
    if (variable.declaration == declaration) return bytes_.get() + variable.offset;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(bytes_.get());
  const std::uint64_t offset = (base + used_ + alignment - 1) / alignment * alignment - base;
  if (offset + size_bytes > capacity_) return nullptr;
  variables_.push_back({declaration, offset});
  used_ = offset + size_bytes;
  return bytes_.get() + offset;
}

}  // namespace towpath::gpu
