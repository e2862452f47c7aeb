// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/sent_bytes.hpp"

#include <algorithm>

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;

void SentBytes::check_arrival(const KernelWatch& kernel, int chip, const L1Bytes& bytes) const {
  const Ledger* const there = records_.find_ledger(chip, bytes.tile);
  if (there == nullptr) return;
  there->incoming.each(
      bytes.offset, bytes.end(),
      [&](std::uint64_t first, std::uint64_t end, const Incoming& incoming) {
        const Learner& learner = kernel.learner();
        if (learner.knows_arrival(incoming.stream, end + incoming.shift)) return;
        if (map::is_handshake_area(first, end - first) || map::is_sync_word(first, end - first))
          return;
        if (incoming.unread_shift &&
            learner.knows_arrival(incoming.stream, end + *incoming.unread_shift)) {
          throw HazardError(
              Hazard::source_overwritten, incoming.sender->name(),
              fmt::format("{}: uses bytes {} to {} of {}, which {} has overwritten by a send; "
                          "reuse a buffer after its reader has released it",
                          kernel.where(), first, end - 1, name_of(bytes.tile, chip),
                          name_of(*incoming.sender)));
        }
        kernel.fail(Hazard::sync_before_payload,
                    "uses bytes {} to {} of {}, which {} has sent, without proof that they have "
                    "arrived; send the announcement after its payload",
                    first, end - 1, name_of(bytes.tile, chip), name_of(*incoming.sender));
      });
}

void SentBytes::check_change(const KernelWatch& kernel, int chip, const L1Bytes& bytes,
                             std::span<const std::byte> content) const {
  const Ledger* const there = records_.find_ledger(chip, bytes.tile);
  if (there == nullptr) return;
  there->sources.each(
      bytes.offset, bytes.end(), [&](std::uint64_t first, std::uint64_t end, const Source& source) {
        if (kernel.learner().knows_arrival(source.stream, source.end)) return;
        if (map::is_handshake_area(first, end - first)) return;
        // The last answers of an earlier program have no answer themselves.
        if (source.sender->is_over() &&
            source.sender->config().generation < kernel.config().generation) {
          return;
        }
        // A write without a change of value is allowed.
        if (!content.empty() &&
            records_.holds(chip, bytes.tile, first,
                           content.subspan(first - bytes.offset, end - first))) {
          return;
        }
        kernel.fail(Hazard::source_overwritten,
                    "changes bytes {} to {} of {}, from which {} sends, without proof that they "
                    "have arrived; wait for an acknowledgment before changing a source",
                    first, end - 1, name_of(bytes.tile, chip), name_of(*source.sender));
      });
}

// A writer that has communicated with the kernel was once allowed to write, and has written more.
void SentBytes::check_pushed(const KernelWatch& kernel, const L1Bytes& bytes) const {
  const KernelWatch::Config& config = kernel.config();
  const Ledger* const own = records_.find_ledger(config.chip, config.core);
  if (own == nullptr) return;
  own->pushed.each(
      bytes.offset, bytes.end(), [&](std::uint64_t first, std::uint64_t end, const Pushed& pushed) {
        if (kernel.knows(pushed.stamp)) return;
        const KernelWatch& writer = *pushed.writer;
        const bool knows_writer = kernel.knows(writer.begin());
        throw HazardError(
            Hazard::source_overwritten, knows_writer ? writer.name() : kernel.name(),
            fmt::format("{}: sends bytes {} to {} of {}, which {} writes, without proof that it is "
                        "done; {}",
                        kernel.where(), first, end - 1, name_of(config.core, config.chip),
                        name_of(writer),
                        knows_writer ? "let the writer wait until the buffer is free"
                                     : "send a source after its writer has released it"));
      });
}

void SentBytes::learn(KernelWatch& kernel, const Ledger& ledger, std::uint64_t offset,
                      std::uint64_t end) {
  Learner& learner = kernel.learner();
  ledger.arrived.each(offset, end, [&](std::uint64_t, std::uint64_t last, const Arrived& arrived) {
    learner.learn(arrived.stamp);
    // A line of L1 is written at once.
    constexpr std::uint64_t kLine = map::kChannelSyncBytes;
    learner.learn_arrival(arrived.stream, (last + kLine - 1) / kLine * kLine + arrived.shift);
  });
  ledger.pushed.each(offset, end, [&](std::uint64_t, std::uint64_t, const Pushed& pushed) {
    learner.learn(pushed.stamp);
  });
}

void SentBytes::replace(Ledger& ledger, std::uint64_t offset, std::uint64_t end) {
  ledger.incoming.erase(offset, end);
  ledger.arrived.erase(offset, end);
}

}  // namespace towpath::tenstorrent
