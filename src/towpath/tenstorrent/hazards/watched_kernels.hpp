// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "towpath/tenstorrent/hazards/chip_records.hpp"
#include "towpath/tenstorrent/hazards/kernel_watch.hpp"

namespace towpath::tenstorrent {

// All kernels of a run, and the wait-for graph between them.
class WatchedKernels {
 public:
  explicit WatchedKernels(ChipRecords& records);

  // Programs of a chip run sequentially: a program starts after the end of the previous one.
  void begin_program(int chip);
  int program(int chip) const { return chips_[static_cast<std::size_t>(chip)].program; }
  KernelWatch& add(HazardMonitor& monitor, KernelWatch::Config config);
  void started(KernelWatch& kernel) const;
  void ended(KernelWatch& kernel);
  // The combined observations of all ended kernels of a chip.
  const Knowledge& known_at_end(int chip) const {
    return chips_[static_cast<std::size_t>(chip)].ended;
  }

  // The kernel of a generation at the end of a link, or null.
  const KernelWatch* at(machine::EthernetEnd end, int generation) const;
  // True if the start of this program of a chip, or of a later one, is in a kernel's past.
  bool knows_program(const KernelWatch& kernel, int chip, int program) const;

  // The kernel that runs at the other end of the link, or null.
  const KernelWatch* peer_of(const KernelWatch& kernel) const;
  // Kernels that could write one of these bytes of a kernel's core: kernels that have written some
  // of them, and the peer if it has, or may answer a send from them. If there are none: the kernels
  // on cores with words changed by the kernel, or else all others of the chip. In a range larger
  // than a word, only words observed since the kernel idled count.
  std::vector<const KernelWatch*> writers_of(const KernelWatch& owner, std::uint64_t offset,
                                             std::uint64_t size_bytes) const;

 private:
  struct Chip {
    int program = -1;  // the last program started
    Knowledge known;   // of the kernels of earlier programs
    Knowledge ended;   // of all ended kernels
    std::vector<std::vector<KernelWatch*>> by_channel;
  };
  // A set of running kernels, in order.
  struct Writers {
    const KernelWatch& owner;
    std::vector<const KernelWatch*> found{};
    bool is_known = false;  // one of them is running
    void add(const KernelWatch* writer);
  };
  void add_writers(Writers& writers, std::uint64_t offset, std::uint64_t size_bytes) const;
  template <typename Could>
  void add_others(Writers& writers, const Could& could) const;

  ChipRecords& records_;
  std::vector<Chip> chips_;
  std::vector<std::unique_ptr<KernelWatch>> kernels_;
  std::map<Place, std::uint32_t> clocks_;  // of the last kernel at a place
};

}  // namespace towpath::tenstorrent
