// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/tenstorrent/hazards/ethernet_traffic.hpp"
#include "towpath/tenstorrent/hazards/noc_requests.hpp"

// Finds `Hazard`s in running kernels from the happens-before order. An event precedes a kernel if a
// chain of words, each written after the event and then observed, leads to it. Order in time is not
// sufficient, so a hazard is found even if it has no effect in this run.

namespace towpath::tenstorrent {

// Monitor of all chips of a cluster: one part for each kind of action, each with records, checks
// and sentences.
class HazardMonitor final : public FrameObserver {
 public:
  explicit HazardMonitor(const machine::ChipCluster& cluster);

  ChipRecords records;
  WatchedKernels kernels;
  SentBytes bytes;
  Words words;
  Buffers buffers;
  EthernetTraffic ethernet;
  RoutedPackets packets;
  NocRequests requests;

  // Adds a kernel of the program that was started last. Its watch lives as long as the monitor.
  KernelWatch& add_kernel(KernelWatch::Config config);
  // The host has overwritten these bytes.
  void host_has_written(int chip, machine::Coordinate tile, std::uint64_t offset,
                        std::uint64_t size_bytes);
  void arriving(machine::EthernetEnd at, std::uint64_t offset,
                std::span<const std::byte> bytes) override {
    ethernet.arriving(at, offset, bytes);
  }
};

}  // namespace towpath::tenstorrent
