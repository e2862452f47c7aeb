// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
// Mistakes of kernels with memory that transfers use, and with signals, named.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/gpu/operation.hpp"
#include "towpath/gpu/pe.hpp"

namespace towpath::gpu {

namespace {

std::string who(const Pe& pe, const Block& block, const void* where) {
  const std::string place = pe.object().place_of(where);
  return fmt::format("thread {} of {}{}{}", block.running_index(), block.describe(),
                     place.empty() ? "" : " at ", place);
}

[[noreturn]] void refuse_unawaited(const MonitoredTransfer& transfer, const std::string& reader,
                                   Known known) {
  if (known == Known::only_fenced) {
    throw KernelError(
        Hazard::fence_for_quiet,
        fmt::format(
            "fence where quiet is needed: {} reads bytes of {}, after which comes a fence; "
            "a fence orders what goes to one PE, and the word of it came by way of another; "
            "call nvshmem_quiet before telling others",
            reader, transfer.what));
  }
  throw KernelError(
      Hazard::unawaited_data,
      fmt::format(
          "unawaited data: {} reads bytes of {} and cannot know that they are there: it has "
          "not waited for a signal that follows them; wait for that signal first",
          reader, transfer.what));
}

[[noreturn]] void refuse_reuse(const std::string& again, const std::string& last) {
  throw KernelError(
      Hazard::signal_reused,
      fmt::format("signal reused: {} sends a signal on a word on which {} sent one before, of the "
                  "same or a higher value, and cannot know that its peer has seen that; let the "
                  "peer signal back, or a barrier come between, or send a higher value",
                  again, last));
}

}  // namespace

void Pe::forget_quiet_ranges() {
  abi::Current& running = current();
  std::fill_n(running.quiet_loads, abi::kQuietRanges, abi::Range{});
  std::fill_n(running.quiet_stores, abi::kQuietRanges, abi::Range{});
}

void Pe::note_plain(const void* address, std::uint64_t size_bytes) {
  const int owner = is_timed() ? owner_of(address) : transport::kNoPeer;
  if (owner == transport::kNoPeer) return;
  const auto begin = heaps_[static_cast<std::size_t>(owner)].begin;
  Pe& pe = *run_.pes[static_cast<std::size_t>(owner)];
  pe.signal_words_.note_plain(reinterpret_cast<std::uintptr_t>(address) - begin, size_bytes);
}

void Pe::check_read(const MonitoredTransfer& transfer, const Block& block,
                    const void* where) const {
  if (block.grid().launch().is_internal) return;
  const Known known = block.history()->knows(transfer.identity);
  if (known != Known::yes) refuse_unawaited(transfer, who(*this, block, where), known);
}

// What a put sends is read too.
void Pe::check_sent(std::uintptr_t begin, std::uint64_t size_bytes, const Block& block,
                    const std::string& what) const {
  Known known = Known::yes;
  const MonitoredTransfer* const found =
      monitor_.incoming.find_if(begin, size_bytes, [&](const MonitoredTransfer& transfer) {
        known = block.history()->knows(transfer.identity);
        return known != Known::yes;
      });
  if (found != nullptr) refuse_unawaited(*found, what, known);
}

void Pe::check_change(const MonitoredTransfer& transfer, const Block& block, const void* where) {
  const Known known = block.history()->knows(transfer.identity);
  if (known == Known::only_fenced) {
    throw KernelError(
        Hazard::fence_for_quiet,
        fmt::format("fence where quiet is needed: {} stores to bytes that {} may still read; the "
                    "fence between them orders puts and does not wait for them; call nvshmem_quiet",
                    who(*this, block, where), transfer.what));
  }
  if (known == Known::no) {
    throw KernelError(
        Hazard::source_changed,
        fmt::format("source changed: {} stores to bytes that {} may still read; call nvshmem_quiet "
                    "before the source of a put is used again",
                    who(*this, block, where), transfer.what));
  }
}

void Pe::check_signal(SignalWord& word, const Signal& signal, const Block& block) const {
  const Signal* const last = std::exchange(word.last_set, &signal);
  const bool is_again = last != nullptr && last->payload.pe == signal.payload.pe &&
                        last->lane == signal.lane && signal.value <= last->value;
  if (!is_again || word.is_plain) return;
  const History& own = *block.history();
  if (last->seen.of != nullptr && own.knows(last->seen, last->seen_at)) return;
  if (own.knows_that(signal.payload.peer, last->payload)) return;
  word.reused_by = signal.what;
  word.reused_of = last->what;
  if (word.is_awaited) refuse_reuse(signal.what, last->what);
}

void Pe::check_reuse(SignalWord& word) {
  if (!word.reused_by.empty() && !word.is_plain) refuse_reuse(word.reused_by, word.reused_of);
}

void Pe::check_overshot() const {
  for (const WaitRecord* const wait : waits_) {
    const bool is_single = wait->call.count == 1 && wait->call.comparison == abi::Comparison::equal;
    if (!is_single || wait->order_at(0) <= 0) continue;
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
