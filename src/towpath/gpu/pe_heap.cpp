// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// The symmetric heap of a PE, and which memory its transfers may name.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::string call_of(const abi::Site& site, const Block& block) {
  return fmt::format("{} at {}:{} in {}", site.call, site.file, site.line, block.describe());
}

}  // namespace

void Pe::initialize(int rank, int ranks, const abi::Site& site) {
  if (is_initialized_) return;
  if (ranks >= 0 && (rank != this->rank() || ranks != transport_.ranks())) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("{} at {}:{} names PE {} of {}, but this process is PE {} of {}; "
                                  "give the rank that the launcher gave it",
                                  site.call, site.file, site.line, rank, ranks, this->rank(),
                                  transport_.ranks()));
  }
  is_initialized_ = true;
  agree("to begin NVSHMEM");
}

void Pe::agree(const std::string& statement) {
  block_host([this] { return streams_.is_idle(); }, "its streams, before all PEs meet");
  try {
    transport_.agree(statement, run_.timeout);
  } catch (const transport::TransportError& error) {
    if (error.kind() != transport::TransportError::Kind::disagreement) throw;
    throw KernelError(Hazard::mismatched_allocation,
                      fmt::format("mismatched symmetric allocations: {}; every PE makes the same "
                                  "calls with the same sizes in the same order",
                                  error.what()));
  }
  if (is_timed()) past_.learn_everything(run_.simulation.now());
}

void* Pe::symmetric_malloc(std::uint64_t size_bytes, std::uint64_t alignment, bool is_zeroed) {
  if (!is_initialized_) {
    throw KernelError(KernelError::Kind::usage,
                      "nvshmem_malloc was called before nvshmem_init or nvshmemx_init_attr");
  }
  agree(fmt::format("to allocate {} symmetric bytes", size_bytes));
  constexpr std::uint64_t kOwnAlignment = transport::SymmetricHeap::kAlignment;
  const std::uint64_t more = alignment > kOwnAlignment ? alignment : 0;
  const transport::Offset allocated = transport_.allocate(size_bytes + more);
  const transport::Offset offset =
      more == 0 ? allocated : (allocated + alignment - 1) / alignment * alignment;
  std::byte* const address = transport_.data(offset);
  if (is_zeroed) std::memset(address, 0, size_bytes);
  allocations_.emplace(offset, Allocation{size_bytes, allocated});
  if (is_zeroed) agree("to use cleared memory");
  return address;
}

void Pe::symmetric_free(void* address) {
  const auto found =
      is_in_heap(address) ? allocations_.find(offset_of(address)) : allocations_.end();
  if (found == allocations_.end()) {
    throw KernelError(KernelError::Kind::usage,
                      "nvshmem_free was given an address that nvshmem_malloc did not return");
  }
  agree(fmt::format("to free the symmetric memory at offset {}", found->first));
  signal_words_.forget(found->first, found->second.size_bytes);
  transport_.release(found->second.allocated);
  allocations_.erase(found);
}

bool Pe::register_buffer(void* address, std::uint64_t size_bytes) {
  registered_[number_of(address)] = size_bytes;
  return true;
}

bool Pe::unregister_buffer(void* address, bool all) {
  if (all) {
    registered_.clear();
    return true;
  }
  return registered_.erase(number_of(address)) > 0;
}

bool Pe::is_in_heap(const void* address) const {
  return heaps_[static_cast<std::size_t>(rank())].contains(number_of(address));
}

transport::Offset Pe::offset_of(const void* address) const {
  return number_of(address) - heaps_[static_cast<std::size_t>(rank())].begin;
}

int Pe::owner_of(const void* address) const {
  const std::uintptr_t number = number_of(address);
  if (heaps_[static_cast<std::size_t>(rank())].contains(number)) return rank();
  for (std::size_t peer = 0; peer < heaps_.size(); ++peer) {
    if (heaps_[peer].contains(number)) return static_cast<int>(peer);
  }
  return transport::kNoPeer;
}

void Pe::find_heaps() {
  heaps_.resize(static_cast<std::size_t>(transport_.ranks()));
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    std::byte* const begin = peer == rank() ? transport_.data(0) : remote_memory_->reach(peer, 0);
    if (begin == nullptr) continue;
    heaps_[static_cast<std::size_t>(peer)] = {number_of(begin), options_.heap_bytes};
    const std::uintptr_t first =
        all_heaps_.size == 0 ? number_of(begin) : std::min(all_heaps_.begin, number_of(begin));
    const std::uintptr_t last =
        std::max(all_heaps_.begin + all_heaps_.size, number_of(begin) + options_.heap_bytes);
    all_heaps_ = {first, last - first};
  }
}

void* Pe::reach(const void* address, int peer) {
  if (peer < 0 || peer >= transport_.ranks() || !is_in_heap(address)) return nullptr;
  if (peer == rank()) return const_cast<void*>(address);
  return remote_memory_->reach(peer, offset_of(address));
}

std::uint64_t* Pe::team_words(int team) {
  return reinterpret_cast<std::uint64_t*>(words_) +
         static_cast<unsigned>(team) * abi::kWordsPerTeam;
}

bool Pe::is_allocated(const void* address, std::uint64_t size_bytes) const {
  if (!is_in_heap(address)) return false;
  const transport::Offset offset = offset_of(address);
  auto found = allocations_.upper_bound(offset);
  if (found == allocations_.begin()) return false;
  --found;
  return offset + size_bytes <= found->first + found->second.size_bytes;
}

void Pe::check_remote(const abi::Access& access, const Block& block, const abi::Site& site) const {
  if (access.peer < 0 || access.peer >= transport_.ranks()) {
    throw KernelError(KernelError::Kind::usage,
                      fmt::format("{} names PE {}; allowed are 0 to {}", call_of(site, block),
                                  access.peer, transport_.ranks() - 1));
  }
  const bool names_bytes = access.size_bytes > 0;
  if (names_bytes && !is_allocated(access.remote, access.size_bytes)) {
    throw KernelError(
        Hazard::unregistered_buffer,
        fmt::format("unregistered buffer: {} names {} bytes at a peer that are not symmetric, or "
                    "go beyond their allocation; allocate them with nvshmem_malloc on every PE",
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

void Pe::check_local(const abi::Access& access, const Block& block, const abi::Site& site) const {
  if (access.kind == abi::AccessKind::atomic || access.size_bytes == 0) return;
  const std::uintptr_t begin = number_of(access.local);
  // The library's own temporary words, and values of one thread, travel with the instruction.
  const bool is_private = run_.stack.contains(access.local) || access.size_bytes <= 8;
  if (is_private || is_allocated(access.local, access.size_bytes)) return;
  const auto found = registered_.upper_bound(begin);
  if (found != registered_.begin()) {
    const auto& [first, size_bytes] = *std::prev(found);
    if (begin + access.size_bytes <= first + size_bytes) return;
  }
  throw KernelError(
      Hazard::unregistered_buffer,
      fmt::format("unregistered buffer: {} {} {} bytes of memory that is neither symmetric nor "
                  "registered; call nvshmemx_buffer_register for all of it first",
                  call_of(site, block), access.kind == abi::AccessKind::put ? "sends" : "fills",
                  access.size_bytes));
}

}  // namespace towpath::gpu
