// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "towpath/ethernet/port.hpp"
#include "towpath/tenstorrent/hazards/buffers.hpp"

namespace towpath::tenstorrent {

// Sends of Ethernet cores over their links, from their submission to their arrival.
//
// Hazards: missing_handshake, missing_teardown.
class EthernetTraffic {
 public:
  EthernetTraffic(ChipRecords& records, const WatchedKernels& kernels, const SentBytes& bytes,
                  Buffers& buffers)
      : records_(records),
        kernels_(kernels),
        bytes_(bytes),
        buffers_(buffers),
        queues_(records.queue_streams()) {}

  // A kernel submits a write to a queue.
  void send(KernelWatch& kernel, int queue, const ethernet::Command& command);
  // Called before a frame is written into the L1 at an end of a link.
  void arriving(machine::EthernetEnd at, std::uint64_t offset, std::span<const std::byte> bytes);
  // Called at the end of a kernel. All sends of its peer must have arrived, and the kernel must
  // have observed every sync word.
  void check_end(const KernelWatch& kernel) const;

 private:
  struct InFlight {
    std::uint64_t destination = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t position = 0;
    std::uint64_t arrived_bytes = 0;
    const KernelWatch* sender = nullptr;
    Stamp stamp;
  };
  struct Queue {
    std::uint64_t position = 0;  // bytes submitted
    std::deque<InFlight> in_flight;
    std::map<int, Awaited> awaited;  // the last one, by generation
  };
  void check_peer(const KernelWatch& kernel, const ethernet::Command& command,
                  machine::EthernetEnd to) const;
  void record_arrival(machine::EthernetEnd at, std::uint64_t offset,
                      std::span<const std::byte> bytes, const Arrived& arrived,
                      const KernelWatch* sender);

  ChipRecords& records_;
  const WatchedKernels& kernels_;
  const SentBytes& bytes_;
  Buffers& buffers_;
  std::vector<Queue> queues_;  // by stream
};

}  // namespace towpath::tenstorrent
