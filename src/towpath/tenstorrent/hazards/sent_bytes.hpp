// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "towpath/tenstorrent/hazards/chip_records.hpp"
#include "towpath/tenstorrent/hazards/kernel_watch.hpp"

namespace towpath::tenstorrent {

// Bytes of an L1.
struct L1Bytes {
  machine::Coordinate tile;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t end() const { return offset + size_bytes; }
};

// Bytes that sends read and write, over Ethernet, over the NoC and through routers, and the kernels
// with proof of their arrival.
//
// Hazards: source_overwritten, sync_before_payload.
class SentBytes {
 public:
  explicit SentBytes(ChipRecords& records) : records_(records) {}

  // A kernel uses bytes, after proof of their arrival.
  void check_arrival(const KernelWatch& kernel, int chip, const L1Bytes& bytes) const;
  // A kernel changes bytes: no send may still read them. `content` may be empty if it is unknown.
  void check_change(const KernelWatch& kernel, int chip, const L1Bytes& bytes,
                    std::span<const std::byte> content = {}) const;
  // A kernel sends bytes of its core, after proof that writes of other kernels into them are done.
  void check_pushed(const KernelWatch& kernel, const L1Bytes& bytes) const;
  // A kernel observes bytes. Adds their arrival to its observations.
  static void learn(KernelWatch& kernel, const Ledger& ledger, std::uint64_t offset,
                    std::uint64_t end);
  // A write or a store replaces bytes in flight.
  static void replace(Ledger& ledger, std::uint64_t offset, std::uint64_t end);

 private:
  ChipRecords& records_;
};

}  // namespace towpath::tenstorrent
