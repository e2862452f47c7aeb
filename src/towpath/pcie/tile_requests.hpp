// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/window_table.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

// Request of the PCIe tile on the NoC that tt-umd's windows select.
noc::Request tile_request(const machine::Chip& chip, noc::RequestKind kind, noc::Address remote,
                          std::uint64_t size_bytes);

// Writes that arrive at the PCIe tile and become requests on its chip's NoC, in order. At the limit
// of unacknowledged writes the next one waits in the tile. Posted writes never wait.
class NocWrites final : private noc::Outside {
 public:
  struct Write {
    noc::Address to;
    std::uint64_t size_bytes = 0;
    std::vector<std::byte> data;  // empty: only time passes
    Ordering ordering = Ordering::standard;
    bool waits_for_earlier = false;  // until all writes before it are done
  };

  // A write of strict ordering counts as acknowledged `strict_time` later. `changed` is called
  // after each decrease of waiting() or unfinished().
  NocWrites(noc::ChipNetwork& network, Time strict_time, std::function<void()> changed)
      : network_(network), strict_time_(strict_time), changed_(std::move(changed)) {}
  NocWrites(const NocWrites&) = delete;
  NocWrites& operator=(const NocWrites&) = delete;

  // Times must not decrease from one write to the next.
  void arrive(Time when, Write write);
  // Writes that have not left the tile for the NoC, including writes that have not arrived.
  std::size_t waiting() const { return waiting_; }
  // Writes that are not acknowledged or, if posted, not in memory.
  std::size_t unfinished() const { return unfinished_; }

 private:
  void request_left(std::uint64_t number) override;
  void request_completed(std::uint64_t number, std::span<const std::byte> data) override;
  static void arrived(void* self);
  static void acknowledged(void* self);
  static void issue(void* self);
  void issue_soon();
  bool may_issue(const Write& write) const;

  noc::ChipNetwork& network_;
  Time strict_time_;
  std::function<void()> changed_;
  std::deque<Write> coming_;
  std::deque<Write> arrived_;
  std::size_t waiting_ = 0;
  std::size_t unfinished_ = 0;
  std::size_t under_way_ = 0;  // on the NoC
  int unacknowledged_ = 0;
  bool is_issue_due_ = false;
};

// Reads of the PCIe tile over its chip's NoC, for a process. A few at once, each with a place from
// its start to the arrival of its data.
class NocReads final : private noc::Outside {
 public:
  struct Way {
    int places = 1;
    Time before;  // until the request is on the NoC
    Time after;   // until the data has reached the reader
  };
  // `came` is called with the size of each read at its end.
  NocReads(noc::ChipNetwork& network, const Way& way,
           std::function<void(std::uint64_t size_bytes)> came = {});
  NocReads(const NocReads&) = delete;
  NocReads& operator=(const NocReads&) = delete;

  // The current process waits for a place and starts a read. `to` is empty if only time is
  // simulated. `on_noc` is the time at which its request is on the NoC, unless that is `before`
  // from then.
  void begin(noc::Address from, std::uint64_t size_bytes, std::span<std::byte> to,
             std::optional<Time> on_noc = {});
  // Waits for all reads.
  void finish() { wait_until_at_most(0); }

 private:
  struct Read {
    noc::Address from;
    std::uint64_t size_bytes = 0;
    std::span<std::byte> to;
  };

  void request_left(std::uint64_t) override {}
  void request_completed(std::uint64_t number, std::span<const std::byte> data) override;
  static void issue(void* self);
  static void arrived(void* self);
  void wait_until_at_most(int under_way);

  noc::ChipNetwork& network_;
  Way way_;
  std::function<void(std::uint64_t)> came_;
  std::vector<Read> reads_;            // by position
  std::vector<std::uint64_t> free_;    // places
  std::deque<std::uint64_t> leaving_;  // in flight to the NoC, in order
  std::deque<std::uint64_t> returning_;
  sim::Process* waiting_ = nullptr;
};

}  // namespace towpath::pcie
