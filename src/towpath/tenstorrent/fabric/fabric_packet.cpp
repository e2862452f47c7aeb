// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/fabric/fabric_packet.hpp"

namespace towpath::tenstorrent::fabric {

Fate fate_of(const Header& header) {
  Fate fate;
  if (!header.is_multicast) {
    const std::uint8_t command = header.command(header.hop);
    fate.is_delivered = command == kDeliver;
    if (!fate.is_delivered) fate.copies.push_back({static_cast<Direction>(command), header});
  } else {
    const MulticastRange range = header.range();
    const auto add = [&](const MulticastRange& rest, bool is_branch) {
      Copy copy{rest.direction, header, is_branch};
      copy.header.set_range(rest);
      fate.copies.push_back(copy);
    };
    const bool is_reached = range.along.skipped == 0;
    fate.is_delivered = is_reached && range.delivers;
    if (is_reached && range.up.count > 0) {
      add({direction_of(1, true), true, range.up, {}, {}}, true);
    }
    if (is_reached && range.down.count > 0) {
      add({direction_of(1, false), true, range.down, {}, {}}, true);
    }
    MulticastRange rest = range;
    --(is_reached ? rest.along.count : rest.along.skipped);
    if (rest.along.count > 0) add(rest, false);
  }
  for (Copy& copy : fate.copies) ++copy.header.hop;
  return fate;
}

}  // namespace towpath::tenstorrent::fabric
