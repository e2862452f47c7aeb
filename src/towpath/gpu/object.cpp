// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/object.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "towpath/gpu/errors.hpp"
#include "towpath/os/command.hpp"

namespace towpath::gpu {

LoadedObject::LoadedObject(const std::filesystem::path& file) : file_(file), library_(file) {
  const auto describe = reinterpret_cast<abi::Object (*)()>(library_.symbol("towpath_gpu_object"));
  if (describe != nullptr) object_ = describe();
  if (object_.version != abi::kVersion) {
    throw std::runtime_error(fmt::format(
        "{} was not compiled from a CUDA source by this version of Towpath", file.string()));
  }
  if (object_.kernel_count > abi::kKernelsMax) {
    throw KernelError(
        KernelError::Kind::usage,
        fmt::format("a source has {} kernels and instances of kernel templates; at most {} are "
                    "possible",
                    object_.kernel_count, abi::kKernelsMax));
  }
}

std::string LoadedObject::place_of(const void* address) const {
  Dl_info info;
  if (::dladdr(address, &info) == 0) return {};
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  // One less: the address is that after the call.
  std::string place =
      os::run_command({"addr2line", "-e", file_.string(), fmt::format("{:#x}", offset - 1)}).output;
  place = place.substr(0, place.find_first_of("\n ("));
  return place.empty() || place[0] == '?' ? std::string() : place;
}

}  // namespace towpath::gpu
