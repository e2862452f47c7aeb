// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "towpath/noc/chip_network.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

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

  // The current process waits for a place and begins a read. `to` is empty if only time passes;
  // `on_noc` is when its request is on the NoC, if that is not `before` from then.
  void begin(noc::Address from, std::uint64_t size_bytes, std::span<std::byte> to,
             std::optional<Time> on_noc = {});
  // Waits for all.
  void finish();

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
