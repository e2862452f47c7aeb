// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/kernel_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "towpath/os/file_descriptor.hpp"

namespace towpath::tenstorrent::metalium {

namespace {

// The loader takes a file that it has loaded for the same library, so each copy is a file of its
// own, without a name on disk.
os::FileDescriptor copy_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  os::FileDescriptor copy(memfd_create("towpath-kernel", MFD_CLOEXEC));
  std::size_t done = 0;
  while (file.good() || done < bytes.size()) {
    const ssize_t size = write(copy.number(), bytes.data() + done, bytes.size() - done);
    if (size <= 0) break;
    done += static_cast<std::size_t>(size);
  }
  if (bytes.empty() || done != bytes.size()) {
    throw std::runtime_error(fmt::format("cannot read the compiled kernel {}", path.string()));
  }
  return copy;
}

// A path of the descriptor that no other library was loaded by: the loader knows libraries by their
// paths too, and descriptors are used again. A number is spelled as steps that lead nowhere.
std::string unused_path(int descriptor) {
  static std::atomic<std::uint32_t> next_number = 0;
  std::string path = "/proc/self/fd/";
  for (std::uint32_t number = next_number++; number != 0; number >>= 1) {
    path += (number & 1) != 0 ? "./" : "/";
  }
  return path + std::to_string(descriptor);
}

}  // namespace

KernelLibrary::KernelLibrary(const std::filesystem::path& file) {
  const os::FileDescriptor copy = copy_of(file);
  handle_ = dlopen(unused_path(copy.number()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw std::runtime_error(
        fmt::format("the compiled kernel {} cannot be loaded: {}", file.string(), dlerror()));
  }
  entry_ = reinterpret_cast<Entry>(dlsym(handle_, "towpath_kernel_entry"));
  if (entry_ == nullptr) {
    dlclose(handle_);
    throw std::runtime_error(fmt::format("{} is not a compiled kernel", file.string()));
  }
}

KernelLibrary::~KernelLibrary() { dlclose(handle_); }

}  // namespace towpath::tenstorrent::metalium
