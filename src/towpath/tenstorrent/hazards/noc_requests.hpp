// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/noc/niu/request.hpp"
#include "towpath/tenstorrent/hazards/routed_packets.hpp"

namespace towpath::tenstorrent {

// Reads, writes and atomics of kernels over the NoC of their chip.
//
// Hazard: two_workers_on_one_channel.
class NocRequests {
 public:
  NocRequests(ChipRecords& records, const SentBytes& bytes, Words& words, Buffers& buffers,
              RoutedPackets& packets)
      : records_(records), bytes_(bytes), words_(words), buffers_(buffers), packets_(packets) {}

  void issue(KernelWatch& kernel, const noc::Request& request);

 private:
  void read(KernelWatch& kernel, const noc::Request& request);
  void write(KernelWatch& kernel, const noc::Request& request, const L1Bytes& to,
             const Stamp& stamp);
  void change_word(KernelWatch& kernel, const noc::Request& request, const L1Bytes& word,
                   const Stamp& stamp);

  ChipRecords& records_;
  const SentBytes& bytes_;
  Words& words_;
  Buffers& buffers_;
  RoutedPackets& packets_;
};

}  // namespace towpath::tenstorrent
