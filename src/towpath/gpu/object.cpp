// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/object.hpp"

#include <fmt/format.h>

#include <vector>

#include "towpath/gpu/errors.hpp"

namespace towpath::gpu {

LoadedObject::LoadedObject(const std::filesystem::path& file) : library_(file) {
  const auto describe = reinterpret_cast<abi::Object (*)()>(library_.symbol("towpath_gpu_object"));
  if (describe != nullptr) object_ = describe();
  const os::LibraryCopy::Extent extent = library_.extent();
  extent_ = {extent.begin, extent.size_bytes};
  if (object_.version != abi::kVersion) {
    throw std::runtime_error(fmt::format(
        "{} was not compiled from a CUDA source by this version of Towpath", file.string()));
  }
  if (object_.kernel_count > abi::kKernelsMax) {
    throw KernelError(
        KernelError::Kind::usage,
        fmt::format(
            "a source has {} kernels and instances of kernel templates; it must have at most {}",
            object_.kernel_count, abi::kKernelsMax));
  }
}

std::string LoadedObject::place_of(const void* address) const {
  const std::vector<std::string> places = library_.places_before(address);
  for (const std::string& place : places) {
    const std::filesystem::path file = place.substr(0, place.rfind(':'));
    std::error_code unreadable;
    const bool is_ours =
        std::filesystem::exists(file.parent_path() / "towpath_gpu_object.h", unreadable);
    if (!is_ours) return place;
  }
  return {};
}

std::runtime_error LoadedObject::named(const os::CodeFault& fault, const std::string& who) const {
  // place_of() takes return addresses, which follow their call.
  const std::string place = place_of(static_cast<const char*>(fault.address()) + 1);
  return std::runtime_error(
      fmt::format("{}{}{} {}", who, place.empty() ? "" : " at ", place, fault.what()));
}

const abi::Kernel* LoadedObject::find_kernel(const void* function) const {
  for (int i = 0; i < object_.kernel_count; ++i) {
    if (object_.kernels[i]->function == function) return object_.kernels[i];
  }
  return nullptr;
}

const abi::Kernel* LoadedObject::find_kernel(const std::string& name) const {
  for (int i = 0; i < object_.kernel_count; ++i) {
    if (object_.kernels[i]->name == name) return object_.kernels[i];
  }
  return nullptr;
}

}  // namespace towpath::gpu
