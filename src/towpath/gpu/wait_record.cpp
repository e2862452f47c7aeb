// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/wait_record.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <type_traits>

#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

WaitRecord::WaitRecord(Pe& at, const abi::Wait& from) : pe(at), call(from) {
  values.assign(call.values, call.values + (call.is_vector ? call.count : 1));
  if (call.status != nullptr) status.assign(call.status, call.status + call.count);
}

std::uint64_t WaitRecord::value_at(std::uint64_t index) const {
  const auto* const at =
      static_cast<const std::byte*>(call.first) + index * static_cast<unsigned>(call.size_bytes);
  const auto load = [&]<typename T>(T) -> std::uint64_t {
    const T value = __atomic_load_n(reinterpret_cast<const T*>(at), __ATOMIC_ACQUIRE);
    return call.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                static_cast<std::make_signed_t<T>>(value)))
                          : std::uint64_t{value};
  };
  switch (call.size_bytes) {
    case 1: return load(std::uint8_t());
    case 2: return load(std::uint16_t());
    case 4: return load(std::uint32_t());
    default: return load(std::uint64_t());
  }
}

std::strong_ordering WaitRecord::order_at(std::uint64_t index) const {
  const std::uint64_t left = value_at(index);
  std::uint64_t right = values[call.is_vector ? index : 0];
  if (call.is_signed) {
    return static_cast<std::int64_t>(left) <=> static_cast<std::int64_t>(right);
  }
  if (call.size_bytes < 8) right &= (std::uint64_t{1} << 8 * call.size_bytes) - 1;
  return left <=> right;
}

bool WaitRecord::holds_at(std::uint64_t index) const {
  const std::strong_ordering order = order_at(index);
  switch (call.comparison) {
    case abi::Comparison::equal: return order == 0;
    case abi::Comparison::not_equal: return order != 0;
    case abi::Comparison::greater: return order > 0;
    case abi::Comparison::less_equal: return order <= 0;
    case abi::Comparison::less: return order < 0;
    case abi::Comparison::greater_equal: return order >= 0;
  }
  return false;
}

std::int64_t WaitRecord::evaluate() const {
  std::int64_t holding = 0;
  std::int64_t first = -1;
  bool any_counts = false;
  bool all_hold = true;
  for (std::uint64_t index = 0; index < call.count; ++index) {
    if (!counts(index)) continue;
    any_counts = true;
    if (!holds_at(index)) {
      all_hold = false;
      continue;
    }
    if (first < 0) first = static_cast<std::int64_t>(index);
    ++holding;
  }
  switch (call.quantity) {
    case abi::Quantity::all: return all_hold ? 1 : -1;
    case abi::Quantity::any: return any_counts ? first : INT64_MAX;
    case abi::Quantity::some: return any_counts && holding == 0 ? -1 : holding;
  }
  return -1;
}

transport::Offset WaitRecord::offset_at(std::uint64_t index) const {
  return pe.heap().offset_of(call.first) + index * static_cast<unsigned>(call.size_bytes);
}

std::string WaitRecord::describe() const {
  constexpr const char* kSigns[] = {"==", "!=", ">", "<=", "<", ">="};
  return fmt::format("word {} of its symmetric heap (now {}) {} {}",
                     pe.heap().offset_of(call.first), value_at(0),
                     kSigns[static_cast<int>(call.comparison)], values[0]);
}

}  // namespace towpath::gpu
