// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "towpath/noc/niu/request.hpp"

namespace towpath::noc {

inline constexpr int kInitiatorsMax = 4;
inline constexpr int kTransactionIdsMax = 16;

// Counters of one NIU. They count packets, not requests, as in the hardware.
struct NiuCounters {
  std::uint32_t reads_issued = 0;
  std::uint32_t read_responses_received = 0;
  std::uint32_t read_responses_sent = 0;  // sent by this NIU to others
  std::uint32_t writes_issued = 0;        // writes with acknowledgement, inline writes included
  std::uint32_t writes_sent = 0;          // writes whose last flit has left the NIU
  std::uint32_t write_acks_awaited = 0;   // a multicast is acknowledged by each receiver
  std::uint32_t write_acks_received = 0;
  std::uint32_t posted_writes_issued = 0;
  std::uint32_t posted_writes_sent = 0;
  std::uint32_t atomics_issued = 0;
  std::uint32_t atomic_responses_awaited = 0;
  std::uint32_t atomic_responses_received = 0;
  // Packets of each initiator's last request that have not won a VC.
  std::array<std::uint32_t, kInitiatorsMax> packets_to_start{};
  // Outstanding packets per transaction id: a packet adds one, each answer subtracts one.
  // Multicasts have more answers than packets, so after one the number is meaningless. The
  // hardware's has 8 bits.
  std::array<std::int32_t, kTransactionIdsMax> outstanding{};
  std::array<std::int32_t, kTransactionIdsMax> outgoing{};  // writes with data that have not left
  std::uint32_t multicast_ids = 0;  // ids whose count is meaningless, one bit each

  // The stages of a core's request.
  void count_issued(const Request& request, std::uint32_t packets, std::uint32_t answers);
  void count_sent(const Request& request);
  void count_answer(const Request& request);
  // Resets the counts of these transaction ids to zero, one bit per id.
  void clear_outstanding(std::uint32_t ids);
};

}  // namespace towpath::noc
