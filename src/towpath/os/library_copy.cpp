// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/library_copy.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "towpath/os/command.hpp"
#include "towpath/os/compile_cache.hpp"
#include "towpath/os/file_descriptor.hpp"

namespace towpath::os {

namespace {

// The loader identifies libraries by file, so each copy is a separate file without a name on disk.
FileDescriptor copy_of(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  if (bytes.empty()) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
  FileDescriptor copy(::memfd_create(file.filename().c_str(), MFD_CLOEXEC));
  if (!copy.is_open()) throw std::system_error(errno, std::generic_category(), "memfd_create");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t size = ::write(copy.number(), bytes.data() + done, bytes.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw std::system_error(errno, std::generic_category(), "write");
    done += static_cast<std::size_t>(size);
  }
  return copy;
}

constexpr std::string_view kFolder = "/proc/self/fd/";

// An unused path of the descriptor. The loader also identifies libraries by path, and descriptors
// are reused. Redundant path steps encode a number.
std::string unused_path(int descriptor) {
  static std::atomic<std::uint32_t> next_number = 0;
  std::string path(kFolder);
  for (std::uint32_t number = next_number++; number != 0; number >>= 1) {
    path += (number & 1) != 0 ? "./" : "/";
  }
  return path + std::to_string(descriptor);
}

}  // namespace

LibraryCopy::LibraryCopy(const std::filesystem::path& file) : file_(file) {
  const FileDescriptor copy = copy_of(file);
  handle_ = ::dlopen(unused_path(copy.number()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw std::runtime_error(fmt::format("cannot load {}: {}", file.string(), ::dlerror()));
  }
}

LibraryCopy::~LibraryCopy() { ::dlclose(handle_); }

void* LibraryCopy::symbol(const char* name) const { return ::dlsym(handle_, name); }

std::vector<std::string> LibraryCopy::places_before(const void* address) const {
  Dl_info info;
  if (::dladdr(address, &info) == 0) return {};
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  std::istringstream lines(
      run_command({"addr2line", "-i", "-e", file_.string(), fmt::format("{:#x}", offset - 1)})
          .output);
  std::vector<std::string> places;
  std::string line;
  while (std::getline(lines, line)) {
    line.resize(std::min(line.size(), line.find_first_of(" (")));
    const bool is_known = !line.empty() && line[0] != '?' && !line.ends_with(":?");
    if (is_known) places.push_back(line);
  }
  return places;
}

LibraryCopy::Extent LibraryCopy::extent() const {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
  Extent found{static_cast<std::uintptr_t>(map->l_addr), 0};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        Extent& extent = *static_cast<Extent*>(context);
        if (info->dlpi_addr != extent.begin) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          extent.size_bytes = std::max(extent.size_bytes, segment.p_vaddr + segment.p_memsz);
        }
        return 1;
      },
      &found);
  return found;
}

std::vector<const void*> LibraryCopy::calls() {
  constexpr std::size_t kCallsMax = 16;
  std::vector<const void*> found;
  ::_Unwind_Backtrace(
      [](_Unwind_Context* frame, void* context) {
        auto& calls = *static_cast<std::vector<const void*>*>(context);
        const auto* const address = reinterpret_cast<const void*>(::_Unwind_GetIP(frame));
        if (has(address)) calls.push_back(address);
        return calls.size() < kCallsMax ? _URC_NO_REASON : _URC_END_OF_STACK;
      },
      &found);
  return found;
}

bool LibraryCopy::has(const void* address) {
  Dl_info info;
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         std::string_view(info.dli_fname).starts_with(kFolder);
}

}  // namespace towpath::os
