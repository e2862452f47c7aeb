// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/live/call.hpp"
#include "towpath/live/channels.hpp"

namespace towpath::live {

// One step of a collective: the data for each rank, and the use of the data from each rank.
struct Phase {
  std::vector<Span> sends;     // by rank, except this one
  std::vector<Span> receives;  // by rank, except this one
  // Instead of receives: every other rank sends the size of `result`, and all are combined with
  // `own` in the order of the ranks.
  bool combines = false;
  const std::byte* own = nullptr;
  Span result;
  // `result` may overlap memory that is sent: a part of it is written when it is on its way to all
  // ranks.
  bool is_result_sent = false;
  // No data is written before a chunk of each sending rank has arrived.
  bool begins_together = false;
  std::uint32_t mark = 0;  // part of the stamp of a chunk

  void clear(int ranks);
};

// Runs a phase within the limits of free slots and arrived chunks.
class PhaseTransfer {
 public:
  PhaseTransfer(Channels& channels, const Combination& combination);

  Phase& phase() { return phase_; }
  void begin();
  // True if any data moved. Throws Mismatch.
  bool advance();
  bool is_done() const { return unfinished_ == 0 && channels_.all_sent(); }
  // True if the phase depends on that rank.
  bool awaits(int peer) const;

 private:
  Span& send_of(int peer) { return phase_.sends[index(peer)]; }
  bool send_to(int peer);
  bool have_all_begun() const;
  bool copy_own();
  bool receive_from(int peer);
  bool combine_arrived();
  void combine_chunk(std::uint64_t size);
  bool has_arrived(int peer, std::uint64_t size) const;
  std::uint32_t stamp_of(std::uint64_t size) const;
  std::uint64_t sent_least() const;

  Channels& channels_;
  const Combination& combination_;
  Phase phase_;
  std::vector<std::uint64_t> sent_;      // by rank
  std::vector<std::uint64_t> received_;  // by rank. A combination uses the entry of this rank
  bool is_own_due_ = false;
  int unfinished_ = 0;  // transfers
};

}  // namespace towpath::live
