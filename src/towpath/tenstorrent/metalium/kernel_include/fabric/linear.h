// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fabric/send.h"

// One call per packet along a line (tt-metal, tt_metal/fabric/hw/inc/linear/api.h), for a
// connection. The forms for groups of headers, and with state, come from a checkout.

namespace tt::tt_fabric::linear::experimental {

void fabric_unicast_noc_unicast_write(auto* client_interface,
                                      towpath::fabric::Header* packet_header,
                                      std::uint32_t src_addr, std::uint32_t size,
                                      const NocUnicastCommandHeader& command,
                                      std::uint8_t num_hops) {
  packet_header->to_chip_unicast(num_hops);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_scatter_write(auto* client_interface,
                                      towpath::fabric::Header* packet_header,
                                      std::uint32_t src_addr, std::uint32_t size,
                                      const NocUnicastScatterCommandHeader& command,
                                      std::uint8_t num_hops) {
  packet_header->to_chip_unicast(num_hops);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_fused_unicast_with_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint32_t src_addr,
    std::uint32_t size, const NocUnicastAtomicIncFusedCommandHeader& command,
    std::uint8_t num_hops) {
  packet_header->to_chip_unicast(num_hops);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_fused_scatter_write_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint32_t src_addr,
    std::uint32_t size, const NocUnicastScatterAtomicIncFusedCommandHeader& command,
    std::uint8_t num_hops) {
  packet_header->to_chip_unicast(num_hops);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_unicast_atomic_inc(auto* client_interface,
                                           towpath::fabric::Header* packet_header,
                                           const NocUnicastAtomicIncCommandHeader& command,
                                           std::uint8_t num_hops) {
  packet_header->to_chip_unicast(num_hops);
  towpath::fabric::send(client_interface, packet_header, command);
}
void fabric_unicast_noc_unicast_inline_write(auto* client_interface,
                                             towpath::fabric::Header* packet_header,
                                             const NocUnicastInlineWriteCommandHeader& command,
                                             std::uint8_t num_hops) {
  packet_header->to_chip_unicast(num_hops);
  towpath::fabric::send(client_interface, packet_header, command);
}
void fabric_multicast_noc_unicast_write(auto* client_interface,
                                        towpath::fabric::Header* packet_header,
                                        std::uint32_t src_addr, std::uint32_t size,
                                        const NocUnicastCommandHeader& command,
                                        std::uint8_t start_distance, std::uint8_t range) {
  packet_header->to_chip_multicast({start_distance, range});
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_scatter_write(auto* client_interface,
                                        towpath::fabric::Header* packet_header,
                                        std::uint32_t src_addr, std::uint32_t size,
                                        const NocUnicastScatterCommandHeader& command,
                                        std::uint8_t start_distance, std::uint8_t range) {
  packet_header->to_chip_multicast({start_distance, range});
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_fused_unicast_with_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint32_t src_addr,
    std::uint32_t size, const NocUnicastAtomicIncFusedCommandHeader& command,
    std::uint8_t start_distance, std::uint8_t range) {
  packet_header->to_chip_multicast({start_distance, range});
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_fused_scatter_write_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint32_t src_addr,
    std::uint32_t size, const NocUnicastScatterAtomicIncFusedCommandHeader& command,
    std::uint8_t start_distance, std::uint8_t range) {
  packet_header->to_chip_multicast({start_distance, range});
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_unicast_atomic_inc(auto* client_interface,
                                             towpath::fabric::Header* packet_header,
                                             const NocUnicastAtomicIncCommandHeader& command,
                                             std::uint8_t start_distance, std::uint8_t range) {
  packet_header->to_chip_multicast({start_distance, range});
  towpath::fabric::send(client_interface, packet_header, command);
}
void fabric_multicast_noc_unicast_inline_write(auto* client_interface,
                                               towpath::fabric::Header* packet_header,
                                               const NocUnicastInlineWriteCommandHeader& command,
                                               std::uint8_t start_distance, std::uint8_t range) {
  packet_header->to_chip_multicast({start_distance, range});
  towpath::fabric::send(client_interface, packet_header, command);
}

}  // namespace tt::tt_fabric::linear::experimental
