// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/sysmem_buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/pcie/dma_engine.hpp"

namespace towpath::pcie {

std::size_t SysmemBuffers::add(std::uint64_t size_bytes) {
  if (size_bytes == 0) throw std::invalid_argument("a buffer has 0 bytes; it must have at least 1");
  if (options_.host_memory_channels == 0) {
    throw std::invalid_argument(
        fmt::format("host '{}' has no memory for DMA by {}: it has 0 host memory channels, and "
                    "needs at least 1",
                    host_.name, chip_name_));
  }
  const std::optional<std::uint64_t> room = room_for(size_bytes);
  SysmemBuffer& buffer = buffers_.emplace_back();
  buffer.size_bytes = size_bytes;
  buffer.is_mapped = true;
  buffer.noc_address = room;
  buffer.map_time = map_time(host_, size_bytes);
  return buffers_.size() - 1;
}

std::size_t SysmemBuffers::allocate(std::uint64_t size_bytes) {
  if (!host_.memory.has_iommu && size_bytes > host_.page_bytes()) {
    throw std::invalid_argument(fmt::format(
        "a buffer of {} bytes is not contiguous for the device: host '{}' has no IOMMU, and its "
        "pages have {} bytes",
        size_bytes, host_.name, host_.page_bytes()));
  }
  const std::size_t number = add(size_bytes);
  if (options_.carries_data) at(number).bytes.resize(size_bytes);
  return number;
}

std::size_t SysmemBuffers::map(std::span<std::byte> memory) {
  if (!host_.memory.has_iommu) {
    throw std::invalid_argument(
        fmt::format("memory of a program cannot be mapped for the device: host '{}' has no IOMMU, "
                    "so allocate a buffer instead",
                    host_.name));
  }
  const std::size_t number = add(memory.size());
  at(number).programs_own = memory;
  return number;
}

Time SysmemBuffers::unmap(std::size_t number) {
  SysmemBuffer& buffer = at(number);
  if (!buffer.is_mapped) {
    throw std::invalid_argument(fmt::format("sysmem buffer {} is not mapped", number));
  }
  buffer.is_mapped = false;
  buffer.programs_own = {};
  return unmap_time(host_, buffer.size_bytes);
}

void SysmemBuffers::check(const BufferRange& range) {
  const auto& [number, offset, size_bytes] = range;
  const SysmemBuffer& buffer = at(number);
  if (!buffer.is_mapped) {
    throw std::invalid_argument(
        fmt::format("sysmem buffer {} is not mapped, so the device cannot reach it", number));
  }
  if (offset > buffer.size_bytes || size_bytes > buffer.size_bytes - offset) {
    throw std::invalid_argument(
        fmt::format("{} bytes at offset {} are beyond sysmem buffer {}, which has {}", size_bytes,
                    offset, number, buffer.size_bytes));
  }
}

SysmemBuffer& SysmemBuffers::at(std::size_t number) {
  if (number >= buffers_.size()) {
    throw std::invalid_argument(
        fmt::format("there is no sysmem buffer {}; {} were allocated", number, buffers_.size()));
  }
  return buffers_[number];
}

// The buffers visible to the chip's cores.
std::vector<const SysmemBuffer*> SysmemBuffers::by_address() const {
  std::vector<const SysmemBuffer*> seen;
  for (const SysmemBuffer& buffer : buffers_) {
    if (buffer.is_mapped && buffer.noc_address) seen.push_back(&buffer);
  }
  std::ranges::sort(seen, {}, [](const SysmemBuffer* buffer) { return *buffer->noc_address; });
  return seen;
}

std::optional<std::uint64_t> SysmemBuffers::room_for(std::uint64_t size_bytes) const {
  const std::uint64_t page = host_.page_bytes();
  std::uint64_t offset = 0;
  for (const SysmemBuffer* buffer : by_address()) {
    const std::uint64_t begin = *buffer->noc_address - first_;
    if (begin - offset >= size_bytes) break;
    offset = (begin + buffer->size_bytes + page - 1) / page * page;
  }
  if (offset > window_bytes_ || size_bytes > window_bytes_ - offset) return {};
  return first_ + offset;
}

SysmemBuffer* SysmemBuffers::find(std::uint64_t noc_address, std::uint64_t size_bytes) {
  for (SysmemBuffer& buffer : buffers_) {
    if (!buffer.is_mapped || !buffer.noc_address || noc_address < *buffer.noc_address) continue;
    const std::uint64_t offset = noc_address - *buffer.noc_address;
    if (offset <= buffer.size_bytes && size_bytes <= buffer.size_bytes - offset) return &buffer;
  }
  return nullptr;
}

std::string SysmemBuffers::describe() const {
  constexpr std::size_t kNamedMax = 4;
  const std::vector<const SysmemBuffer*> seen = by_address();
  if (window_bytes_ == 0) return "the chip's cores reach no memory of a host";
  if (seen.empty()) return "no buffer is mapped there";
  std::string text;
  for (std::size_t i = 0; i < std::min(seen.size(), kNamedMax); ++i) {
    const std::uint64_t first = *seen[i]->noc_address;
    text += fmt::format("{}{:#x} to {:#x}", i == 0 ? "mapped are " : ", ", first,
                        first + seen[i]->size_bytes - 1);
  }
  if (seen.size() > kNamedMax) text += fmt::format(" and {} more", seen.size() - kNamedMax);
  return text;
}

}  // namespace towpath::pcie
