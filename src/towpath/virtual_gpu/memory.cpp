// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

constexpr std::uint64_t kMagic = 0x746f77706174683a;
// Sparse: untouched pages take no memory.
constexpr std::size_t kFileBytes = std::size_t{1} << 46;
constexpr std::size_t kPageBytes = 4096;

std::size_t rounded(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

struct FilePart {
  int file;
  std::size_t offset;
};
constexpr FilePart kNoFile{-1, 0};

void* mapped(void* at, std::size_t size, int access, int flags, FilePart part) {
  void* const address =
      mmap(at, size, access, flags | MAP_NORESERVE, part.file, static_cast<off_t>(part.offset));
  if (address == MAP_FAILED) {
    stop("virtual GPUs cannot map " + std::to_string(size) + " bytes: " + strerror(errno) +
         "; raise the limit of memory or use fewer ranks");
  }
  return address;
}

}  // namespace

Memory::Memory() : file_(memfd_create("towpath-virtual-gpu", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kFileBytes)) != 0) {
    stop(std::string("virtual GPUs cannot make their file of memory: ") + strerror(errno));
  }
}

Memory::~Memory() { close(file_); }

std::size_t Memory::take(std::size_t size_bytes) {
  const std::size_t offset = end_;
  end_ += rounded(size_bytes, kPageBytes);
  return offset;
}

int Memory::descriptor_of(const Block& block) const {
  return block.descriptor < 0 ? file_ : block.descriptor;
}

std::optional<std::uintptr_t> Memory::allocate(std::size_t size_bytes, MemoryKind kind,
                                               int device) {
  const std::scoped_lock lock(mutex_);
  const std::size_t size = rounded(size_bytes == 0 ? 1 : size_bytes, kPageBytes);
  if (size > kFileBytes - end_) return std::nullopt;
  const std::size_t offset = take(size);
  const std::uint64_t handle = next_handle_++;
  blocks_[handle] = {offset, size, device, 0, false, 1, -1};
  const auto address = reinterpret_cast<std::uintptr_t>(
      mapped(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, {file_, offset}));
  allocations_[address] = {address, size_bytes, kind, device, handle};
  return address;
}

bool Memory::free(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.handle == 0) return false;
  const auto block = blocks_.find(found->second.handle);
  munmap(reinterpret_cast<void*>(address), block->second.size_bytes);
  // Other mappings of the range read zeros from now on, as CUDA promises no content after cudaFree.
  forget(file_, block->second.offset, block->second.size_bytes);
  blocks_.erase(block);
  allocations_.erase(found);
  return true;
}

bool Memory::lend(std::uintptr_t address, std::size_t size_bytes) {
  const std::scoped_lock lock(mutex_);
  return allocations_
      .try_emplace(address, Allocation{address, size_bytes, MemoryKind::pinned, 0, 0})
      .second;
}

bool Memory::take_back(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.handle != 0 ||
      found->second.kind != MemoryKind::pinned) {
    return false;
  }
  allocations_.erase(found);
  return true;
}

const Allocation* Memory::holder(std::uintptr_t address) const {
  for (const auto* table : {&mappings_, &allocations_}) {
    auto next = table->upper_bound(address);
    if (next == table->begin()) continue;
    const Allocation& before = (--next)->second;
    if (address - before.address < before.size_bytes) return &before;
  }
  return nullptr;
}

std::optional<Allocation> Memory::find(std::uintptr_t address) const {
  const std::scoped_lock lock(mutex_);
  const Allocation* const found = holder(address);
  return found == nullptr ? std::nullopt : std::optional<Allocation>(*found);
}

std::uint64_t Memory::create(std::size_t size_bytes, int device, unsigned handle_types,
                             bool is_multicast) {
  const std::scoped_lock lock(mutex_);
  if (size_bytes == 0 || size_bytes % kPageBytes != 0 || size_bytes > kFileBytes - end_) return 0;
  const std::uint64_t handle = next_handle_++;
  blocks_[handle] = {take(size_bytes), size_bytes, device, handle_types, is_multicast, 1, -1};
  return handle;
}

std::optional<Block> Memory::block(std::uint64_t handle) const {
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(handle);
  return found == blocks_.end() ? std::nullopt : std::optional<Block>(found->second);
}

bool Memory::retain(std::uint64_t handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(handle);
  if (found == blocks_.end()) return false;
  ++found->second.references;
  return true;
}

// The block exists while it is mapped. Its pages return to the system with the process.
bool Memory::release(std::uint64_t handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(handle);
  if (found == blocks_.end() || found->second.references == 0) return false;
  --found->second.references;
  return true;
}

std::optional<std::uintptr_t> Memory::reserve(std::size_t size_bytes, std::size_t alignment) {
  const std::scoped_lock lock(mutex_);
  const std::size_t unit = alignment == 0 ? kGranularityBytes : alignment;
  if (size_bytes == 0 || size_bytes % kPageBytes != 0 || (unit & (unit - 1)) != 0) {
    return std::nullopt;
  }
  const std::size_t whole = size_bytes + unit;
  const auto begin = reinterpret_cast<std::uintptr_t>(
      mapped(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, kNoFile));
  const std::uintptr_t address = rounded(begin, unit);
  if (address > begin) munmap(reinterpret_cast<void*>(begin), address - begin);
  const std::size_t rest = begin + whole - (address + size_bytes);
  if (rest > 0) munmap(reinterpret_cast<void*>(address + size_bytes), rest);
  allocations_[address] = {address, size_bytes, MemoryKind::reserved, 0, 0};
  return address;
}

bool Memory::unreserve(std::uintptr_t address, std::size_t size_bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second.kind != MemoryKind::reserved ||
      found->second.size_bytes != size_bytes) {
    return false;
  }
  munmap(reinterpret_cast<void*>(address), size_bytes);
  allocations_.erase(found);
  return true;
}

bool Memory::map(std::uintptr_t address, std::size_t size_bytes, std::size_t offset,
                 std::uint64_t handle) {
  const std::scoped_lock lock(mutex_);
  const auto block = blocks_.find(handle);
  const Allocation* const range = holder(address);
  if (block == blocks_.end() || range == nullptr || range->kind != MemoryKind::reserved ||
      range->handle != 0 || address + size_bytes > range->address + range->size_bytes ||
      offset > block->second.size_bytes || size_bytes > block->second.size_bytes - offset) {
    return false;
  }
  mapped(reinterpret_cast<void*>(address), size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
         {descriptor_of(block->second), block->second.offset + offset});
  mappings_[address] = {address, size_bytes, MemoryKind::reserved, block->second.device,
                        handle,  offset};
  return true;
}

bool Memory::unmap(std::uintptr_t address, std::size_t size_bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = mappings_.find(address);
  if (found == mappings_.end() || found->second.size_bytes != size_bytes) return false;
  mapped(reinterpret_cast<void*>(address), size_bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, kNoFile);
  mappings_.erase(found);
  return true;
}

bool Memory::set_access(std::uintptr_t address, std::size_t size_bytes, bool is_accessible) {
  const std::scoped_lock lock(mutex_);
  const Allocation* const found = holder(address);
  if (found == nullptr || found->kind != MemoryKind::reserved || found->handle == 0) return false;
  return mprotect(reinterpret_cast<void*>(address), size_bytes,
                  is_accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

// By the system call: a program may have another fallocate.
void Memory::forget(int file, std::size_t offset, std::size_t size_bytes) {
  if (syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(offset), static_cast<off_t>(size_bytes)) != 0) {
    stop(std::string("virtual GPUs cannot give memory back: ") + strerror(errno));
  }
}

void Memory::clear(std::uintptr_t address, std::size_t size_bytes) {
  std::uintptr_t begin = rounded(address, kPageBytes);
  std::uintptr_t end = (address + size_bytes) / kPageBytes * kPageBytes;
  if (end <= begin || !forget_pages(begin, end)) begin = end = address + size_bytes;
  std::memset(reinterpret_cast<void*>(address), 0, begin - address);
  std::memset(reinterpret_cast<void*>(end), 0, address + size_bytes - end);
}

bool Memory::forget_pages(std::uintptr_t begin, std::uintptr_t end) {
  const std::scoped_lock lock(mutex_);
  const Allocation* const found = holder(begin);
  if (found == nullptr || found->handle == 0) return false;
  const Block& block = blocks_.at(found->handle);
  forget(descriptor_of(block), block.offset + found->block_offset + (begin - found->address),
         end - begin);
  return true;
}

std::uint64_t Memory::handle_at(std::uintptr_t address) {
  const std::scoped_lock lock(mutex_);
  const Allocation* const found = holder(address);
  // Memory of cudaMalloc has no handle that the driver gives out.
  if (found == nullptr || found->kind != MemoryKind::reserved || found->handle == 0) return 0;
  ++blocks_.at(found->handle).references;
  return found->handle;
}

std::optional<SharedBlock> Memory::share(std::uint64_t handle) const {
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(handle);
  if (found == blocks_.end() || found->second.descriptor >= 0) return std::nullopt;
  const Block& block = found->second;
  return SharedBlock{kMagic,   handle, block.offset, block.size_bytes,
                     getpid(), file_,  block.device, block.is_multicast ? 1U : 0U};
}

std::optional<SharedBlock> Memory::share_allocation(std::uintptr_t address) {
  const auto found = find(address);
  if (!found || found->handle == 0) return std::nullopt;
  return share(found->handle);
}

void* Memory::view(std::uint64_t handle, std::size_t size_bytes) const {
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(handle);
  if (found == blocks_.end() || size_bytes > found->second.size_bytes) return nullptr;
  return mapped(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                {descriptor_of(found->second), found->second.offset});
}

void* Memory::map_part(int process, int descriptor, std::size_t offset, std::size_t size_bytes) {
  const std::scoped_lock lock(mutex_);
  const int file = file_of(process, descriptor);
  if (file < 0) return nullptr;
  return mapped(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, {file, offset});
}

// A process maps many blocks of a peer's file, which it opens once.
int Memory::file_of(int process, int descriptor) {
  if (process == getpid()) return descriptor;
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat state {};
  if (file < 0 || fstat(file, &state) != 0) return -1;
  const auto [known, is_new] = peer_files_.try_emplace(state.st_ino, file);
  if (!is_new) close(file);
  return known->second;
}

std::uint64_t Memory::open(const SharedBlock& shared) {
  if (shared.magic != kMagic) return 0;
  if (shared.process == getpid()) return retain(shared.handle) ? shared.handle : 0;
  const std::scoped_lock lock(mutex_);
  const int file = file_of(shared.process, shared.descriptor);
  if (file < 0) return 0;
  const std::uint64_t handle = next_handle_++;
  blocks_[handle] = {
      shared.offset, shared.size_bytes, shared.device, 0, shared.is_multicast != 0, 1, file};
  return handle;
}

}  // namespace towpath::virtual_gpu
