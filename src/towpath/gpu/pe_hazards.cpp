// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Mistakes of kernels with memory that transfers use, named.
#include <fmt/format.h>

#include <algorithm>

#include "towpath/gpu/operation.hpp"
#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

std::string who(const Pe& pe, const Block& block, const void* where) {
  const std::string place = pe.object().place_of(where);
  return fmt::format("thread {} of {}{}{}", block.running_index(), block.describe(),
                     place.empty() ? "" : " at ", place);
}

}  // namespace

void Pe::forget_quiet_ranges() {
  abi::Current& running = current();
  std::fill_n(running.quiet_loads, abi::kQuietRanges, abi::Range{});
  std::fill_n(running.quiet_stores, abi::kQuietRanges, abi::Range{});
}

void Pe::check_read(const MonitoredTransfer& transfer, const Block& block,
                    const void* where) const {
  if (block.grid().launch().is_internal) return;
  if (transfer.began < block.acquired_at()) return;
  refuse_unawaited(transfer, who(*this, block, where));
}

void Pe::refuse_unawaited(const MonitoredTransfer& transfer, const std::string& reader) const {
  throw KernelError(
      Hazard::unawaited_data,
      fmt::format(
          "unawaited data: {} reads bytes of {} without having waited since that put began; "
          "wait for its signal first",
          reader, transfer.what));
}

void Pe::check_change(const MonitoredTransfer& transfer, const Block& block,
                      const void* where) const {
  if (transfer.began < block.acquired_at()) return;
  throw KernelError(
      Hazard::source_changed,
      fmt::format("source changed: {} stores to bytes that {} still reads; call nvshmem_quiet "
                  "before the source of a put is used again",
                  who(*this, block, where), transfer.what));
}

void Pe::check_overshot() const {
  for (const WaitRecord* const wait : waits_) {
    const bool is_single = wait->call.count == 1 && wait->call.comparison == abi::Comparison::equal;
    if (!is_single || wait->value_at(0) <= wait->values[0]) continue;
    throw KernelError(
        Hazard::overshot_wait,
        fmt::format(
            "overshot wait: {} at {}:{} in {} waits until its word is {}, but the word went "
            "on to {} before the thread looked; wait for NVSHMEM_CMP_GE, or let the peer "
            "know before it signals again",
            wait->site.call, wait->site.file, wait->site.line, wait->block->describe(),
            wait->values[0], wait->value_at(0)));
  }
}

}  // namespace towpath::gpu
