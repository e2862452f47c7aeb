// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/noc/niu/request.hpp"
#include "towpath/noc/router/packet.hpp"

namespace towpath::noc {

// Division of requests into packets.
class PacketSizes {
 public:
  explicit PacketSizes(const machine::Chip& chip)
      : flit_bytes_(static_cast<std::uint64_t>(chip.router.flit_bytes)),
        max_bytes_(static_cast<std::uint64_t>(chip.router.packet_data_flits_max) * flit_bytes_) {}

  std::uint64_t max_bytes() const { return max_bytes_; }
  int packets_of(const Request& request) const;
  // Start of a packet's bytes in its request, and their number.
  std::uint64_t offset_of(std::uint32_t packet) const { return packet * max_bytes_; }
  std::uint64_t bytes_of(const Request& request, std::uint32_t packet) const {
    return std::min(max_bytes_, request.size_bytes - offset_of(packet));
  }
  int data_flits(std::uint64_t size_bytes) const {
    return static_cast<int>((size_bytes + flit_bytes_ - 1) / flit_bytes_);
  }

 private:
  std::uint64_t flit_bytes_;
  std::uint64_t max_bytes_;
};

enum class PacketRole : std::uint8_t { request, read_response, acknowledgement };

// Tag of a packet: its transaction, its number in it, and its role.
struct Tag {
  std::uint32_t transaction = 0;
  std::uint32_t packet = 0;
  PacketRole role = PacketRole::request;

  std::uint64_t pack() const {
    return std::uint64_t{transaction} << 32 | std::uint64_t{packet} << 2 |
           static_cast<std::uint64_t>(role);
  }
  static Tag unpack(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits >> 32),
            static_cast<std::uint32_t>(bits & 0xffffffffu) >> 2, static_cast<PacketRole>(bits & 3)};
  }
};

// Times of a request's stages, in cycles. -1: not yet, or never.
struct RequestTimes {
  Request request;
  Cycle issued = -1;
  Cycle started = -1;    // first packet won a VC
  Cycle sent = -1;       // last flit left the NIU
  Cycle received = -1;   // last packet was taken at the far end
  Cycle completed = -1;  // last answer was taken
};

// Off-chip initiator, such as the host behind a PCIe tile. It may not issue requests from within
// these calls.
class Outside {
 public:
  virtual ~Outside() = default;
  // The last flit of a write has left the tile.
  virtual void request_left(std::uint64_t number) = 0;
  // The last answer has arrived, or a posted write has been carried out. `data` is a read's.
  virtual void request_completed(std::uint64_t number, std::span<const std::byte> data) = 0;
};

// A request with packets in flight, or unanswered.
struct Transaction {
  Request request;
  std::vector<std::byte> data;  // data under way, for writes and read responses
  Cycle issued = 0;
  int packets = 0;
  int answers_left = 0;  // acknowledgements or responses still to come
  int to_leave = 0;
  int to_receive = 0;
  std::int32_t record = -1;
  std::int32_t uses_left = 0;  // packets that still refer to it
  Outside* outside = nullptr;  // its off-chip initiator, if it has one
  std::uint64_t outside_number = 0;

  bool carries_data() const { return !data.empty(); }
  // Reports the end to its off-chip initiator, if it has been reached.
  void report_completion() const;
  bool is_open() const { return uses_left > 0 && (to_leave > 0 || answers_left > 0); }
};

class Transactions {
 public:
  Transactions(const machine::Chip& chip, bool records_requests)
      : sizes_(chip), records_requests_(records_requests) {}

  const PacketSizes& sizes() const { return sizes_; }
  std::uint32_t add(const Request& request, int receivers, Cycle now);
  // A packet of the transaction has been received.
  void release(std::uint32_t number);
  Transaction& operator[](std::uint32_t number) { return transactions_[number]; }
  const Transaction& operator[](std::uint32_t number) const { return transactions_[number]; }
  // The bytes of a packet, in a transaction that carries data.
  std::span<std::byte> data_of(const Tag& tag) {
    return std::span(transactions_[tag.transaction].data)
        .subspan(sizes_.offset_of(tag.packet), bytes_of(tag));
  }
  std::uint64_t bytes_of(const Tag& tag) const {
    return sizes_.bytes_of(transactions_[tag.transaction].request, tag.packet);
  }
  // Transactions that packets refer to.
  std::int64_t unfinished() const { return unfinished_; }
  // The open request of a core that was issued first, or null if there is none.
  const Transaction* oldest_open(int noc, machine::Coordinate core) const;

  // Times of requests in order of issue, empty unless recorded.
  const std::vector<RequestTimes>& records() const { return records_; }
  // The record of a transaction, or null if there is none.
  RequestTimes* record_of(const Transaction& transaction) {
    if (transaction.record < 0) return nullptr;
    return &records_[static_cast<std::size_t>(transaction.record)];
  }

 private:
  PacketSizes sizes_;
  bool records_requests_;
  std::vector<Transaction> transactions_;
  std::vector<std::uint32_t> free_;
  std::int64_t unfinished_ = 0;
  std::vector<RequestTimes> records_;
};

}  // namespace towpath::noc
