// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/posted_writes.hpp"

#include <algorithm>

#include "towpath/base/invariant.hpp"
#include "towpath/pcie/link_rate.hpp"

namespace towpath::pcie {

PostedWrites::PostedWrites(const machine::Host& host, const machine::Chip& chip, Limits limits)
    : limits_(limits),
      interval_(limits.posted_writes ? host.core.posted_write_interval : Time()),
      link_rate_(raw_rate(negotiated(host.link, chip.pcie))),
      one_way_(Time::from_ps(host.link.read_time.ps() / 2)),
      tile_one_way_(Time::from_ps(chip.pcie.tile_time.ps() / 2)),
      strict_time_(chip.pcie.strict_time),
      host_(static_cast<std::size_t>(host.core.posted_writes_max)),
      chip_buffer_(std::max<std::uint64_t>(chip.pcie.posted_buffer_bytes / kLineBytes, 1)),
      outstanding_(static_cast<std::size_t>(chip.pcie.writes_outstanding)) {}

PostedWrites::Passed PostedWrites::pass(Time ready, std::uint64_t size_bytes, const NocWay& way,
                                        Ordering ordering) {
  TOWPATH_CHECK(size_bytes >= 1 && size_bytes <= kLineBytes, "a line of {} bytes", size_bytes);
  Passed passed;
  passed.taken = limits_.posted_writes ? std::max(ready, host_.next_free()) : ready;

  Time leaves = std::max(passed.taken, link_free_);
  if (limits_.posted_writes && limits_.noc) leaves = std::max(leaves, chip_buffer_.next_free());
  const Time on_link = transfer_time(Bytes(size_bytes + kWriteOverheadBytes), link_rate_);
  link_free_ = leaves + std::max(interval_, on_link);
  host_.take_until(link_free_);

  Time issued = leaves + on_link + one_way_ + tile_one_way_;
  const bool is_acknowledged = ordering != Ordering::posted;
  if (limits_.noc) {
    issued = std::max(issued, noc_free_);
    if (is_acknowledged) issued = std::max(issued, outstanding_.next_free());
    noc_free_ = issued + transfer_time(Bytes(size_bytes), way.rate);
  }
  chip_buffer_.take_until(issued);
  passed.landed = issued + way.one_way();
  passed.done = passed.landed;
  if (is_acknowledged) {
    passed.done = issued + way.write();
    if (ordering == Ordering::strict) passed.done += strict_time_;
    outstanding_.take_until(passed.done);
  }
  all_done_ = std::max(all_done_, passed.done);
  return passed;
}

}  // namespace towpath::pcie
