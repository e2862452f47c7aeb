// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/ethernet_traffic.hpp"

#include <algorithm>

#include "towpath/base/index.hpp"

namespace towpath::tenstorrent {

namespace map = ethernet_memory_map;
using machine::EthernetEnd;

namespace {

// Largest frame whose words are compared one by one. A larger one counts as entirely changed.
constexpr std::size_t kSmallFrameBytes = 64;

[[noreturn]] void fail_unawaited(const KernelWatch& kernel, const Awaited& send) {
  throw HazardError(
      Hazard::missing_teardown, kernel.name(),
      fmt::format("{} ends without having waited for the {} bytes that {} has sent to its offset "
                  "{}; wait for all data that is sent to a kernel",
                  name_of(kernel), send.size_bytes, name_of(*send.sender), send.destination));
}

}  // namespace

void EthernetTraffic::send(KernelWatch& kernel, int queue, const ethernet::Command& command) {
  const KernelWatch::Config& config = kernel.config();
  const EthernetEnd from{config.chip, kernel.channel()};
  const auto to = records_.cluster().connected(from);
  if (!to || command.kind != ethernet::Command::Kind::write) return;
  const L1Bytes source{config.core, command.source, command.size_bytes};
  const L1Bytes target{records_.core_of(*to), command.destination, command.size_bytes};
  const bool is_for_handshakes = map::is_handshake_area(target.offset, target.size_bytes);
  if (!map::is_handshake_area(source.offset, source.size_bytes)) {
    bytes_.check_arrival(kernel, config.chip, source);
    bytes_.check_pushed(kernel, source);
  }
  if (!is_for_handshakes) {
    check_peer(kernel, command, *to);
    std::vector<std::byte> content(command.size_bytes);
    records_.network(config.chip).load(config.core, command.source, content);
    bytes_.check_change(kernel, to->chip, target, content);
  }
  const Stream stream = records_.stream_of(from, queue);
  Queue& sent = queues_[stream];
  const std::uint64_t position = sent.position;
  const std::uint64_t shift = position - target.offset;
  if (!is_for_handshakes) {
    buffers_.send(kernel, to->chip, {"writes", target}, {{}, stream, shift});
  }
  sent.position += command.size_bytes;
  sent.in_flight.push_back(
      {target.offset, target.size_bytes, position, 0, &kernel, kernel.learner().step()});
  if (!is_for_handshakes) {
    sent.awaited[config.generation] = {sent.position, &kernel, target.offset, target.size_bytes};
  }
  records_.ledger(config.chip, config.core)
      .sources.assign(source.offset, source.end(), {stream, sent.position, &kernel});
  records_.ledger(to->chip, target.tile)
      .incoming.assign(target.offset, target.end(), {stream, shift, &kernel});
}

// Checks that the kernel at the far end can receive it.
void EthernetTraffic::check_peer(const KernelWatch& kernel, const ethernet::Command& command,
                                 EthernetEnd to) const {
  const KernelWatch* const peer = kernels_.at(to, kernel.config().generation);
  if (peer != nullptr && peer->is_over()) {
    throw HazardError(
        Hazard::missing_teardown, peer->name(),
        fmt::format("{}: sends {} bytes to offset {} of {}, where {} has ended; a kernel waits for "
                    "all that is sent to it",
                    kernel.where(), command.size_bytes, command.destination,
                    name_of(records_.core_of(to), to.chip), name_of(*peer)));
  }
  if (map::is_handshake_word(command.destination, command.size_bytes)) return;
  if (peer != nullptr && peer->is_running() && kernel.knows(peer->begin())) return;
  kernel.fail(Hazard::missing_handshake,
              "sends {} bytes to offset {} of {}, without proof that the kernel of the same "
              "program has started there; add a handshake first",
              command.size_bytes, command.destination, name_of(records_.core_of(to), to.chip));
}

void EthernetTraffic::arriving(EthernetEnd at, std::uint64_t offset,
                               std::span<const std::byte> bytes) {
  const EthernetEnd from = *records_.cluster().connected(at);
  for (int queue = 0; queue < records_.queues(from.chip); ++queue) {
    const Stream stream = records_.stream_of(from, queue);
    std::deque<InFlight>& in_flight = queues_[stream].in_flight;
    if (in_flight.empty()) continue;
    InFlight& command = in_flight.front();
    if (command.destination + command.arrived_bytes != offset) continue;
    const Arrived arrived{command.stamp, stream, command.position - command.destination};
    const KernelWatch* const sender = command.sender;
    command.arrived_bytes += bytes.size();
    if (command.arrived_bytes == command.size_bytes) in_flight.pop_front();
    return record_arrival(at, offset, bytes, arrived, sender);
  }
}

void EthernetTraffic::record_arrival(EthernetEnd at, std::uint64_t offset,
                                     std::span<const std::byte> bytes, const Arrived& arrived,
                                     const KernelWatch* sender) {
  const machine::Coordinate core = records_.core_of(at);
  Ledger& here = records_.ledger(at.chip, core);
  if (bytes.size() > kSmallFrameBytes) {
    return here.arrived.assign(offset, offset + bytes.size(), arrived);
  }
  for (std::uint64_t word = 0; word < bytes.size(); word += noc::kWordBytes) {
    // A word with an unchanged value does not announce an arrival.
    if (records_.holds(at.chip, core, offset + word, bytes.subspan(word, noc::kWordBytes)))
      continue;
    here.arrived.assign(offset + word, offset + word + noc::kWordBytes, arrived);
    const int channel = map::channel_of(offset + word);
    if (channel < 0) continue;
    here.unseen_syncs[index(channel)] = {0, sender, map::bytes_sent_at(channel), bytes.size()};
  }
}

void EthernetTraffic::check_end(const KernelWatch& kernel) const {
  const KernelWatch::Config& config = kernel.config();
  const auto from = records_.cluster().connected({config.chip, kernel.channel()});
  if (!from) return;
  for (int queue = 0; queue < records_.queues(from->chip); ++queue) {
    const Stream stream = records_.stream_of(*from, queue);
    const std::map<int, Awaited>& awaited = queues_[stream].awaited;
    const auto last = awaited.find(config.generation);
    if (last != awaited.end() && !kernel.learner().knows_arrival(stream, last->second.end)) {
      fail_unawaited(kernel, last->second);
    }
  }
  const Ledger* const ledger = records_.find_ledger(config.chip, config.core);
  if (ledger == nullptr) return;
  for (const auto& sync : ledger->unseen_syncs) {
    if (sync && sync->sender->config().generation == config.generation) {
      fail_unawaited(kernel, *sync);
    }
  }
}

}  // namespace towpath::tenstorrent
