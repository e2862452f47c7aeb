// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fabric/send.h"

// One call per packet on a mesh (tt-metal, tt_metal/fabric/hw/inc/mesh/api.h), for a connection.
// The forms for groups of headers, and with state, come from a checkout.

namespace tt::tt_fabric::mesh::experimental {

struct MeshMcastRange {
  std::uint8_t e;
  std::uint8_t w;
  std::uint8_t n;
  std::uint8_t s;
};

inline void set_route(towpath::fabric::Header* header, std::uint8_t chip, std::uint16_t mesh,
                      const MeshMcastRange& ranges) {
  fabric_set_mcast_route(header, chip, mesh, ranges.e, ranges.w, ranges.n, ranges.s);
}

void fabric_unicast_noc_unicast_write(auto* client_interface,
                                      towpath::fabric::Header* packet_header,
                                      std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                      std::uint32_t src_addr, std::uint32_t size,
                                      const NocUnicastCommandHeader& command) {
  fabric_set_unicast_route(packet_header, dst_dev_id, dst_mesh_id);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_scatter_write(auto* client_interface,
                                      towpath::fabric::Header* packet_header,
                                      std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                      std::uint32_t src_addr, std::uint32_t size,
                                      const NocUnicastScatterCommandHeader& command) {
  fabric_set_unicast_route(packet_header, dst_dev_id, dst_mesh_id);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_fused_unicast_with_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint8_t dst_dev_id,
    std::uint16_t dst_mesh_id, std::uint32_t src_addr, std::uint32_t size,
    const NocUnicastAtomicIncFusedCommandHeader& command) {
  fabric_set_unicast_route(packet_header, dst_dev_id, dst_mesh_id);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_fused_scatter_write_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint8_t dst_dev_id,
    std::uint16_t dst_mesh_id, std::uint32_t src_addr, std::uint32_t size,
    const NocUnicastScatterAtomicIncFusedCommandHeader& command) {
  fabric_set_unicast_route(packet_header, dst_dev_id, dst_mesh_id);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_unicast_noc_unicast_atomic_inc(auto* client_interface,
                                           towpath::fabric::Header* packet_header,
                                           std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                           const NocUnicastAtomicIncCommandHeader& command) {
  fabric_set_unicast_route(packet_header, dst_dev_id, dst_mesh_id);
  towpath::fabric::send(client_interface, packet_header, command);
}
void fabric_unicast_noc_unicast_inline_write(auto* client_interface,
                                             towpath::fabric::Header* packet_header,
                                             std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                             const NocUnicastInlineWriteCommandHeader& command) {
  fabric_set_unicast_route(packet_header, dst_dev_id, dst_mesh_id);
  towpath::fabric::send(client_interface, packet_header, command);
}
void fabric_multicast_noc_unicast_write(auto* client_interface,
                                        towpath::fabric::Header* packet_header,
                                        std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                        const MeshMcastRange& ranges, std::uint32_t src_addr,
                                        std::uint32_t size,
                                        const NocUnicastCommandHeader& command) {
  set_route(packet_header, dst_dev_id, dst_mesh_id, ranges);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_scatter_write(auto* client_interface,
                                        towpath::fabric::Header* packet_header,
                                        std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                        const MeshMcastRange& ranges, std::uint32_t src_addr,
                                        std::uint32_t size,
                                        const NocUnicastScatterCommandHeader& command) {
  set_route(packet_header, dst_dev_id, dst_mesh_id, ranges);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_fused_unicast_with_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint8_t dst_dev_id,
    std::uint16_t dst_mesh_id, const MeshMcastRange& ranges, std::uint32_t src_addr,
    std::uint32_t size, const NocUnicastAtomicIncFusedCommandHeader& command) {
  set_route(packet_header, dst_dev_id, dst_mesh_id, ranges);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_fused_scatter_write_atomic_inc(
    auto* client_interface, towpath::fabric::Header* packet_header, std::uint8_t dst_dev_id,
    std::uint16_t dst_mesh_id, const MeshMcastRange& ranges, std::uint32_t src_addr,
    std::uint32_t size, const NocUnicastScatterAtomicIncFusedCommandHeader& command) {
  set_route(packet_header, dst_dev_id, dst_mesh_id, ranges);
  towpath::fabric::send(client_interface, packet_header, src_addr, size, command);
}
void fabric_multicast_noc_unicast_atomic_inc(auto* client_interface,
                                             towpath::fabric::Header* packet_header,
                                             std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                             const MeshMcastRange& ranges,
                                             const NocUnicastAtomicIncCommandHeader& command) {
  set_route(packet_header, dst_dev_id, dst_mesh_id, ranges);
  towpath::fabric::send(client_interface, packet_header, command);
}
void fabric_multicast_noc_unicast_inline_write(auto* client_interface,
                                               towpath::fabric::Header* packet_header,
                                               std::uint8_t dst_dev_id, std::uint16_t dst_mesh_id,
                                               const MeshMcastRange& ranges,
                                               const NocUnicastInlineWriteCommandHeader& command) {
  set_route(packet_header, dst_dev_id, dst_mesh_id, ranges);
  towpath::fabric::send(client_interface, packet_header, command);
}

}  // namespace tt::tt_fabric::mesh::experimental
