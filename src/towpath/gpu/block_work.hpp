// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/base/units.hpp"
#include "towpath/gpu/profile.hpp"
#include "towpath/gpu/work.hpp"

namespace towpath::gpu {

class Pe;

// The loads and stores of a block, counted while its threads run in zero time, and the time that
// they take. The accesses of one moment form a segment. Segments follow each other.
class BlockWork {
 public:
  // `timeline` may be null.
  BlockWork(Pe& pe, int multiprocessor, int threads, BlockTimeline* timeline);

  // Adds the accesses of the running thread since the last call.
  void fold_counters();
  // The end of all work until now.
  Time busy_until() const;
  // The end of the running thread's accesses, including those not yet added.
  Time thread_time() const;

  // Time until the block's last stores are acknowledged. A fence awaits them.
  Time acknowledgement() const;
  void clear_stores() { has_stored_ = has_stored_to_peer_ = false; }

 private:
  void close_segment();

  Pe& pe_;
  int multiprocessor_;
  BlockTimeline* timeline_;
  Time begin_;               // of the segment
  Work work_;                // in the segment
  Time floor_{};             // end of earlier segments
  bool has_stored_ = false;  // since the last system fence
  bool has_stored_to_peer_ = false;
};

}  // namespace towpath::gpu
