// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fabric/connection.h"

// Several connections of a worker (tt-metal, tt_metal/fabric/hw/inc/edm_fabric/
// {fabric_connection_manager,routing_plane_connection_manager}.hpp).

// One forward and one backward along a line, or one of them.
class FabricConnectionManager final {
 public:
  using Sender = tt::tt_fabric::WorkerToFabricEdmSender;
  enum BuildFromArgsMode : std::uint8_t {
    BUILD_ONLY,
    BUILD_AND_OPEN_CONNECTION,
    BUILD_AND_OPEN_CONNECTION_START_ONLY
  };

  template <BuildFromArgsMode build_mode = BUILD_ONLY>
  static FabricConnectionManager build_from_args(std::size_t& arg_idx) {
    FabricConnectionManager manager;
    for (std::size_t i = 0; i < 2; ++i) {
      manager.has_[i] = get_arg_val<std::uint32_t>(arg_idx++) != 0;
      if (!manager.has_[i]) continue;
      manager.senders_[i] = Sender::build_from_args<ProgrammableCoreType::TENSIX>(arg_idx);
      if constexpr (build_mode != BUILD_ONLY) manager.senders_[i].open_start();
    }
    if constexpr (build_mode == BUILD_AND_OPEN_CONNECTION) manager.open_finish();
    return manager;
  }

  bool is_logically_connected() const { return has_[0] || has_[1]; }
  bool has_forward_connection() const { return has_[0]; }
  bool has_backward_connection() const { return has_[1]; }
  Sender& get_forward_connection() { return get(0); }
  Sender& get_backward_connection() { return get(1); }

  template <bool SEND_CREDIT_ADDR = false>
  void open() {
    each([](Sender& sender) { sender.open_start(); });
    open_finish();
  }
  void open_finish() {
    each([](Sender& sender) { sender.open_finish(); });
  }
  void close_start() {
    each([](Sender& sender) { sender.close_start(); });
  }
  void close_finish() {
    each([](Sender& sender) { sender.close_finish(); });
  }
  void close() {
    close_start();
    close_finish();
  }

 private:
  Sender& get(std::size_t number) {
    ASSERT(has_[number]);
    return senders_[number];
  }
  template <typename Action>
  void each(Action action) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (has_[i]) action(senders_[i]);
    }
  }

  std::array<Sender, 2> senders_{};
  std::array<bool, 2> has_{};
};

namespace tt::tt_fabric {

#ifndef TT_FABRIC_MAX_ROUTING_PLANE_CONNECTIONS
#define TT_FABRIC_MAX_ROUTING_PLANE_CONNECTIONS 4
#endif

// A connection per direction, each with a tag, and on a mesh with the chip at its end.
class RoutingPlaneConnectionManager final {
 public:
  static constexpr std::size_t MaxConnections = TT_FABRIC_MAX_ROUTING_PLANE_CONNECTIONS;
  using Sender = WorkerToFabricEdmSender;
  enum BuildFromArgsMode : std::uint8_t {
    BUILD_ONLY,
    BUILD_AND_OPEN_CONNECTION,
    BUILD_AND_OPEN_CONNECTION_START_ONLY
  };
  struct ConnectionSlot {
    Sender sender;
    std::uint8_t tag;
#ifdef FABRIC_2D
    std::uint16_t dst_dev_id;
    std::uint16_t dst_mesh_id;
#endif
  };
#ifdef FABRIC_2D
  std::uint32_t ew_dim = 0;
  std::uint16_t my_mesh_id = 0;
  std::uint16_t my_chip_id = 0;
#endif

  template <BuildFromArgsMode build_mode = BUILD_ONLY>
  static RoutingPlaneConnectionManager build_from_args(std::size_t& arg_idx,
                                                       std::uint32_t num_connections) {
    ASSERT(num_connections <= MaxConnections);
    RoutingPlaneConnectionManager manager;
    manager.active_ = num_connections;
    for (std::uint32_t i = 0; i < num_connections; ++i) {
      manager.slots_[i].tag = static_cast<std::uint8_t>(get_arg_val<std::uint32_t>(arg_idx++));
      manager.slots_[i].sender = Sender::build_from_args<ProgrammableCoreType::TENSIX>(arg_idx);
    }
    if constexpr (build_mode != BUILD_ONLY) manager.open_start();
    if constexpr (build_mode == BUILD_AND_OPEN_CONNECTION) manager.open_finish();
#ifdef FABRIC_2D
    manager.ew_dim = get_arg_val<std::uint32_t>(arg_idx++);
    manager.my_chip_id = static_cast<std::uint16_t>(get_arg_val<std::uint32_t>(arg_idx++));
    manager.my_mesh_id = static_cast<std::uint16_t>(get_arg_val<std::uint32_t>(arg_idx++));
    for (std::uint32_t i = 0; i < num_connections; ++i) {
      ConnectionSlot& slot = manager.slots_[i];
      slot.dst_dev_id = static_cast<std::uint16_t>(get_arg_val<std::uint32_t>(arg_idx++));
      slot.dst_mesh_id = static_cast<std::uint16_t>(get_arg_val<std::uint32_t>(arg_idx++));
    }
#endif
    return manager;
  }

  std::uint32_t active_count() const { return active_; }
  std::uint32_t get_tag(std::uint32_t index) const { return get(index).tag; }
  ConnectionSlot& get(std::uint32_t index) {
    ASSERT(index < active_);
    return slots_[index];
  }
  const ConnectionSlot& get(std::uint32_t index) const {
    ASSERT(index < active_);
    return slots_[index];
  }

  template <typename Action>
  void for_each(Action&& action) {
    for (std::uint32_t i = 0; i < active_; ++i) action(slots_[i].sender, i, slots_[i].tag);
  }
  template <typename Action>
  void for_each_with_tag(std::uint32_t tag, Action&& action) {
    for (std::uint32_t i = 0; i < active_; ++i) {
      if (slots_[i].tag == tag) action(slots_[i].sender, i, slots_[i].tag);
    }
  }
  template <bool SEND_CREDIT_ADDR = false>
  void open_start() {
    for_each([](Sender& sender, std::uint32_t, std::uint32_t) { sender.open_start(); });
  }
  void open_finish() {
    for_each([](Sender& sender, std::uint32_t, std::uint32_t) { sender.open_finish(); });
  }
  template <bool SEND_CREDIT_ADDR = false>
  void open() {
    open_start();
    open_finish();
  }
  void close_start() {
    for_each([](Sender& sender, std::uint32_t, std::uint32_t) { sender.close_start(); });
  }
  void close_finish() {
    for_each([](Sender& sender, std::uint32_t, std::uint32_t) { sender.close_finish(); });
  }
  void close() {
    close_start();
    close_finish();
  }

 private:
  std::array<ConnectionSlot, MaxConnections> slots_{};
  std::uint32_t active_ = 0;
};

}  // namespace tt::tt_fabric
