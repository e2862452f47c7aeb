// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/wait_record.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
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

std::uint64_t wait(Block& block, const abi::Wait& call, const abi::Site& site) {
  Pe& pe = block.pe();
  if (!pe.heap().contains(call.first)) {
    throw KernelError(Hazard::unregistered_buffer,
                      fmt::format("{} at {}:{} in {} waits for a word that is not symmetric, so no "
                                  "PE can put to it; allocate it with nvshmem_malloc",
                                  site.call, site.file, site.line, block.describe()));
  }
  auto record = std::make_unique<WaitRecord>(pe, call);
  record->site = site;
  block.running().site = site;
  note_release(block, abi::FenceScope::system);
  if (block.history() != nullptr) pe.hazards().note_wait(*record);
  block.reach(block.work().thread_time());
  std::int64_t result = record->evaluate();
  if (call.is_test) {
    if (result < 0) return call.quantity == abi::Quantity::any ? SIZE_MAX : 0;
  } else {
    while (result < 0) {
      record->block = &block;
      record->thread = block.running_index();
      record->wait.first = pe.heap().offset_of(call.first);
      record->wait.size_bytes = call.count * static_cast<unsigned>(call.size_bytes);
      record->wait.context = record.get();
      record->wait.holds = [](const transport::MemoryWait& wait) {
        return static_cast<WaitRecord*>(wait.context)->evaluate() >= 0;
      };
      record->wait.ready = [](transport::MemoryWait& wait) {
        const auto& ended = *static_cast<WaitRecord*>(wait.context);
        ended.block->woken(ended.thread, {wait.first, wait.size_bytes});
      };
      record->wait.describe = [](const transport::MemoryWait& wait) {
        return static_cast<WaitRecord*>(wait.context)->describe();
      };
      block.running().state = Thread::State::waiting;
      pe.remote_memory().wait(record->wait);
      pe.hazards().add_wait(*record);
      block.suspend_for(Activity::wait, site);
      pe.hazards().remove_wait(*record);
      result = record->evaluate();
    }
  }
  if (result >= 0 && block.history() != nullptr) pe.hazards().learn_from(*record, *block.history());
  if (call.is_signal) return record->value_at(0);
  if (result == INT64_MAX) return SIZE_MAX;
  if (call.indices != nullptr) {
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < call.count; ++i) {
      if (record->counts(i) && record->holds_at(i)) call.indices[next++] = i;
    }
  }
  return static_cast<std::uint64_t>(result);
}

}  // namespace towpath::gpu
