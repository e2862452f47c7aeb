// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "fabric/connection.h"

// Routes of packets (tt-metal, tt_metal/fabric/hw/inc/tt_fabric_api.h). A chip's number in its
// cluster is that of its device; there is one mesh, 0.

namespace tt::tt_fabric {

inline std::uint8_t get_router_direction(std::uint32_t eth_channel) {
  return static_cast<std::uint8_t>(TOWPATH_CALL(fabric_direction, eth_channel));
}
inline eth_chan_directions get_next_hop_router_direction(std::uint32_t dst_mesh_id,
                                                         std::uint32_t dst_dev_id) {
  return static_cast<eth_chan_directions>(TOWPATH_CALL(fabric_direction_to, dst_dev_id));
}

template <bool called_from_router = false, eth_chan_directions my_direction = COUNT>
bool fabric_set_unicast_route(volatile tt_l1_ptr HybridMeshPacketHeader* packet_header,
                              std::uint16_t dst_dev_id,
                              std::uint16_t dst_mesh_id = MAX_NUM_MESHES) {
  packet_header->dst_start_node_id = static_cast<std::uint32_t>(dst_mesh_id) << 16 | dst_dev_id;
  for (int i = 0; i < 4; ++i) packet_header->mcast_params[i] = 0;
  return true;
}
template <bool target_as_dev = true, bool compressed = true>
bool fabric_set_unicast_route(volatile tt_l1_ptr LowLatencyPacketHeader* packet_header,
                              std::uint16_t target_num) {
  if constexpr (target_as_dev) {
    TOWPATH_CALL(refuse,
                 "it names the chip at the end of a line; packets along lines have a number of hops");
  }
  packet_header->to_chip_unicast(static_cast<std::uint8_t>(target_num));
  return true;
}
template <bool called_from_router = false>
void fabric_set_mcast_route(volatile tt_l1_ptr HybridMeshPacketHeader* packet_header,
                            std::uint16_t dst_dev_id, std::uint16_t dst_mesh_id,
                            std::uint16_t e_num_hops, std::uint16_t w_num_hops,
                            std::uint16_t n_num_hops, std::uint16_t s_num_hops) {
  fabric_set_unicast_route(packet_header, dst_dev_id, dst_mesh_id);
  packet_header->mcast_params[EAST] = e_num_hops;
  packet_header->mcast_params[WEST] = w_num_hops;
  packet_header->mcast_params[NORTH] = n_num_hops;
  packet_header->mcast_params[SOUTH] = s_num_hops;
}
template <typename HopMaskType>
void fabric_set_sparse_multicast_route(volatile tt_l1_ptr LowLatencyPacketHeader* packet_header,
                                       HopMaskType hop_mask) {
  packet_header->to_chip_sparse_multicast({static_cast<std::uint16_t>(hop_mask)});
}

}  // namespace tt::tt_fabric

using namespace tt::tt_fabric;
