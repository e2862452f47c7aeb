// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/window_table.hpp"

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
  NocWrites(noc::ChipNetwork& network, Time strict_time, std::function<void()> changed);
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

}  // namespace towpath::pcie
