// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "towpath/gpu/pe.hpp"
#include "towpath/os/process.hpp"

namespace towpath::gpu {

namespace {

// The system maps nothing at these addresses.
constexpr std::uintptr_t kNowhereBytes = 4096;

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::string bytes_of(std::uint64_t size_bytes) {
  return fmt::format("{} byte{}", size_bytes, size_bytes == 1 ? "" : "s");
}

// "end 4 bytes beyond", "begin 4 bytes before"
std::string place_at(std::uintptr_t begin, std::uint64_t extent_bytes, std::uintptr_t address,
                     std::uint64_t size_bytes) {
  if (address < begin) return fmt::format("begin {} before", bytes_of(begin - address));
  return fmt::format("end {} beyond", bytes_of(address + size_bytes - begin - extent_bytes));
}

}  // namespace

MemoryCheck::Culprit MemoryCheck::thread_of(const MemoryAccess& access, const Block& block) const {
  const std::string place = pe_.object().place_of(access.where);
  return {fmt::format("thread {} of {}{}{}", block.running_index(), block.describe(),
                      place.empty() ? "" : " at ", place),
          fmt::format("{} {}", access.verb, bytes_of(access.size_bytes))};
}

// --- kernels -------------------------------------------------------------------------------------

std::uintptr_t MemoryCheck::own_address_of(std::uintptr_t address) const {
  if (pe_.device_memory().range().contains(address)) return address;
  const int owner = pe_.heap().owner_of(reinterpret_cast<const void*>(address));
  if (owner == transport::kNoPeer) return 0;
  return address - pe_.heap().of(owner).begin + pe_.heap().own().begin;
}

const Allocation& MemoryCheck::of_device(const MemoryAccess& access, const Block& block) const {
  const std::uintptr_t own = own_address_of(access.address);
  const Allocation* const found = map_.find(own);
  if (found != nullptr && found->holds(own, access.size_bytes)) return *found;
  refuse(own, access.size_bytes, thread_of(access, block));
}

void MemoryCheck::check_other(const MemoryAccess& access, const Block& block) const {
  const Allocation* const found = map_.find(access.address);
  if (found != nullptr && found->holds(access.address, access.size_bytes)) return;
  const abi::Range& arguments = pe_.current().arguments;
  if (is_variable(access.address, access.size_bytes) || access.is_inside(arguments)) return;
  if (pe_.heap().is_registered(access.address, access.size_bytes)) return;
  // The processor rejects these addresses, with the same message for all code.
  if (access.address < kNowhereBytes) return;
  refuse(access.address, access.size_bytes, thread_of(access, block));
}

bool MemoryCheck::is_variable(std::uintptr_t address, std::uint64_t size_bytes) const {
  const abi::Range& variables = pe_.object().extent();
  return variables.contains(address) && address + size_bytes <= variables.begin + variables.size;
}

abi::Range MemoryCheck::of_shared(const MemoryAccess& access, const Block& block) const {
  const SharedMemory& shared = block.shared_memory();
  const abi::Range found = shared.around(access.address, access.size_bytes);
  if (found.size > 0) return found;
  const Culprit culprit = thread_of(access, block);
  const SharedMemory::Extent nearest = shared.nearest(access.address);
  throw KernelError(
      Hazard::out_of_bounds,
      fmt::format("out of bounds: {} {} that {} the {} of {}; stay inside", culprit.who,
                  culprit.what,
                  place_at(nearest.begin, nearest.size_bytes, access.address, access.size_bytes),
                  bytes_of(nearest.size_bytes), nearest.name));
}

void MemoryCheck::refuse_shared_address(const MemoryAccess& access, const Block& block) const {
  const Culprit culprit = thread_of(access, block);
  throw KernelError(
      Hazard::out_of_bounds,
      fmt::format("out of bounds: {} {} at the shared address {:#x}, which is outside of the "
                  "block's shared memory; convert a generic address with "
                  "__cvta_generic_to_shared or cvta.to.shared",
                  culprit.who, culprit.what, access.address));
}

std::string MemoryCheck::place_inside(std::uintptr_t address, const Block& block) const {
  if (pe_.current().shared.contains(address)) {
    const SharedMemory::Extent found = block.shared_memory().nearest(address);
    return fmt::format(", {} into the {} of {}", bytes_of(address - found.begin),
                       bytes_of(found.size_bytes), found.name);
  }
  const std::uintptr_t own = own_address_of(address);
  const Allocation* const found = map_.find(own);
  if (found == nullptr) return "";
  return fmt::format(", {} into {}", bytes_of(own - found->begin), found->describe());
}

void MemoryCheck::refuse_misaligned(const MemoryAccess& access, const Block& block) const {
  const Culprit culprit = thread_of(access, block);
  throw KernelError(
      Hazard::misaligned_access,
      fmt::format("misaligned access: {} {} at once, at an address that is not a multiple of {}{}; "
                  "a GPU accesses a type only at a multiple of its alignment",
                  culprit.who, culprit.what, access.size_bytes,
                  place_inside(access.address, block)));
}

// --- the host program ----------------------------------------------------------------------------

abi::Range MemoryCheck::check_host(const MemoryAccess& access) const {
  const std::uintptr_t own = own_address_of(access.address);
  if (own != 0) {
    const Allocation* const found = map_.find(own);
    if (found != nullptr && found->kind == MemoryKind::managed &&
        found->holds(own, access.size_bytes)) {
      return {found->begin, found->size_bytes};
    }
    const std::string place = pe_.object().place_of(access.where);
    const Culprit culprit{fmt::format("the host program of PE {}{}{}", pe_.rank(),
                                      place.empty() ? "" : " at ", place),
                          fmt::format("{} {}", access.verb, bytes_of(access.size_bytes))};
    const Allocation& device = checked(own, access.size_bytes, culprit);
    throw KernelError(
        Hazard::device_memory,
        fmt::format("device memory: {} {} inside {}, which is memory of the GPU; copy with "
                    "cudaMemcpy, or allocate with cudaMallocManaged",
                    culprit.who, culprit.what, device.describe()));
  }
  // The gap between the memories of GPUs.
  std::uintptr_t begin = 0;
  std::uintptr_t end = ~std::uintptr_t{0};
  const auto narrow = [&](const abi::Range& range) {
    if (range.size == 0) return;
    if (range.begin + range.size <= access.address)
      begin = std::max(begin, range.begin + range.size);
    if (range.begin > access.address) end = std::min(end, range.begin);
  };
  narrow(pe_.device_memory().range());
  for (int rank = 0; rank < pe_.run().ranks; ++rank) narrow(pe_.heap().of(rank));
  return {begin, end - begin};
}

void MemoryCheck::check_side(const void* side, std::uint64_t size_bytes, bool is_of_device,
                             const Culprit& culprit) const {
  const std::uintptr_t address = number_of(side);
  const std::uintptr_t own = own_address_of(address);
  if (own != 0) {
    checked(own, size_bytes, culprit);
    return;
  }
  const Allocation* const pinned = map_.find(address);
  if (pinned != nullptr || is_variable(address, size_bytes)) {
    if (pinned != nullptr) checked(address, size_bytes, culprit);
    return;
  }
  if (!os::is_mapped(side, size_bytes)) {
    throw KernelError(
        Hazard::out_of_bounds,
        fmt::format(
            "out of bounds: {} {} at {}, where there is no memory; use an address of an allocation",
            culprit.who, culprit.what,
            side == nullptr ? "nullptr" : fmt::format("{:#x}", address)));
  }
  if (!is_of_device) return;
  throw KernelError(Hazard::host_memory,
                    fmt::format("host memory: {} {} of the host's memory but declares them as the "
                                "GPU's memory; use memory from cudaMalloc",
                                culprit.who, culprit.what));
}

void MemoryCheck::check_copy(const CopyRequest& request, const abi::Site& site) const {
  if (request.size_bytes == 0) return;
  const std::string who =
      fmt::format("{} at {}:{} on PE {}", site.call, site.file, site.line, pe_.rank());
  const bool fills = request.kind == abi::CopyKind::fill;
  if (!fills) {
    check_side(request.from, request.size_bytes, request.kind == abi::CopyKind::to_host,
               {who, fmt::format("loads {}", bytes_of(request.size_bytes))});
  }
  check_side(request.to, request.size_bytes, fills || request.kind == abi::CopyKind::to_device,
             {who, fmt::format("stores {}", bytes_of(request.size_bytes))});
}

// --- transfers -----------------------------------------------------------------------------------

void MemoryCheck::check_transfer(const abi::Access& access, const Block& block,
                                 const abi::Site& site) const {
  const auto check = [&](const void* address, std::uint64_t size_bytes, const char* verb) {
    const std::uintptr_t number = number_of(address);
    const bool is_of_gpu =
        pe_.device_memory().range().contains(number) || pe_.heap().own().contains(number);
    if (size_bytes == 0 || !is_of_gpu) return;
    checked(number, size_bytes,
            {fmt::format("{} at {}:{} in {}", site.call, site.file, site.line, block.describe()),
             fmt::format("{} {}", verb, bytes_of(size_bytes))});
  };
  const bool gets = access.kind == abi::AccessKind::get;
  const std::string to_peer = fmt::format("{} at PE {}", gets ? "loads" : "stores", access.peer);
  check(access.remote, access.size_bytes, to_peer.c_str());
  if (access.kind != abi::AccessKind::atomic) {
    check(access.local, access.size_bytes, gets ? "stores" : "loads");
  }
  if (access.signal != abi::Signal::none) check(access.signal_at, 8, "raises a signal of");
}

// --- sentences -----------------------------------------------------------------------------------

const Allocation& MemoryCheck::checked(std::uintptr_t address, std::uint64_t size_bytes,
                                       const Culprit& culprit) const {
  const Allocation* const found = map_.find(address);
  if (found == nullptr || !found->holds(address, size_bytes)) refuse(address, size_bytes, culprit);
  return *found;
}

void MemoryCheck::refuse(std::uintptr_t address, std::uint64_t size_bytes,
                         const Culprit& culprit) const {
  const bool is_of_heap = pe_.heap().own().contains(address);
  const bool is_of_gpu = is_of_heap || pe_.device_memory().range().contains(address);
  const Allocation* found = map_.find(address);
  if (found == nullptr && is_of_gpu) {
    found = map_.nearest(address, is_of_heap ? pe_.heap().own() : pe_.device_memory().range());
  }
  if (found == nullptr && is_of_gpu) {
    throw KernelError(Hazard::out_of_bounds,
                      fmt::format("out of bounds: {} {} where no memory of the GPU is allocated; "
                                  "allocate it with cudaMalloc or nvshmem_malloc",
                                  culprit.who, culprit.what));
  }
  if (found == nullptr) {
    throw KernelError(
        Hazard::host_memory,
        fmt::format("host memory: {} {} at {:#x}, which is the host's or not allocated; use memory "
                    "from cudaMalloc, cudaMallocManaged, cudaMallocHost or nvshmem_malloc",
                    culprit.who, culprit.what, address));
  }
  if (found->freed.call != nullptr) {
    throw KernelError(
        Hazard::use_after_free,
        fmt::format("use after free: {} {} inside {}, which {} at {}:{} has freed; free memory "
                    "after its last use",
                    culprit.who, culprit.what, found->describe(), found->freed.call,
                    found->freed.file, found->freed.line));
  }
  throw KernelError(
      Hazard::out_of_bounds,
      fmt::format("out of bounds: {} {} that {} {}; stay inside", culprit.who, culprit.what,
                  place_at(found->begin, found->size_bytes, address, size_bytes),
                  found->describe()));
}

}  // namespace towpath::gpu
