// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "towpath/tenstorrent/hazards/chip_records.hpp"
#include "towpath/tenstorrent/hazards/kernel_watch.hpp"

namespace towpath::tenstorrent {

// Words of L1 that synchronize kernels: semaphores, flags, counts. Semaphores are counted exactly.
// The content of a word written over the NoC counts as observed from the issue of the write, if it
// is consistent with the observed value.
//
// Hazard: semaphore_cleared_after_notification.
class Words {
 public:
  explicit Words(ChipRecords& records) : records_(records) {}

  // The word has its initial value, and no kernel has written it.
  void initialise(int chip, machine::Coordinate core, std::uint64_t offset) {
    records_.ledger(chip, core).words.erase(offset);
  }
  // A kernel observes a value of a tile's word, and continues because of `needed`.
  void look(KernelWatch& kernel, Ledger& ledger, std::uint64_t offset, std::uint32_t value,
            std::uint32_t needed);
  // It reads all words of a range of another core.
  void look_at_all(KernelWatch& kernel, int chip, machine::Coordinate tile, std::uint64_t first,
                   std::uint64_t end);
  // It stores bytes into its L1.
  void store(KernelWatch& kernel, std::uint64_t offset, std::span<const std::byte> bytes,
             const Stamp& stamp);
  // It changes a word of a core: by an increment, or to a value.
  struct Change {
    int chip = 0;
    machine::Coordinate tile;
    std::uint64_t offset = 0;
    std::uint32_t value = 0;
    bool is_increment = true;
  };
  void change(KernelWatch& kernel, const Change& change, const Stamp& stamp);

 private:
  Word& word_at(int chip, machine::Coordinate tile, std::uint64_t offset);
  static void learn(KernelWatch& kernel, Word& word, std::uint32_t value, std::uint32_t needed);
  static void increment(KernelWatch& kernel, Word& word, const Change& change, const Stamp& stamp);

  ChipRecords& records_;
};

}  // namespace towpath::tenstorrent
