// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/tenstorrent/hazards/ethernet_traffic.hpp"
#include "towpath/tenstorrent/hazards/noc_requests.hpp"

// Finds the mistakes of `Hazard` while kernels run, from what each kernel can know. An event is
// known to a kernel when a chain of words, written after the event and then looked at, leads from
// it to the kernel. An event that merely happened earlier in this run is not known, so a mistake is
// found whether or not it does any harm this time.

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

  // Adds a kernel of the program that has begun last. Its watch lives as long as the monitor.
  KernelWatch& add_kernel(KernelWatch::Config config);
  // The host has written these bytes over the writes of kernels.
  void host_has_written(int chip, machine::Coordinate tile, std::uint64_t offset,
                        std::uint64_t size_bytes);
  void arriving(machine::EthernetEnd at, std::uint64_t offset,
                std::span<const std::byte> bytes) override {
    ethernet.arriving(at, offset, bytes);
  }
};

}  // namespace towpath::tenstorrent
