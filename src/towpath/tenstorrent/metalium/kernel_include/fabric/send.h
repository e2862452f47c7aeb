// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "fabric/connections.h"
#include "fabric/packet_header_pool.h"
#include "fabric/routes.h"

// What the calls of linear.h and mesh.h do once the header has its route: it gets the command, a
// slot is waited for, payload and header are sent.

namespace towpath::fabric {

using Header = volatile PACKET_HEADER_TYPE;

void send(auto* sender, Header* header, std::uint32_t from, std::uint32_t size_bytes) {
  sender->wait_for_empty_write_slot();
  if (size_bytes > 0) {
    sender->send_payload_without_header_non_blocking_from_address(from, size_bytes);
  }
  sender->send_payload_flush_non_blocking_from_address(
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(header)),
      sizeof(PACKET_HEADER_TYPE));
}

void send(auto* sender, Header* header, std::uint32_t from, std::uint32_t size_bytes,
          const NocUnicastCommandHeader& command) {
  header->to_noc_unicast_write(command, size_bytes);
  send(sender, header, from, size_bytes);
}
void send(auto* sender, Header* header, std::uint32_t from, std::uint32_t size_bytes,
          const NocUnicastScatterCommandHeader& command) {
  header->to_noc_unicast_scatter_write(command, size_bytes);
  send(sender, header, from, size_bytes);
}
void send(auto* sender, Header* header, std::uint32_t from, std::uint32_t size_bytes,
          const NocUnicastAtomicIncFusedCommandHeader& command) {
  header->to_noc_fused_unicast_write_atomic_inc(command, size_bytes);
  send(sender, header, from, size_bytes);
}
void send(auto* sender, Header* header, std::uint32_t from, std::uint32_t size_bytes,
          const NocUnicastScatterAtomicIncFusedCommandHeader& command) {
  header->to_noc_fused_unicast_scatter_write_atomic_inc(command, size_bytes);
  send(sender, header, from, size_bytes);
}
void send(auto* sender, Header* header, const NocUnicastAtomicIncCommandHeader& command) {
  header->to_noc_unicast_atomic_inc(command);
  send(sender, header, 0, 0);
}
void send(auto* sender, Header* header, const NocUnicastInlineWriteCommandHeader& command) {
  header->to_noc_unicast_inline_write(command);
  send(sender, header, 0, 0);
}

}  // namespace towpath::fabric
