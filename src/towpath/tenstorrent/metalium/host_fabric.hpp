// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "towpath/tenstorrent/metalium/host_api.hpp"

// The fabric of TT-Metalium's host interface: its routers, and the arguments with which a kernel
// connects to them. There is one mesh, 0, and a chip has the number of its device in it.

// Directions, with the same numbers as in kernels.
enum eth_chan_directions : std::uint8_t { EAST, WEST, NORTH, SOUTH, Z, COUNT };

namespace tt::tt_fabric {

enum class FabricConfig : std::uint32_t {
  DISABLED,
  FABRIC_1D_NEIGHBOR_EXCHANGE,
  FABRIC_1D,
  FABRIC_1D_RING,
  FABRIC_2D,
  FABRIC_2D_TORUS_X,
  FABRIC_2D_TORUS_Y,
  FABRIC_2D_TORUS_XY,
  CUSTOM
};
enum class FabricReliabilityMode : std::uint32_t {
  STRICT_SYSTEM_HEALTH_SETUP_MODE,
  RELAXED_SYSTEM_HEALTH_SETUP_MODE,
  DYNAMIC_RECONFIGURATION_SETUP_MODE
};
enum class FabricApiType : std::uint8_t { Linear, Mesh };

class MeshId {
 public:
  constexpr explicit MeshId(std::uint32_t value) : value_(value) {}
  constexpr std::uint32_t operator*() const { return value_; }
  constexpr std::uint32_t get() const { return value_; }
  constexpr auto operator<=>(const MeshId&) const = default;

 private:
  std::uint32_t value_;
};

struct FabricNodeId {
  constexpr explicit FabricNodeId(MeshId mesh, std::uint32_t chip) : mesh_id(mesh), chip_id(chip) {}
  constexpr auto operator<=>(const FabricNodeId&) const = default;

  MeshId mesh_id;
  std::uint32_t chip_id;
};

// Starts routers for all programs that are enqueued from now on, or stops them. The mode of
// reliability has no effect. There is a routing plane for each parallel link. Throws
// std::invalid_argument for a fabric that is not modeled: exchanges of neighbors, a torus in one
// dimension, custom ones.
void SetFabricConfig(
    FabricConfig config,
    FabricReliabilityMode mode = FabricReliabilityMode::STRICT_SYSTEM_HEALTH_SETUP_MODE,
    std::optional<std::uint8_t> num_routing_planes = std::nullopt);
FabricConfig GetFabricConfig();

FabricNodeId get_fabric_node_id_from_physical_chip_id(chip_id_t chip);

// The functions below throw std::invalid_argument if there is no fabric, no such chip or link, or
// another mesh is named.

// Appends the arguments of a worker for a connection to the router at a link of the first hop from
// `from` to `to`: three words.
void append_fabric_connection_rt_args(const FabricNodeId& from, const FabricNodeId& to,
                                      std::uint32_t link_index, tt_metal::Program& program,
                                      const CoreCoord& core, std::vector<std::uint32_t>& arguments,
                                      CoreType type = CoreType::WORKER);
// The same for several connections, each with the direction of its first hop, and the definitions
// for the kernel. Without links, each uses its first one. A single link applies to all.
void append_routing_plane_connection_manager_rt_args(
    const FabricNodeId& from, const std::vector<FabricNodeId>& to,
    const std::vector<std::uint32_t>& link_indices, tt_metal::Program& program,
    tt_metal::KernelHandle& kernel, const CoreCoord& core, std::vector<std::uint32_t>& arguments,
    FabricApiType api = FabricApiType::Linear, CoreType type = CoreType::WORKER);

// Parallel links of the first hop between two chips.
std::vector<std::uint32_t> get_forwarding_link_indices(const FabricNodeId& from,
                                                       const FabricNodeId& to);
// Direction of the first hop.
std::optional<eth_chan_directions> get_eth_forwarding_direction(FabricNodeId from, FabricNodeId to);

// Sizes in bytes: a packet's header in kernels, the largest payload, and both.
std::size_t get_tt_fabric_packet_header_size_bytes();
std::size_t get_tt_fabric_max_payload_size_bytes();
std::size_t get_tt_fabric_channel_buffer_size_bytes();

}  // namespace tt::tt_fabric

namespace tt::tt_metal::detail {
using tt::tt_fabric::SetFabricConfig;
}
