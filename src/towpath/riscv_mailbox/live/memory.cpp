// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/riscv_mailbox/live/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace towpath::riscv_mailbox::live {

namespace {

constexpr std::uint64_t kVersion = 0x6d61'696c'626f'7802;  // the last byte is the version number
constexpr std::size_t kControlBytes = 4096;
static_assert(sizeof(Control) <= kControlBytes);

std::size_t size_of(std::uint32_t depth, std::uint32_t lanes) {
  return kControlBytes + lanes * (sizeof(LaneState) + depth * sizeof(Slot));
}

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Locks of an open file description, which fork() and dup() share and open() does not.
struct flock lock_of(short type, std::uint32_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

}  // namespace

Memory::Memory(FileDescriptor file, std::size_t size_bytes)
    : file_(std::move(file)), mapping_(file_, size_bytes) {}

std::shared_ptr<Memory> Memory::create(const std::string& name, std::uint32_t depth,
                                       std::uint32_t lanes) {
  const std::size_t size_bytes = size_of(depth, lanes);
  const FileDescriptor file = os::create_shared_memory(name, size_bytes);
  const os::SharedMapping mapping(file, size_bytes);
  Control& control = *reinterpret_cast<Control*>(mapping.data());
  control.depth = depth;
  control.lanes = lanes;
  control.version = kVersion;
  return open(fmt::format("/proc/self/fd/{}", file.number()));
}

std::shared_ptr<Memory> Memory::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) throw_system_error("cannot open a mailbox");
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw_system_error("cannot look at a mailbox");
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes < kControlBytes) throw std::runtime_error("the file is not a mailbox");
  auto memory = std::make_shared<Memory>(std::move(file), size_bytes);
  const Control& control = memory->control();
  if (control.version != kVersion || size_of(control.depth, control.lanes) != size_bytes) {
    throw std::runtime_error("the file is not a mailbox of this version");
  }
  memory->states_ = reinterpret_cast<LaneState*>(memory->mapping_.data() + kControlBytes);
  memory->slots_ = reinterpret_cast<Slot*>(memory->states_ + control.lanes);
  return memory;
}

std::shared_ptr<Memory> Memory::reopened() const {
  return open(fmt::format("/proc/self/fd/{}", file_.number()));
}

bool Memory::lock(std::uint32_t byte) {
  struct flock wanted = lock_of(F_WRLCK, byte);
  return ::fcntl(file_.number(), F_OFD_SETLK, &wanted) == 0;
}

bool Memory::has_reader() const {
  struct flock found = lock_of(F_WRLCK, 0);
  return ::fcntl(file_.number(), F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK;
}

}  // namespace towpath::riscv_mailbox::live
