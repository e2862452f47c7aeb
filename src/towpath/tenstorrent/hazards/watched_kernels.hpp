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

  // Programs of a chip run one after the other: a program begins when the previous one has ended.
  void begin_program(int chip);
  int program(int chip) const { return chips_[static_cast<std::size_t>(chip)].program; }
  KernelWatch& add(HazardMonitor& monitor, KernelWatch::Config config);
  void started(KernelWatch& kernel) const;
  void ended(KernelWatch& kernel);
  // The knowledge of all kernels of a chip that have ended.
  const Knowledge& known_at_end(int chip) const {
    return chips_[static_cast<std::size_t>(chip)].ended;
  }

  // The kernel of a generation at the end of a link, or null.
  const KernelWatch* at(machine::EthernetEnd end, int generation) const;
  // Whether a kernel knows that this program of a chip has begun, or a later one.
  bool knows_program(const KernelWatch& kernel, int chip, int program) const;

  // The kernel that runs at the other end of the link, or null.
  const KernelWatch* peer_of(const KernelWatch& kernel) const;
  // Kernels that could write one of these bytes of a kernel's core. They are those that have
  // written some of them, and the peer if it has, or may answer to a send from them. If there are
  // none, they are the kernels on the cores whose words the kernel has changed, or else all others
  // of the chip. In a range larger than a word, only words count that the kernel has looked at
  // since it idled.
  std::vector<const KernelWatch*> writers_of(const KernelWatch& owner, std::uint64_t offset,
                                             std::uint64_t size_bytes) const;

 private:
  struct Chip {
    int program = -1;  // the last one that has begun
    Knowledge known;   // of the kernels of earlier programs
    Knowledge ended;   // of all kernels that have ended
    std::vector<std::vector<KernelWatch*>> by_channel;
  };
  // A set of running kernels, in order.
  struct Writers {
    const KernelWatch& owner;
    std::vector<const KernelWatch*> found{};
    bool is_known = false;  // one of them runs
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
