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

// Limits of a host link. A study may disable one to measure its effect.
struct Limits {
  bool posted_writes = true;  // otherwise the core never waits for a write to leave
  bool noc = true;            // otherwise the chip accepts everything at the rate of the link
};

// Path of a host's writes, in order. The core passes a line to the posted-write buffer if there is
// a place. Lines leave one per interval over the link, as long as the chip's buffer has space.
// There they wait until the NoC has a place for another acknowledgement. Without a place, a line
// waits for the oldest one to leave.
//
//   Passed line = writes.pass(now, 64, way, Ordering::standard);
//
// Lines must be passed in order of time.
class PostedWrites {
 public:
  // Largest write that write-combining forms.
  static constexpr std::uint64_t kLineBytes = 64;

  struct Passed {
    Time taken;   // when the core may continue
    Time landed;  // when the bytes are in memory
    Time done;    // arrival of the acknowledgement at the chip
  };

  PostedWrites(const machine::Host& host, const machine::Chip& chip, Limits limits);

  // Passes at most a line, available from the core at `ready`.
  Passed pass(Time ready, std::uint64_t size_bytes, const NocWay& way, Ordering ordering);
  // The time at which the chip will have acknowledged everything so far. A following read waits for
  // it.
  Time all_done() const { return all_done_; }

 private:
  // The times of the last `size` occupants. The oldest one determines the next free place.
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
