// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/routed_packets.hpp"

#include <algorithm>
#include <memory>

namespace towpath::tenstorrent {

// --- connections --------------------------------------------------------------------------------

void RoutedPackets::open(KernelWatch& kernel, int connection) {
  Connection& at = connections_[connection];
  if (at.user != nullptr && at.user != &kernel && !(at.closed && kernel.knows(*at.closed))) {
    kernel.fail(Hazard::two_workers_on_one_channel,
                "opens a router's channel that {} uses: the two are not ordered; use a channel for "
                "each of them",
                name_of(*at.user));
  }
  at.user = &kernel;
  at.closed.reset();
}

void RoutedPackets::check_end(const KernelWatch& kernel) const {
  const bool is_open = std::ranges::any_of(connections_, [&](const auto& connection) {
    return connection.second.user == &kernel && !connection.second.closed;
  });
  if (!is_open) return;
  throw HazardError(Hazard::missing_teardown, kernel.name(),
                    fmt::format("{} ends with an open connection to a router, which may still "
                                "write its words; close each connection before the kernel ends",
                                name_of(kernel)));
}

// --- sending ------------------------------------------------------------------------------------

std::size_t RoutedPackets::send(KernelWatch& kernel, int number, std::vector<Delivery> deliveries) {
  Connection& connection = connections_[number];
  const Stamp stamp = kernel.learner().step();
  Sent packet{.sender = &kernel, .parts = {}};
  for (Delivery& delivery : deliveries) {
    Sent::Part& part = packet.parts.emplace_back();
    for (const Delivery::Bytes& bytes : delivery.bytes) {
      part.arrivals.push_back(
          expect(kernel, connection, delivery.chip, {bytes.tile, bytes.offset, bytes.size_bytes}));
      part.arrivals.back().stamp = stamp;
    }
    part.delivery = std::move(delivery);
    check_buffers(kernel, part, stamp);
    std::optional<Delivery::Word>& word = part.delivery.word;
    if (word && records_.has_l1(part.delivery.chip, word->tile)) {
      kernel.note_target(part.delivery.chip, word->tile);
      part.word = word_stamp(stamp, connection, part.delivery);
    } else {
      word.reset();
    }
  }
  packets_.emplace(next_packet_, std::move(packet));
  return next_packet_++;
}

Arrived RoutedPackets::expect(KernelWatch& kernel, Connection& connection, int chip,
                              const L1Bytes& bytes) {
  const auto [tile, is_new] = connection.tiles.try_emplace({chip, bytes.tile});
  if (is_new) tile->second.stream = records_.new_stream();
  auto& [stream, position] = tile->second;
  const std::uint64_t shift = position - bytes.offset;
  position += bytes.size_bytes;
  if (!records_.has_l1(chip, bytes.tile)) return {{}, stream, shift};
  check_unused(kernel, chip, bytes);
  bytes_.check_change(kernel, chip, bytes);
  Ledger& there = records_.ledger(chip, bytes.tile);
  // The shift of replaced bytes of the same stream if all are unused.
  std::optional<std::uint64_t> unread;
  if (!there.used.has_any(bytes.offset, bytes.end())) {
    there.incoming.each(bytes.offset, bytes.end(),
                        [&, own = stream](std::uint64_t, std::uint64_t, const Incoming& incoming) {
                          if (incoming.stream == own) unread = incoming.shift;
                        });
  }
  there.used.erase(bytes.offset, bytes.end());
  there.incoming.assign(bytes.offset, bytes.end(), {stream, shift, &kernel, unread});
  return {{}, stream, shift};
}

// A kernel that has used bytes must release them before they are written again. If the sender has
// observed the first use, or has sent nothing there before, the reader has not waited for the bytes
// that are sent now.
void RoutedPackets::check_unused(const KernelWatch& kernel, int chip, const L1Bytes& bytes) const {
  const Ledger* const there = records_.find_ledger(chip, bytes.tile);
  if (there == nullptr) return;
  const bool was_sent_before = there->incoming.has_any(bytes.offset, bytes.end());
  there->used.each(
      bytes.offset, bytes.end(), [&](std::uint64_t first, std::uint64_t end, const Used& used) {
        if (used.user == &kernel || kernel.knows(used.last)) return;
        const std::string where =
            fmt::format("bytes {} to {} of {}", first, end - 1, name_of(bytes.tile, chip));
        if (was_sent_before && !kernel.knows(used.first)) {
          kernel.fail(Hazard::source_overwritten,
                      "sends {}, without proof that {} has used the previous data there; reuse a "
                      "buffer after its reader has released it",
                      where, name_of(*used.user));
        }
        throw HazardError(Hazard::sync_before_payload, used.user->name(),
                          fmt::format("{} uses {}, which {} sends, without proof that they have "
                                      "arrived; wait for a word that is sent after them",
                                      name_of(*used.user), where, name_of(kernel)));
      });
}

void RoutedPackets::check_buffers(const KernelWatch& kernel, const Sent::Part& part,
                                  const Stamp& stamp) {
  const Delivery& delivery = part.delivery;
  const bool is_own = delivery.chip == kernel.config().chip;
  for (std::size_t i = 0; i < delivery.bytes.size(); ++i) {
    const Delivery::Bytes& bytes = delivery.bytes[i];
    const Buffers::Use use{"writes", {bytes.tile, bytes.offset, bytes.size_bytes}};
    if (is_own) {
      buffers_.check_own(kernel, use);
    } else {
      buffers_.send(kernel, delivery.chip, use, part.arrivals[i]);
    }
  }
  if (!delivery.word) return;
  const Delivery::Word& word = *delivery.word;
  const Buffers::Use use{word.is_increment ? "increments" : "sets",
                         {word.tile, word.offset, noc::kWordBytes}};
  if (is_own) return buffers_.check_own(kernel, use);
  buffers_.change_word(kernel, delivery.chip, use, stamp);
  buffers_.check_word_at_start(kernel, delivery.chip, use.bytes);
}

// A read of the word proves the arrival of the earlier bytes on the same path.
Stamp RoutedPackets::word_stamp(const Stamp& stamp, const Connection& connection,
                                const Delivery& delivery) {
  const auto known = std::make_shared<Knowledge>(*stamp.known);
  for (const auto& [place, sent] : connection.tiles) {
    const auto& [chip, tile] = place;
    if (chip != delivery.chip) continue;
    if (!delivery.word->is_behind_everything && tile != delivery.word->tile) continue;
    known->arrivals.raise(sent.stream, sent.position);
  }
  return {known, stamp.place, stamp.clock};
}

// --- at the destination -------------------------------------------------------------------------

void RoutedPackets::use(KernelWatch& kernel, int chip, const L1Bytes& bytes) {
  if (connections_.empty() || bytes.size_bytes == 0) return;
  Ledger& there = records_.ledger(chip, bytes.tile);
  const Stamp now = kernel.learner().step();
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, Used>> again;
  there.used.each(bytes.offset, bytes.end(),
                  [&](std::uint64_t from, std::uint64_t to, const Used& used) {
                    if (used.user == &kernel)
                      again.push_back({{from, to}, {&kernel, used.first, now}});
                  });
  there.used.assign(bytes.offset, bytes.end(), {&kernel, now, now});
  for (auto& [range, used] : again) there.used.assign(range.first, range.second, std::move(used));
}

void RoutedPackets::delivered(std::size_t number, int chip) {
  const auto packet = packets_.find(number);
  if (packet == packets_.end()) return;
  auto& parts = packet->second.parts;
  const auto found =
      std::ranges::find_if(parts, [&](const auto& part) { return part.delivery.chip == chip; });
  if (found == parts.end()) return;
  const Sent::Part done = std::move(*found);
  parts.erase(found);
  KernelWatch& sender = *packet->second.sender;
  if (parts.empty()) packets_.erase(packet);
  for (std::size_t i = 0; i < done.arrivals.size(); ++i) {
    const Delivery::Bytes& bytes = done.delivery.bytes[i];
    if (!records_.has_l1(chip, bytes.tile)) continue;
    records_.ledger(chip, bytes.tile)
        .arrived.assign(bytes.offset, bytes.offset + bytes.size_bytes, done.arrivals[i]);
  }
  if (!done.delivery.word) return;
  const Delivery::Word& word = *done.delivery.word;
  words_.change(sender, {chip, word.tile, word.offset, word.value, word.is_increment}, done.word);
}

}  // namespace towpath::tenstorrent
