// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/errors.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <typeinfo>

namespace towpath::gpu {

const char* name_of(Hazard hazard) {
  switch (hazard) {
    case Hazard::source_changed: return "source_changed";
    case Hazard::unawaited_data: return "unawaited_data";
    case Hazard::fence_for_quiet: return "fence_for_quiet";
    case Hazard::signal_reused: return "signal_reused";
    case Hazard::overshot_wait: return "overshot_wait";
    case Hazard::unregistered_buffer: return "unregistered_buffer";
    case Hazard::divergent_barrier: return "divergent_barrier";
    case Hazard::mismatched_allocation: return "mismatched_allocation";
    case Hazard::out_of_bounds: return "out_of_bounds";
    case Hazard::use_after_free: return "use_after_free";
    case Hazard::misaligned_access: return "misaligned_access";
    case Hazard::host_memory: return "host_memory";
    case Hazard::device_memory: return "device_memory";
    case Hazard::block_race: return "block_race";
  }
  return "";
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
