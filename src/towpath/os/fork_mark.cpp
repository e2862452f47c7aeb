// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/fork_mark.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace towpath::os {

namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

[[noreturn]] void refuse(int code) {
  throw std::system_error(code, std::generic_category(), "a page that a fork wipes");
}

}  // namespace

ForkMark::ForkMark()
    : page_(::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0)) {
  if (page_ == MAP_FAILED) refuse(errno);
  if (::madvise(page_, page_bytes(), MADV_WIPEONFORK) != 0) {
    const int code = errno;
    ::munmap(page_, page_bytes());
    refuse(code);
  }
  *static_cast<char*>(page_) = 1;
}

ForkMark::~ForkMark() { ::munmap(page_, page_bytes()); }

}  // namespace towpath::os
