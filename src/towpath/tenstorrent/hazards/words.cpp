// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/words.hpp"

#include <algorithm>

namespace towpath::tenstorrent {

namespace {

// Maximum number of increments per word that are kept separately.
constexpr std::size_t kIncrementsMax = 32;

// True if a word with `value` includes an increment to `total`.
bool has_reached(std::uint32_t value, std::uint32_t total) {
  return static_cast<std::int32_t>(value - total) >= 0;
}

// A store would lose an increment that the kernel may not have observed.
void check_store(const KernelWatch& kernel, std::uint64_t offset, const Word& word) {
  for (const Word::Increment& increment : word.increments) {
    if (increment.writer == &kernel || kernel.knows(increment.stamp)) continue;
    kernel.fail(Hazard::semaphore_cleared_after_notification,
                "sets its word at offset {}, which {} may have incremented since it was last read; "
                "clear a semaphore before its partner is notified",
                offset, name_of(*increment.writer));
  }
}

}  // namespace

Word& Words::word_at(int chip, machine::Coordinate tile, std::uint64_t offset) {
  const auto [at, is_new] = records_.ledger(chip, tile).words.try_emplace(offset);
  if (is_new) at->second.base = records_.network(chip).memory(tile).load_word(offset);
  return at->second;
}

void Words::look(KernelWatch& kernel, Ledger& ledger, std::uint64_t offset, std::uint32_t value,
                 std::uint32_t needed) {
  const auto word = ledger.words.find(offset);
  if (word != ledger.words.end()) learn(kernel, word->second, value, needed);
}

void Words::look_at_all(KernelWatch& kernel, int chip, machine::Coordinate tile,
                        std::uint64_t first, std::uint64_t end) {
  auto& words = records_.ledger(chip, tile).words;
  for (auto at = words.lower_bound(first); at != words.end() && at->first < end; ++at) {
    const std::uint32_t value = records_.network(chip).memory(tile).load_word(at->first);
    learn(kernel, at->second, value, value);
  }
}

// Only increments that were required to continue count: in another run there may be no more.
void Words::learn(KernelWatch& kernel, Word& word, std::uint32_t value, std::uint32_t needed) {
  Learner& learner = kernel.learner();
  for (const Word::Increment& increment : word.increments) {
    if (!word.is_counted || has_reached(needed, increment.total)) learner.learn(increment.stamp);
  }
  learner.learn(word.seen);
  if (word.store) learner.learn(word.store->stamp);
  if (word.inline_write && word.inline_value == value) learner.learn(word.inline_write->stamp);
  if (word.increments.size() < kIncrementsMax) return;
  word.base = word.increments.back().total;
  std::erase_if(word.increments, [&](const Word::Increment& increment) {
    if (word.is_counted && !has_reached(needed, increment.total)) return false;
    word.seen.join(*increment.stamp.known);
    word.seen.clocks.raise(increment.stamp.place, increment.stamp.clock);
    return true;
  });
}

void Words::store(KernelWatch& kernel, std::uint64_t offset, std::span<const std::byte> bytes,
                  const Stamp& stamp) {
  const auto& [chip, core] = std::pair(kernel.config().chip, kernel.config().core);
  const std::uint64_t end = offset + bytes.size();
  if (bytes.size() == noc::kWordBytes) word_at(chip, core, offset);
  auto& words = records_.ledger(chip, core).words;
  for (auto at = words.lower_bound(offset); at != words.end() && at->first < end; ++at) {
    Word& word = at->second;
    check_store(kernel, at->first, word);
    word.increments.clear();
    word.inline_write.reset();
    word.store = {&kernel, stamp};
    if (at->first + noc::kWordBytes > end) continue;
    std::ranges::copy(bytes.subspan(at->first - offset, noc::kWordBytes),
                      std::as_writable_bytes(std::span(&word.base, 1)).begin());
  }
}

void Words::change(KernelWatch& kernel, const Change& change, const Stamp& stamp) {
  Word& word = word_at(change.chip, change.tile, change.offset);
  if (std::ranges::find(word.writers, &kernel) == word.writers.end()) {
    word.writers.push_back(&kernel);
  }
  if (change.is_increment) return increment(kernel, word, change, stamp);
  word.inline_value = change.value;
  word.base = change.value;
  word.increments.clear();
  word.inline_write = {&kernel, stamp};
}

void Words::increment(KernelWatch& kernel, Word& word, const Change& change, const Stamp& stamp) {
  if (word.store && word.store->writer != &kernel && !stamp.covers(word.store->stamp)) {
    const KernelWatch& owner = *word.store->writer;
    throw HazardError(
        Hazard::semaphore_cleared_after_notification, owner.name(),
        fmt::format("{}: increments the word at offset {} of core ({}, {}), without proof that {} "
                    "has already set it; clear a semaphore before its partner is notified",
                    kernel.where(), change.offset, change.tile.x, change.tile.y, name_of(owner)));
  }
  const std::uint32_t before = word.increments.empty() ? word.base : word.increments.back().total;
  word.increments.push_back({before + change.value, &kernel, stamp});
  if (static_cast<std::int32_t>(change.value) < 0) word.is_counted = false;
}

}  // namespace towpath::tenstorrent
