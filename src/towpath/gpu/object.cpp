// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/object.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "towpath/gpu/errors.hpp"
#include "towpath/os/file_descriptor.hpp"

namespace towpath::gpu {

namespace {

// The loader gives one object per file. A copy in memory is another file, and is gone with the
// process.
os::FileDescriptor copy_of(const std::filesystem::path& file) {
  os::FileDescriptor copy(::memfd_create(file.filename().c_str(), MFD_CLOEXEC));
  if (copy.number() < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  std::ifstream source(file, std::ios::binary);
  std::vector<char> buffer(1 << 16);
  while (source) {
    source.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const char* from = buffer.data();
    auto left = static_cast<std::size_t>(source.gcount());
    while (left > 0) {
      const ssize_t written = ::write(copy.number(), from, left);
      if (written < 0) throw std::system_error(errno, std::generic_category(), "write");
      from += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  return copy;
}

}  // namespace

LoadedObject::LoadedObject(const std::filesystem::path& file) : file_(file) {
  copy_ = copy_of(file);
  const std::string path = fmt::format("/proc/self/fd/{}", copy_.number());
  handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw std::runtime_error(fmt::format("cannot load {}: {}", file.string(), ::dlerror()));
  }
  const auto describe = reinterpret_cast<abi::Object (*)()>(::dlsym(handle_, "towpath_gpu_object"));
  if (describe != nullptr) object_ = describe();
  if (object_.version != abi::kVersion) {
    ::dlclose(handle_);
    throw std::runtime_error(fmt::format(
        "{} was not compiled from a CUDA source by this version of Towpath", file.string()));
  }
  if (object_.kernel_count > abi::kKernelsMax) {
    ::dlclose(handle_);
    throw KernelError(
        KernelError::Kind::usage,
        fmt::format("a source has {} kernels and instances of kernel templates; at most {} are "
                    "possible",
                    object_.kernel_count, abi::kKernelsMax));
  }
}

LoadedObject::~LoadedObject() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

std::string LoadedObject::place_of(const void* address) const {
  Dl_info info;
  if (::dladdr(address, &info) == 0) return {};
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  // One less: the address is that after the call.
  const std::string command =
      fmt::format("addr2line -e '{}' {:#x} 2>/dev/null", file_.string(), offset - 1);
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::array<char, 1024> line{};
  const bool is_read = std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr;
  ::pclose(pipe);
  std::string place = is_read ? line.data() : "";
  place = place.substr(0, place.find_first_of("\n ("));
  return place.empty() || place[0] == '?' ? std::string() : place;
}

}  // namespace towpath::gpu
