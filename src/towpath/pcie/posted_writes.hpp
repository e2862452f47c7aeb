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

// Limits of a host link; a study may switch off a cause to measure its effect.
struct Limits {
  bool posted_writes = true;  // otherwise the core never waits for a write to leave
  bool noc = true;            // otherwise the chip takes everything at the rate of the link
};

// Path of a host's writes, in order. The core hands a line to the posted writes that have not left
// yet, if there is a place. They leave one per interval, over the link, as long as the chip's
// buffer has room; there they wait until the NoC has a place for one more acknowledgement. Where
// there is no place, a line waits for the oldest one to leave.
//
//   Passed line = writes.pass(now, 64, way, Ordering::standard);
//
// Lines must be handed over in order of time.
class PostedWrites {
 public:
  // Largest piece that write-combining makes one write of.
  static constexpr std::uint64_t kLineBytes = 64;

  struct Passed {
    Time taken;   // when the core may continue
    Time landed;  // when the bytes are in memory
    Time done;    // when the chip knows
  };

  PostedWrites(const machine::Host& host, const machine::Chip& chip, Limits limits);

  // Passes at most a line, which the core has ready at `ready`.
  Passed pass(Time ready, std::uint64_t size_bytes, const NocWay& way, Ordering ordering);
  // When the chip will have acknowledged everything up to now. A following read waits for it.
  Time all_done() const { return all_done_; }

 private:
  // The times of the last `size` occupants; the oldest decides when there is a place.
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
