// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/shared_memory.hpp"

#include <algorithm>

namespace towpath::gpu {

namespace {

// A variable after a gap starts at a multiple of the widest access.
constexpr std::uint64_t kUnit = 16;

}  // namespace

void SharedMemory::allocate() {
  if (bytes_ != nullptr) return;
  capacity_ = kStaticBytes + kGapsMax * (kGapBytes + kUnit) + dynamic_bytes_ + 16 * kAlignment;
  bytes_.reset(new std::byte[capacity_]);
  // An access before the first variable is still inside the range.
  used_ = 2 * kAlignment - begin() % kAlignment;
  variables_.push_back({nullptr, used_, dynamic_bytes_, nullptr});
  used_ += (dynamic_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
}

void* SharedMemory::dynamic() {
  allocate();
  return bytes_.get() + variables_.front().offset;
}

void* SharedMemory::variable(const abi::SharedVariable& declared) {
  allocate();
  for (const Variable& variable : variables_) {
    if (variable.declaration == declared.key) return bytes_.get() + variable.offset;
  }
  static_bytes_ =
      (static_bytes_ + declared.alignment - 1) / declared.alignment * declared.alignment +
      declared.size_bytes;
  const bool has_gap = variables_.size() <= kGapsMax;
  const std::uint64_t unit = has_gap ? std::max(declared.alignment, kUnit) : declared.alignment;
  const std::uint64_t first = used_ + (has_gap ? kGapBytes : 0);
  const std::uint64_t offset = (begin() + first + unit - 1) / unit * unit - begin();
  if (static_bytes_ > kStaticBytes || offset + declared.size_bytes > capacity_) return nullptr;
  variables_.push_back({declared.key, offset, declared.size_bytes, declared.names});
  used_ = offset + declared.size_bytes;
  return bytes_.get() + offset;
}

abi::Range SharedMemory::around(std::uintptr_t address, std::uint64_t size_bytes) const {
  const std::uint64_t offset = address - begin();
  const auto found =
      std::find_if(variables_.begin(), variables_.end(), [&](const Variable& variable) {
        return offset >= variable.offset && size_bytes <= variable.size_bytes &&
               offset - variable.offset <= variable.size_bytes - size_bytes;
      });
  if (found == variables_.end()) return {};
  return {begin() + found->offset, found->size_bytes};
}

SharedMemory::Extent SharedMemory::nearest(std::uintptr_t address) const {
  const std::uint64_t offset = address - begin();
  const auto distance = [&](const Variable& variable) -> std::uint64_t {
    if (variable.size_bytes == 0) return UINT64_MAX;
    if (offset < variable.offset) return variable.offset - offset;
    const std::uint64_t end = variable.offset + variable.size_bytes;
    return offset < end ? 0 : offset - end;
  };
  const Variable& found = *std::min_element(
      variables_.begin(), variables_.end(),
      [&](const Variable& a, const Variable& b) { return distance(a) < distance(b); });
  return {begin() + found.offset, found.size_bytes,
          found.declaration == nullptr ? std::string("the launch's dynamic shared memory")
                                       : std::string("__shared__ ") + found.names};
}

}  // namespace towpath::gpu
