// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/errors.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <typeinfo>

namespace towpath::gpu {

const char* name_of(Hazard hazard) {
  constexpr const char* kNames[] = {
      "source_changed", "unawaited_data",      "fence_for_quiet",   "signal_reused",
      "overshot_wait",  "unregistered_buffer", "divergent_barrier", "mismatched_allocation",
      "out_of_bounds",  "use_after_free",      "misaligned_access", "host_memory",
      "device_memory",  "block_race",          "missing_fence",
  };
  static_assert(std::size(kNames) == static_cast<std::size_t>(Hazard::missing_fence) + 1);
  return kNames[static_cast<std::size_t>(hazard)];
}

namespace {

std::string type_of_current_exception() {
  const std::type_info* const type = __cxxabiv1::__cxa_current_exception_type();
  if (type == nullptr) return "an exception";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      __cxxabiv1::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return name == nullptr ? type->name() : name.get();
}

}  // namespace

void rethrow_named(const std::string& who) {
  constexpr const char* kWhatToDo = "; catch it where it is thrown";
  const std::string type = type_of_current_exception();
  // Errors of a run, and the end of a process with such an error.
  if (type.starts_with("towpath::")) throw;
  try {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{} throws {}: {}{}", who, type, error.what(), kWhatToDo));
  } catch (...) {
    throw std::runtime_error(fmt::format("{} throws a value of type {}{}", who, type, kWhatToDo));
  }
}

}  // namespace towpath::gpu
