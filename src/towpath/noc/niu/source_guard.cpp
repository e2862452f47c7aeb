// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/noc/niu/source_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace towpath::noc {

void SourceGuard::add(std::uint32_t number) {
  const Transaction& transaction = transactions_[number];
  const PacketSizes& sizes = transactions_.sizes();
  const Request& request = transaction.request;
  for (std::uint32_t packet = 0; packet < static_cast<std::uint32_t>(transaction.packets);
       ++packet) {
    sources_[memories_.of(request.core)].push_back({{number, packet},
                                                    request.local_offset + sizes.offset_of(packet),
                                                    sizes.bytes_of(request, packet)});
  }
}

void SourceGuard::remove(const Tag& tag) {
  const auto found = sources_.find(memories_.of(transactions_[tag.transaction].request.core));
  if (found == sources_.end()) return;
  std::erase_if(found->second, [&](const Source& source) {
    return source.tag.transaction == tag.transaction && source.tag.packet == tag.packet;
  });
}

void SourceGuard::check_all(const Change& change, const Writer& writer) const {
  const auto& [tile, offset, bytes] = change;
  const TileMemory* const memory = memories_.of(tile);
  const auto sources = sources_.find(memory);
  if (sources == sources_.end()) return;
  for (const Source& source : sources->second) {
    const std::uint64_t first = std::max(source.offset, offset);
    const std::uint64_t last = std::min(source.offset + source.size_bytes, offset + bytes.size());
    if (first >= last) continue;
    std::vector<std::byte> before(last - first);
    memory->bytes.read(first, before);
    if (std::ranges::equal(before, bytes.subspan(first - offset, last - first))) continue;
    const Transaction& send = transactions_[source.tag.transaction];
    throw std::runtime_error(fmt::format(
        "cycle {}: {} changes bytes {} to {} of core ({}, {})'s memory, which its {}, issued in "
        "cycle {}, has yet to read",
        clock_.cycle_at(simulation_.now()).count(), name_of(writer, tile), first, last - 1, tile.x,
        tile.y, describe(send.request), send.issued));
  }
}

std::string SourceGuard::name_of(const Writer& writer, machine::Coordinate tile) const {
  if (const Request* request = writer.request; request != nullptr) {
    return fmt::format("{} ({}, {})'s {}", memories_.of(request->core) == nullptr ? "tile" : "core",
                       request->core.x, request->core.y, describe(*request));
  }
  if (writer.is_outside) return "another chip";
  return fmt::format("core ({}, {}) itself", tile.x, tile.y);
}

}  // namespace towpath::noc
