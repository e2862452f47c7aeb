// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "towpath/gpu/block.hpp"
#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/thread_stack.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::gpu {

namespace {

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::string call_of(const abi::Site& site, const Block& block) {
  return fmt::format("{} at {}:{} in {}", site.call, site.file, site.line, block.describe());
}

}  // namespace

Heap::Heap(transport::Transport& transport, const ThreadStack& stack, std::uint64_t heap_bytes)
    : transport_(transport), stack_(stack), rank_(transport.rank()) {
  constexpr std::uint64_t kWordsBytes = abi::kTeamsMax * abi::kWordsPerTeam * sizeof(std::uint64_t);
  const transport::Offset words = transport.allocate(kWordsBytes);
  words_ = transport.data(words);
  std::memset(words_, 0, kWordsBytes);
  allocations_.emplace(words, Size{kWordsBytes, words});
  find_heaps(heap_bytes);
}

std::byte* Heap::allocate(std::uint64_t size_bytes, std::uint64_t alignment) {
  const std::uint64_t more = alignment > transport::SymmetricHeap::kAlignment ? alignment : 0;
  const transport::Offset allocated = transport_.allocate(size_bytes + more + kGapBytes);
  const transport::Offset offset =
      more == 0 ? allocated : (allocated + alignment - 1) / alignment * alignment;
  allocations_.emplace(offset, Size{size_bytes, allocated});
  return transport_.data(offset);
}

Heap::Allocation Heap::allocation_at(const void* address) const {
  const auto found = contains(address) ? allocations_.find(offset_of(address)) : allocations_.end();
  if (found == allocations_.end()) {
    throw KernelError(KernelError::Kind::usage,
                      "nvshmem_free was given an address that nvshmem_malloc did not return");
  }
  return {found->first, found->second.size_bytes, found->second.allocated};
}

void Heap::release(const Allocation& allocation) {
  transport_.release(allocation.allocated);
  allocations_.erase(allocation.offset);
}

void Heap::register_buffer(const void* address, std::uint64_t size_bytes) {
  registered_[number_of(address)] = size_bytes;
  returned_.erase(number_of(address));
}

bool Heap::unregister_buffer(const void* address, const abi::Site& site) {
  const auto found = registered_.find(number_of(address));
  if (found == registered_.end()) return false;
  returned_[found->first] = {found->second, fmt::format("{}:{}", site.file, site.line)};
  registered_.erase(found);
  return true;
}

void Heap::unregister_all(const abi::Site& site) {
  for (const auto& [address, size_bytes] : registered_) {
    returned_[address] = {size_bytes, fmt::format("{}:{}", site.file, site.line)};
  }
  registered_.clear();
}

std::string Heap::returned_at(std::uintptr_t address, std::uint64_t size_bytes) const {
  const auto found = returned_.upper_bound(address);
  if (found == returned_.begin()) return {};
  const auto& [first, returned] = *std::prev(found);
  return address + size_bytes <= first + returned.size_bytes ? returned.place : std::string();
}

bool Heap::is_registered(std::uintptr_t address, std::uint64_t size_bytes) const {
  const auto found = registered_.upper_bound(address);
  if (found == registered_.begin()) return false;
  const auto& [first, registered_bytes] = *std::prev(found);
  return address + size_bytes <= first + registered_bytes;
}

bool Heap::contains(const void* address) const { return own().contains(number_of(address)); }

transport::Offset Heap::offset_of(const void* address) const {
  return number_of(address) - own().begin;
}

int Heap::owner_of(const void* address) const {
  const std::uintptr_t number = number_of(address);
  if (own().contains(number)) return rank_;
  for (std::size_t peer = 0; peer < heaps_.size(); ++peer) {
    if (heaps_[peer].contains(number)) return static_cast<int>(peer);
  }
  return transport::kNoPeer;
}

void Heap::find_heaps(std::uint64_t heap_bytes) {
  transport::RemoteMemory& remote = *transport_.remote_memory();
  heaps_.resize(static_cast<std::size_t>(transport_.ranks()));
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    const std::byte* const begin = peer == rank_ ? transport_.data(0) : remote.reach(peer, 0);
    if (begin == nullptr) continue;
    heaps_[static_cast<std::size_t>(peer)] = {number_of(begin), heap_bytes};
    const std::uintptr_t first =
        all_.size == 0 ? number_of(begin) : std::min(all_.begin, number_of(begin));
    const std::uintptr_t last = std::max(all_.begin + all_.size, number_of(begin) + heap_bytes);
    all_ = {first, last - first};
  }
}

void* Heap::reach(const void* address, int peer) const {
  if (peer < 0 || peer >= transport_.ranks() || !contains(address)) return nullptr;
  if (peer == rank_) return const_cast<void*>(address);
  return transport_.remote_memory()->reach(peer, offset_of(address));
}

std::uint64_t* Heap::team_words(int team) const {
  return reinterpret_cast<std::uint64_t*>(words_) +
         static_cast<unsigned>(team) * abi::kWordsPerTeam;
}

bool Heap::is_allocated(const void* address, std::uint64_t size_bytes) const {
  if (!contains(address)) return false;
  const transport::Offset offset = offset_of(address);
  auto found = allocations_.upper_bound(offset);
  if (found == allocations_.begin()) return false;
  --found;
  return offset + size_bytes <= found->first + found->second.size_bytes;
}

void Heap::check_remote(const abi::Access& access, const Block& block,
                        const abi::Site& site) const {
  if (access.peer < 0 || access.peer >= transport_.ranks()) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("{} names PE {}; it must be 0 to {}", call_of(site, block),
                                  access.peer, transport_.ranks() - 1));
  }
  const bool names_bytes = access.size_bytes > 0;
  if (names_bytes && !is_allocated(access.remote, access.size_bytes)) {
    throw KernelError(
        Hazard::unregistered_buffer,
        fmt::format("unregistered buffer: {} names {} bytes at a peer that are not symmetric; "
                    "allocate them with nvshmem_malloc on every PE",
                    call_of(site, block), access.size_bytes));
  }
  if (access.signal != abi::Signal::none && !is_allocated(access.signal_at, 8)) {
    throw KernelError(
        Hazard::unregistered_buffer,
        fmt::format("unregistered buffer: the signal of {} is not symmetric; allocate "
                    "it with nvshmem_malloc on every PE",
                    call_of(site, block)));
  }
}

void Heap::check_local(const abi::Access& access, const Block& block, const abi::Site& site) const {
  if (access.kind == abi::AccessKind::atomic || access.size_bytes == 0) return;
  const std::uintptr_t begin = number_of(access.local);
  // Temporaries of the library and values of single threads travel with the instruction.
  const bool is_private = stack_.contains(access.local) || access.size_bytes <= 8;
  if (is_private || is_allocated(access.local, access.size_bytes)) return;
  if (is_registered(begin, access.size_bytes)) return;
  const std::string place = returned_at(begin, access.size_bytes);
  if (!place.empty()) {
    throw KernelError(
        Hazard::unregistered_buffer,
        fmt::format("unregistered buffer: {} {} {} bytes of memory that was registered and that "
                    "nvshmemx_buffer_unregister at {} has given back; wait for the stream before",
                    call_of(site, block), access.kind == abi::AccessKind::put ? "sends" : "fills",
                    access.size_bytes, place));
  }
  throw KernelError(
      Hazard::unregistered_buffer,
      fmt::format("unregistered buffer: {} {} {} bytes of memory that is neither symmetric nor "
                  "registered; call nvshmemx_buffer_register first",
                  call_of(site, block), access.kind == abi::AccessKind::put ? "sends" : "fills",
                  access.size_bytes));
}

}  // namespace towpath::gpu
