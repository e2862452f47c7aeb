// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/live/call.hpp"
#include "towpath/live/channels.hpp"
#include "towpath/live/shared_slots.hpp"

namespace towpath::live {

// One step of a collective: what goes to each rank, and what becomes of what comes from it.
struct Phase {
  std::vector<Span> sends;     // by rank; this rank's own is ignored
  std::vector<Span> receives;  // by rank, where bytes are stored; this rank's own is ignored
  // Instead of receives: every other rank sends as many bytes as `result` has, which are combined
  // with `own` in the order of the ranks.
  bool combines = false;
  const std::byte* own = nullptr;
  Span result;
  // `result` may be what is sent: a part of it is written once it is on its way to all.
  bool is_result_sent = false;
  std::uint32_t mark = 0;  // the same at both ends of a chunk; part of its stamp

  void clear(int ranks);
};

// Carries out a phase, as far as slots are free and chunks are there.
class Exchange {
 public:
  Exchange(Channels& channels, const Combination& combination);

  Phase& phase() { return phase_; }
  void begin();
  // Whether anything moved. Throws Mismatch.
  bool advance();
  bool is_done() const { return unfinished_ == 0 && channels_.all_sent(); }
  // Whether something is still to come from that rank.
  bool awaits(int peer) const;

 private:
  Span& send_of(int peer) { return phase_.sends[static_cast<std::size_t>(peer)]; }
  bool send_to(int peer);
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
  std::vector<std::uint64_t> received_;  // by rank; of a combination, this rank's counts
  int unfinished_ = 0;                   // transfers
};

}  // namespace towpath::live
