// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/machine/host.hpp"
#include "towpath/pcie/noc_way.hpp"
#include "towpath/pcie/window_table.hpp"

namespace towpath::pcie {

// What a host link is limited by; a study may switch a cause off to see what it was good for.
struct Limits {
  bool posted_writes = true;  // otherwise the core never waits for a write to leave
  bool noc = true;            // otherwise the chip takes whatever the link brings
};

// The way of a host's writes, one after the other: the core hands a line to the posted writes that
// have not left yet, if there is a place; they leave one per interval, over the link, as long as
// the chip's buffer has room; there they wait until the NoC has a place for one more
// acknowledgement. Whoever finds no place waits for the line that goes first.
//
//   Passed line = writes.pass(now, 64, way, Ordering::standard);
//
// Lines must be handed over in the order of their times.
class PostedWrites {
 public:
  // A piece that write-combining makes one write of.
  static constexpr std::uint64_t kLineBytes = 64;

  struct Passed {
    Time taken;   // the core may go on
    Time landed;  // the bytes are in memory
    Time done;    // and the chip knows
  };

  PostedWrites(const machine::Host& host, const machine::Chip& chip, Limits limits);

  // At most a line, which the core has ready at `ready`.
  Passed pass(Time ready, std::uint64_t size_bytes, const NocWay& way, Ordering ordering);
  // When the chip has acknowledged everything so far; a read that comes behind waits for it.
  Time all_done() const { return all_done_; }

 private:
  // The last so many times, of which the oldest decides when there is a place.
  class Places {
   public:
    explicit Places(std::size_t count) : times_(count) {}
    Time next_free() const { return times_[next_]; }
    void take_until(Time time) {
      times_[next_] = time;
      next_ = next_ + 1 == times_.size() ? 0 : next_ + 1;
    }

   private:
    std::vector<Time> times_;
    std::size_t next_ = 0;
  };

  Limits limits_;
  Time interval_;
  Rate link_rate_;
  Time one_way_;
  Time tile_one_way_;
  Time strict_time_;
  Places host_;
  Places chip_buffer_;
  Places outstanding_;
  Time link_free_;
  Time noc_free_;
  Time all_done_;
};

}  // namespace towpath::pcie
