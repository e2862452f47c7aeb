// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/metalium/host_fabric.hpp"

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "towpath/tenstorrent/metalium/host_system.hpp"
#include "towpath/tenstorrent/metalium/kernel_include/towpath_kernel.h"

namespace tt::tt_fabric {

namespace metalium = towpath::tenstorrent::metalium;
using tt_metal::HostSystem;

namespace {

std::string_view name_of(FabricConfig config) {
  switch (config) {
    case FabricConfig::FABRIC_1D_NEIGHBOR_EXCHANGE: return "FABRIC_1D_NEIGHBOR_EXCHANGE";
    case FabricConfig::FABRIC_2D_TORUS_X: return "FABRIC_2D_TORUS_X";
    case FabricConfig::FABRIC_2D_TORUS_Y: return "FABRIC_2D_TORUS_Y";
    case FabricConfig::CUSTOM: return "CUSTOM";
    default: return "";
  }
}

std::optional<metalium::FabricMode> mode_of(FabricConfig config) {
  switch (config) {
    case FabricConfig::DISABLED: return std::nullopt;
    case FabricConfig::FABRIC_1D: return metalium::FabricMode{false, false};
    case FabricConfig::FABRIC_1D_RING: return metalium::FabricMode{false, true};
    case FabricConfig::FABRIC_2D: return metalium::FabricMode{true, false};
    case FabricConfig::FABRIC_2D_TORUS_XY: return metalium::FabricMode{true, true};
    default:
      throw std::invalid_argument(
          fmt::format("fabric {} is not modeled; choose FABRIC_1D, FABRIC_1D_RING, FABRIC_2D or "
                      "FABRIC_2D_TORUS_XY",
                      name_of(config)));
  }
}

int chip_of(const FabricNodeId& node) {
  if (*node.mesh_id == 0) return static_cast<int>(node.chip_id);
  throw std::invalid_argument(
      fmt::format("there is no mesh {}; use mesh 0, which has all chips", *node.mesh_id));
}

std::uint32_t link_of(const FabricNodeId& from, const FabricNodeId& to,
                      const std::vector<std::uint32_t>& links, std::size_t number) {
  if (links.empty()) return get_forwarding_link_indices(from, to).front();
  return links.size() == 1 ? links.front() : links[number];
}

}  // namespace

void SetFabricConfig(FabricConfig config, FabricReliabilityMode, std::optional<std::uint8_t>) {
  HostSystem::get().set_fabric(mode_of(config));
}

FabricConfig GetFabricConfig() {
  const auto& mode = HostSystem::get().fabric_mode();
  if (!mode) return FabricConfig::DISABLED;
  if (mode->is_mesh) {
    return mode->has_rings ? FabricConfig::FABRIC_2D_TORUS_XY : FabricConfig::FABRIC_2D;
  }
  return mode->has_rings ? FabricConfig::FABRIC_1D_RING : FabricConfig::FABRIC_1D;
}

FabricNodeId get_fabric_node_id_from_physical_chip_id(chip_id_t chip) {
  return FabricNodeId(MeshId(0), static_cast<std::uint32_t>(chip));
}

void append_fabric_connection_rt_args(const FabricNodeId& from, const FabricNodeId& to,
                                      std::uint32_t link_index, tt_metal::Program&,
                                      const CoreCoord&, std::vector<std::uint32_t>& arguments,
                                      CoreType type) {
  if (type != CoreType::WORKER) {
    throw std::invalid_argument("an Ethernet core cannot be connected to a router; use a worker");
  }
  const std::uint32_t channel = HostSystem::get().fabric().channel_to(chip_of(from), chip_of(to),
                                                                      static_cast<int>(link_index));
  // Two unused semaphores follow.
  arguments.insert(arguments.end(), {channel, 0, 0});
}

void append_routing_plane_connection_manager_rt_args(
    const FabricNodeId& from, const std::vector<FabricNodeId>& to,
    const std::vector<std::uint32_t>& link_indices, tt_metal::Program& program,
    tt_metal::KernelHandle& kernel, const CoreCoord& core, std::vector<std::uint32_t>& arguments,
    FabricApiType api, CoreType type) {
  if (link_indices.size() > 1 && link_indices.size() != to.size()) {
    throw std::invalid_argument(
        fmt::format("{} links are named for {} connections; name none, one or one for each",
                    link_indices.size(), to.size()));
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    arguments.push_back(*get_eth_forwarding_direction(from, to[i]));
    append_fabric_connection_rt_args(from, to[i], link_of(from, to[i], link_indices, i), program,
                                     core, arguments, type);
  }
  tt_metal::define(program, kernel,
                   api == FabricApiType::Linear ? "API_TYPE_Linear" : "API_TYPE_Mesh");
  HostSystem& system = HostSystem::get();
  if (!system.fabric_mode()->is_mesh) return;
  arguments.insert(arguments.end(), {static_cast<std::uint32_t>(system.fabric().columns()),
                                     from.chip_id, *from.mesh_id});
  for (const FabricNodeId& node : to) {
    arguments.insert(arguments.end(), {node.chip_id, *node.mesh_id});
  }
}

std::vector<std::uint32_t> get_forwarding_link_indices(const FabricNodeId& from,
                                                       const FabricNodeId& to) {
  const metalium::KernelFabric& fabric = HostSystem::get().fabric();
  std::vector<std::uint32_t> links;
  for (int link = 0; link < fabric.planes(); ++link) {
    // Throws for chips that do not exist.
    static_cast<void>(fabric.channel_to(chip_of(from), chip_of(to), link));
    links.push_back(static_cast<std::uint32_t>(link));
  }
  return links;
}

std::optional<eth_chan_directions> get_eth_forwarding_direction(FabricNodeId from,
                                                                FabricNodeId to) {
  const metalium::KernelFabric& fabric = HostSystem::get().fabric();
  return static_cast<eth_chan_directions>(
      fabric.direction_to(chip_of(from), static_cast<std::uint32_t>(chip_of(to))));
}

std::size_t get_tt_fabric_packet_header_size_bytes() {
  static_cast<void>(HostSystem::get().fabric());  // for its check
  return HostSystem::get().fabric_mode()->is_mesh ? TOWPATH_MESH_HEADER_BYTES
                                                  : TOWPATH_LINE_HEADER_BYTES;
}

std::size_t get_tt_fabric_max_payload_size_bytes() {
  return HostSystem::get().fabric().payload_bytes_max();
}

std::size_t get_tt_fabric_channel_buffer_size_bytes() {
  return get_tt_fabric_packet_header_size_bytes() + get_tt_fabric_max_payload_size_bytes();
}

}  // namespace tt::tt_fabric
