// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/symmetry.hpp"

namespace towpath::collective {
namespace {

bool is_alike(const Step& a, const Step& b) {
  return a.type == b.type && a.source == b.source && a.destination == b.destination &&
         a.publishes == b.publishes && a.count == b.count &&
         a.depends_on_block == b.depends_on_block && a.depends_on_step == b.depends_on_step;
}

bool are_alike(const Steps& a, const Steps& b) {
  if (a.list() == b.list()) return true;
  if (a.size() != b.size()) return false;
  for (std::size_t s = 0; s < a.size(); ++s) {
    if (!is_alike(a.unrotated(s), b.unrotated(s))) return false;
  }
  return true;
}

class Rotator {
 public:
  Rotator(const Schedule& schedule, int shift) : schedule_(schedule), shift_(shift) {}

  bool holds() const {
    const int ranks = schedule_.rank_count();
    for (int rank = 0; rank < ranks; ++rank) {
      const auto next = static_cast<std::size_t>((rank + shift_) % ranks);
      if (!is_rotated(schedule_.ranks[static_cast<std::size_t>(rank)], schedule_.ranks[next])) {
        return false;
      }
    }
    return true;
  }

 private:
  bool is_rotated(const RankProgram& from, const RankProgram& to) const {
    if (from.blocks.size() != to.blocks.size() || from.input_chunks != to.input_chunks ||
        from.output_chunks != to.output_chunks || from.scratch_chunks != to.scratch_chunks ||
        from.semaphores != to.semaphores) {
      return false;
    }
    for (std::size_t b = 0; b < from.blocks.size(); ++b) {
      if (!is_rotated(from.blocks[b], to.blocks[b])) return false;
    }
    return true;
  }
  bool is_rotated(const ThreadBlock& from, const ThreadBlock& to) const {
    return from.channel == to.channel && is_rotated(from.send_peer, to.send_peer) &&
           is_rotated(from.receive_peer, to.receive_peer) && from.accesses.empty() &&
           to.accesses.empty() && are_alike(from.steps, to.steps);
  }
  // A peer that does not exist matches nothing, so an invalid schedule has no symmetry.
  bool is_rotated(std::int32_t from, std::int32_t to) const {
    if (from == kNone || to == kNone) return from == to;
    const int ranks = schedule_.rank_count();
    return from >= 0 && from < ranks && to == (from + shift_) % ranks;
  }

  const Schedule& schedule_;
  int shift_;
};

}  // namespace

int rotation_period(const Schedule& schedule) {
  const int ranks = schedule.rank_count();
  if (!schedule.groups.empty()) return ranks;
  for (int shift = 1; shift <= ranks / 2; ++shift) {
    if (ranks % shift == 0 && Rotator(schedule, shift).holds()) return shift;
  }
  return ranks;
}

}  // namespace towpath::collective
