// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/hazard_monitor.hpp"

#include <fmt/format.h>

#include <utility>

#include "towpath/gpu/pe.hpp"
#include "towpath/gpu/wait_record.hpp"

namespace towpath::gpu {

namespace {

[[noreturn]] void refuse_unawaited(const MonitoredTransfer& transfer, const std::string& reader,
                                   Known known) {
  if (known == Known::only_fenced) {
    throw KernelError(
        Hazard::fence_for_quiet,
        fmt::format("fence where quiet is needed: {} reads bytes of {}, after which comes a fence; "
                    "a fence orders puts to one PE, but the signal came from another PE; call "
                    "nvshmem_quiet before other PEs are notified",
                    reader, transfer.what));
  }
  throw KernelError(
      Hazard::unawaited_data,
      fmt::format("unawaited data: {} reads bytes of {} without proof that they have arrived: it "
                  "has not waited for a signal that follows them; wait for that signal first",
                  reader, transfer.what));
}

// NVSHMEM guarantees the update of a signal only to waits for signals.
void remark_signal(const WaitRecord& wait, const SignalWord& word) {
  const Allocation* const of =
      wait.pe.memory().map().find(reinterpret_cast<std::uintptr_t>(wait.call.first));
  const bool is_of_library = of == nullptr || of->kind != MemoryKind::symmetric;
  if (word.landed.empty() || wait.call.is_test || is_of_library) return;
  const Signal& last = *word.landed.back();
  wait.pe.run().remarks.insert(fmt::format(
      "{} at {}:{} waits for a word that a signal raises{}{}; NVSHMEM promises signals only to "
      "nvshmem_signal_wait_until, and data behind them only after that",
      wait.site.call, wait.site.file, wait.site.line, last.what.empty() ? "" : ", by ", last.what));
}

[[noreturn]] void refuse_reuse(const std::string& again, const std::string& last) {
  throw KernelError(
      Hazard::signal_reused,
      fmt::format("signal reused: {} sends a signal on a word on which {} sent one before, of the "
                  "same or a higher value, without proof that its peer has seen that signal; let "
                  "the peer signal back, add a barrier between them, or send a higher value",
                  again, last));
}

}  // namespace

std::string HazardMonitor::thread_of(const Block& block, const void* where) const {
  const std::string place = object_.place_of(where);
  return fmt::format("thread {} of {}{}{}", block.running_index(), block.describe(),
                     place.empty() ? "" : " at ", place);
}

void HazardMonitor::check_read(const MonitoredTransfer& transfer, const Block& block,
                               const void* where) const {
  if (block.grid().launch().is_internal) return;
  const Known known = block.history()->knows(transfer.identity);
  if (known != Known::yes) refuse_unawaited(transfer, thread_of(block, where), known);
}

void HazardMonitor::check_sent(std::uintptr_t begin, std::uint64_t size_bytes, const Block& block,
                               const std::string& what) const {
  Known known = Known::yes;
  const MonitoredTransfer* const found =
      incoming.find_if(begin, begin + size_bytes, [&](const MonitoredTransfer& transfer) {
        known = block.history()->knows(transfer.identity);
        return known != Known::yes;
      });
  if (found != nullptr) refuse_unawaited(*found, what, known);
}

void HazardMonitor::check_change(const MonitoredTransfer& transfer, const Block& block,
                                 const void* where) const {
  const Known known = block.history()->knows(transfer.identity);
  if (known == Known::only_fenced) {
    throw KernelError(
        Hazard::fence_for_quiet,
        fmt::format("fence where quiet is needed: {} stores to bytes that {} may still read; the "
                    "fence between them orders puts but does not wait for them; call nvshmem_quiet",
                    thread_of(block, where), transfer.what));
  }
  if (known == Known::no) {
    throw KernelError(
        Hazard::source_changed,
        fmt::format("source changed: {} stores to bytes that {} may still read; call nvshmem_quiet "
                    "before the source of a put is used again",
                    thread_of(block, where), transfer.what));
  }
}

void HazardMonitor::check_signal(SignalWord& word, const Signal& signal, const Block& block) {
  const Signal* const last = std::exchange(word.last_set, &signal);
  const bool is_again = last != nullptr && last->payload.process == signal.payload.process &&
                        last->lane == signal.lane && signal.value <= last->value;
  if (!is_again || word.is_plain) return;
  const History& own = *block.history();
  if (last->seen.of != nullptr && own.knows(last->seen, last->seen_at)) return;
  if (own.knows_that(signal.payload.peer, last->payload)) return;
  word.reused_by = signal.what;
  word.reused_of = last->what;
  if (word.is_awaited) refuse_reuse(signal.what, last->what);
}

void HazardMonitor::note_wait(const WaitRecord& wait) {
  if (wait.call.size_bytes != 8) return;
  for (std::uint64_t i = 0; i < wait.call.count; ++i) {
    SignalWord& word = signal_words.at(wait.offset_at(i));
    word.is_awaited = true;
    if (!word.reused_by.empty() && !word.is_plain) refuse_reuse(word.reused_by, word.reused_of);
  }
}

void HazardMonitor::learn_from(const WaitRecord& wait, History& history) {
  const Time now = wait.pe.simulation().now();
  for (std::uint64_t i = 0; i < wait.call.count; ++i) {
    if (!wait.counts(i) || !wait.holds_at(i)) continue;
    SignalWord* const word =
        wait.call.size_bytes == 8 ? signal_words.find(wait.offset_at(i)) : nullptr;
    if (word == nullptr || word->is_plain || word->value != wait.value_at(i)) {
      history.learn_everything(now);
      continue;
    }
    if (!wait.call.is_signal) remark_signal(wait, *word);
    history.learn(now, *word);
    for (; word->seen < word->landed.size(); ++word->seen) {
      word->landed[word->seen]->seen = history.now();
      word->landed[word->seen]->seen_at = now;
    }
  }
}

void HazardMonitor::check_overshot() const {
  for (const WaitRecord* const wait : waits_) {
    const bool is_single = wait->call.count == 1 && wait->call.comparison == abi::Comparison::equal;
    if (!is_single || wait->order_at(0) <= 0) continue;
    throw KernelError(Hazard::overshot_wait,
                      fmt::format("overshot wait: {} at {}:{} in {} waits until its word is {}, "
                                  "but the word continued to {} before the thread read it; wait "
                                  "for NVSHMEM_CMP_GE, or notify the peer before it signals again",
                                  wait->site.call, wait->site.file, wait->site.line,
                                  wait->block->describe(), wait->values[0], wait->value_at(0)));
  }
}

}  // namespace towpath::gpu
