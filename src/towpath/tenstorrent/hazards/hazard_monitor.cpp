// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/hazard_monitor.hpp"

#include <utility>

namespace towpath::tenstorrent {

HazardMonitor::HazardMonitor(const machine::ChipCluster& cluster)
    : records(cluster),
      kernels(records),
      bytes(records),
      words(records),
      buffers(records, kernels),
      ethernet(records, kernels, bytes, buffers),
      packets(records, bytes, words, buffers),
      requests(records, bytes, words, buffers, packets) {}

KernelWatch& HazardMonitor::add_kernel(KernelWatch::Config config) {
  return kernels.add(*this, std::move(config));
}

void HazardMonitor::host_has_written(int chip, machine::Coordinate tile, std::uint64_t offset,
                                     std::uint64_t size_bytes) {
  if (records.find_ledger(chip, tile) == nullptr) return;
  Ledger& there = records.ledger(chip, tile);
  const std::uint64_t end = offset + size_bytes;
  there.words.erase(there.words.lower_bound(offset), there.words.lower_bound(end));
  SentBytes::replace(there, offset, end);
  there.pushed.erase(offset, end);
}

}  // namespace towpath::tenstorrent
