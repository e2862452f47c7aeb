// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/noc_requests.hpp"

#include <vector>

#include "towpath/noc/niu/request_rules.hpp"

namespace towpath::tenstorrent {

using machine::TileKind;
using noc::RequestKind;

void NocRequests::issue(KernelWatch& kernel, const noc::Request& request) {
  const KernelWatch::Config& config = kernel.config();
  if (request.kind == RequestKind::read) return read(kernel, request);
  if (request.kind == RequestKind::write) {
    const L1Bytes source{config.core, request.local_offset, request.size_bytes};
    bytes_.check_arrival(kernel, config.chip, source);
    packets_.use(kernel, config.chip, source);
  }
  const Stamp stamp = kernel.learner().step();
  const machine::Chip& chip = records_.chip(config.chip);
  const std::vector<machine::Coordinate> tiles =
      request.is_multicast ? noc::receivers_of(chip, request)
                           : std::vector<machine::Coordinate>{request.remote.tile};
  for (const machine::Coordinate tile : tiles) {
    if (!chip.holds(tile)) continue;  // the network will reject it
    const L1Bytes to{tile, request.remote.offset, request.size_bytes};
    buffers_.check_own(kernel, {"writes", to});
    const TileKind kind = chip.tile(tile).kind;
    if (kind != TileKind::worker && kind != TileKind::ethernet) continue;
    if (request.size_bytes == noc::kWordBytes) {
      change_word(kernel, request, to, stamp);
    } else {
      write(kernel, request, to, stamp);
    }
  }
}

void NocRequests::read(KernelWatch& kernel, const noc::Request& request) {
  const KernelWatch::Config& config = kernel.config();
  const L1Bytes from{request.remote.tile, request.remote.offset, request.size_bytes};
  const L1Bytes to{config.core, request.local_offset, request.size_bytes};
  buffers_.check_own(kernel, {"reads", from});
  if (!records_.chip(config.chip).holds(from.tile)) return;  // the network will reject it
  if (records_.has_l1(config.chip, from.tile)) {
    // Reading a word is a check for its arrival.
    if (request.size_bytes > noc::kWordBytes) {
      bytes_.check_arrival(kernel, config.chip, from);
      packets_.use(kernel, config.chip, from);
    }
    SentBytes::learn(kernel, records_.ledger(config.chip, from.tile), from.offset, from.end());
    words_.look_at_all(kernel, config.chip, from.tile, from.offset, from.end());
  }
  bytes_.check_change(kernel, config.chip, to);
  SentBytes::replace(records_.ledger(config.chip, config.core), to.offset, to.end());
}

void NocRequests::write(KernelWatch& kernel, const noc::Request& request, const L1Bytes& to,
                        const Stamp& stamp) {
  const KernelWatch::Config& config = kernel.config();
  Ledger& there = records_.ledger(config.chip, to.tile);
  if (records_.chip(config.chip).tile(to.tile).kind == TileKind::ethernet) {
    there.pushed.each(to.offset, to.end(),
                      [&](std::uint64_t from, std::uint64_t end, const Pushed& other) {
                        if (other.writer == &kernel || kernel.knows(other.stamp)) return;
                        kernel.fail(Hazard::two_workers_on_one_channel,
                                    "writes bytes {} to {} of core ({}, {}), which {} writes too: "
                                    "the two are not ordered; use a buffer for each of them",
                                    from, end - 1, to.tile.x, to.tile.y, name_of(*other.writer));
                      });
    std::vector<std::byte> content(request.size_bytes);
    records_.network(config.chip).memory(config.core).read(request.local_offset, content);
    bytes_.check_change(kernel, config.chip, to, content);
  }
  there.pushed.assign(to.offset, to.end(), {&kernel, stamp});
  SentBytes::replace(there, to.offset, to.end());
}

void NocRequests::change_word(KernelWatch& kernel, const noc::Request& request, const L1Bytes& word,
                              const Stamp& stamp) {
  const KernelWatch::Config& config = kernel.config();
  kernel.note_target(config.chip, word.tile);
  Words::Change change{config.chip, word.tile, word.offset, request.value,
                       request.kind == RequestKind::atomic_increment};
  if (request.kind == RequestKind::write) {
    const noc::Memory& own = records_.network(config.chip).memory(config.core);
    change.value = own.load_word(request.local_offset);
  }
  words_.change(kernel, change, stamp);
}

}  // namespace towpath::tenstorrent
