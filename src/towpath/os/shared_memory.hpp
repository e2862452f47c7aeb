// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "towpath/os/file_descriptor.hpp"

// Memory that processes of one host share. It has no name in any file system. It is freed when the
// last process that has it ends, for any reason.

namespace towpath::os {

// The core file of a failing process omits this memory. Otherwise writing a large and mostly empty
// reservation would keep the process alive for minutes.
void leave_out_of_core_file(void* address, std::uint64_t size_bytes);

// New memory, all zero; pages take space when they are first used. Throws std::system_error. `name`
// is only shown by tools of the system.
FileDescriptor create_shared_memory(const std::string& name, std::uint64_t size_bytes);

// All of the memory, mapped into this process.
class SharedMapping {
 public:
  SharedMapping(const FileDescriptor& file, std::uint64_t size_bytes);
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) = delete;
  ~SharedMapping();

  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  std::uint64_t size_bytes_;
};

}  // namespace towpath::os
