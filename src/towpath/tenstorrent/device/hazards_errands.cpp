// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/tenstorrent/device/data_movement_core.hpp"
#include "towpath/tenstorrent/device/hazards.hpp"

// What kernels learn from packets that others carry for them: a fabric's routers, which are not
// watched themselves.

namespace towpath::tenstorrent {

using machine::TileKind;

// --- lines --------------------------------------------------------------------------------------

void KernelWatch::opening_line(int line) {
  HazardMonitor::Line& at = monitor_.lines_[line];
  if (at.user != nullptr && at.user != this && !(at.closed && learner_.knows(*at.closed))) {
    throw HazardError(
        Hazard::two_workers_on_one_channel, name(),
        fmt::format("{}: opens a router's channel that {} uses: neither knows of the other; a "
                    "channel serves one of them",
                    where(), name_of(*at.user)));
  }
  at = {this, std::nullopt};
}

void KernelWatch::closed_line(int line) { monitor_.lines_[line].closed = learner_.step(); }

void HazardMonitor::check_lines(const KernelWatch& kernel) const {
  const bool is_open = std::ranges::any_of(
      lines_, [&](const auto& line) { return line.second.user == &kernel && !line.second.closed; });
  if (!is_open) return;
  throw HazardError(
      Hazard::missing_teardown, kernel.name(),
      fmt::format("{} ends with an open connection to a router, which may still write its words; "
                  "a kernel closes what it has opened",
                  name_of(kernel)));
}

// --- sending ------------------------------------------------------------------------------------

bool HazardMonitor::has_l1(int chip, machine::Coordinate tile) const {
  const machine::Chip& on = *cluster_.chips[index(chip)].chip;
  if (!on.holds(tile)) return false;  // the network will refuse it
  const TileKind kind = on.tile(tile).kind;
  return kind == TileKind::worker || kind == TileKind::ethernet;
}

HazardMonitor::LinePart& HazardMonitor::part_of(int line, int chip, machine::Coordinate tile) {
  const auto [part, is_new] = line_parts_[line].try_emplace({chip, tile});
  if (is_new) part->second.stream = next_stream_++;
  return part->second;
}

std::size_t KernelWatch::entrusting(int line, std::vector<Errand> errands) {
  HazardMonitor::Entrusted packet{.sender = this, .stamp = learner_.step(), .errands = {}};
  for (Errand& errand : errands) {
    HazardMonitor::Entrusted::Errands& added = packet.errands.emplace_back();
    for (const Errand::Bytes& bytes : errand.bytes) {
      added.arrivals.push_back(monitor_.expect(*this, line, errand.chip, bytes));
      added.arrivals.back().stamp = packet.stamp;
    }
    monitor_.check_errand(*this, errand, added.arrivals, packet.stamp);
    if (errand.word && monitor_.has_l1(errand.chip, errand.word->tile)) {
      has_told(errand.chip, errand.word->tile);
      added.word = monitor_.word_stamp(packet.stamp, line, errand);
    } else {
      errand.word.reset();
    }
    added.errand = std::move(errand);
  }
  monitor_.entrusted_.emplace(monitor_.next_packet_, std::move(packet));
  return monitor_.next_packet_++;
}

HazardMonitor::Arrived HazardMonitor::expect(KernelWatch& kernel, int line, int chip,
                                             const Errand::Bytes& bytes) {
  LinePart& part = part_of(line, chip, bytes.tile);
  const std::uint64_t shift = part.position - bytes.offset;
  part.position += bytes.size_bytes;
  if (has_l1(chip, bytes.tile)) {
    check_unused(kernel, chip, bytes);
    check_sources(kernel, chip, {bytes.tile, bytes.offset, bytes.size_bytes});
    Ledger& there = ledger(chip, bytes.tile);
    const std::uint64_t end = bytes.offset + bytes.size_bytes;
    const auto unread = unread_shift(there, part, bytes);
    there.used.erase(bytes.offset, end);
    there.incoming.assign(bytes.offset, end, {part.stream, shift, &kernel, unread});
  }
  return {{}, part.stream, shift};
}

// Shift of bytes of the same way that are replaced before anybody has used them, if there are some.
std::optional<std::uint64_t> HazardMonitor::unread_shift(const Ledger& there, const LinePart& part,
                                                         const Errand::Bytes& bytes) {
  const std::uint64_t end = bytes.offset + bytes.size_bytes;
  std::optional<std::uint64_t> unread;
  there.incoming.each(bytes.offset, end,
                      [&](std::uint64_t, std::uint64_t, const Incoming& incoming) {
                        if (incoming.stream == part.stream) unread = incoming.shift;
                      });
  there.used.each(bytes.offset, end,
                  [&](std::uint64_t, std::uint64_t, const Used&) { unread.reset(); });
  return unread;
}

// Whoever looks at the word knows of the bytes that have gone the same way before it.
Stamp HazardMonitor::word_stamp(const Stamp& stamp, int line, const Errand& errand) {
  const auto known = std::make_shared<Knowledge>(*stamp.known);
  for (const auto& [place, part] : line_parts_[line]) {
    const auto& [chip, tile] = place;
    if (chip != errand.chip) continue;
    if (!errand.word->is_behind_everything && tile != errand.word->tile) continue;
    known->learn_arrival(part.stream, part.position);
  }
  return {known, stamp.place, stamp.clock};
}

// Who has used bytes that are going to be written must have said so. If the sender knows of a first
// use, or has written nothing there before, the reader has not waited for what is sent now.
void HazardMonitor::check_unused(const KernelWatch& kernel, int chip, const Errand::Bytes& bytes) {
  const Ledger& there = ledger(chip, bytes.tile);
  const std::uint64_t last = bytes.offset + bytes.size_bytes;
  bool was_sent_before = false;
  there.incoming.each(bytes.offset, last, [&](std::uint64_t, std::uint64_t, const Incoming&) {
    was_sent_before = true;
  });
  there.used.each(
      bytes.offset, last, [&](std::uint64_t first, std::uint64_t end, const Used& used) {
        if (used.user == &kernel || kernel.learner_.knows(used.last)) return;
        const std::string where = fmt::format("bytes {} to {} of core ({}, {}) of chip {}", first,
                                              end - 1, bytes.tile.x, bytes.tile.y, chip);
        if (was_sent_before && !kernel.learner_.knows(used.first)) {
          throw HazardError(
              Hazard::source_overwritten, kernel.name(),
              fmt::format(
                  "{}: sends {}, and cannot know that {} has used what was sent there before; "
                  "a buffer is written again when its reader has said that it is free",
                  kernel.where(), where, name_of(*used.user)));
        }
        throw HazardError(
            Hazard::sync_before_payload, used.user->name(),
            fmt::format(
                "{} uses {}, which {} sends, and cannot know that they have arrived; it waits "
                "for a word that is sent behind them",
                name_of(*used.user), where, name_of(kernel)));
      });
}

void HazardMonitor::use(KernelWatch& kernel, int chip, machine::Coordinate tile,
                        std::uint64_t first, std::uint64_t end) {
  if (lines_.empty() || first == end) return;
  Ledger& there = ledger(chip, tile);
  const Stamp now = kernel.learner_.step();
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, Used>> again;
  there.used.each(first, end, [&](std::uint64_t from, std::uint64_t to, const Used& used) {
    if (used.user == &kernel) again.push_back({{from, to}, {&kernel, used.first, now}});
  });
  there.used.assign(first, end, {&kernel, now, now});
  for (auto& [range, used] : again) there.used.assign(range.first, range.second, std::move(used));
}

// --- arriving -----------------------------------------------------------------------------------

void HazardMonitor::carried_out(std::size_t packet, int chip) {
  const auto at = entrusted_.find(packet);
  if (at == entrusted_.end()) return;
  auto& errands = at->second.errands;
  const auto found = std::ranges::find_if(
      errands, [&](const auto& candidate) { return candidate.errand.chip == chip; });
  if (found == errands.end()) return;
  const Entrusted::Errands done = std::move(*found);
  errands.erase(found);
  KernelWatch& sender = *at->second.sender;
  if (errands.empty()) entrusted_.erase(at);
  for (std::size_t i = 0; i < done.arrivals.size(); ++i) {
    const Errand::Bytes& bytes = done.errand.bytes[i];
    if (!has_l1(chip, bytes.tile)) continue;
    ledger(chip, bytes.tile)
        .arrived.assign(bytes.offset, bytes.offset + bytes.size_bytes, done.arrivals[i]);
  }
  if (!done.errand.word) return;
  const Errand::Word& changed = *done.errand.word;
  Word& word = word_at(chip, changed.tile, changed.offset);
  word.add_writer(sender);
  if (changed.is_increment) {
    increment(word, {changed.tile, changed.offset}, sender, done.word, changed.value);
  } else {
    set_inline(word, sender, done.word, changed.value);
  }
}

}  // namespace towpath::tenstorrent
