// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/packet_header.h"

// A worker's connection to a router of its chip (tt-metal,
// tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp). Its runtime arguments are those
// of append_fabric_connection_rt_args(): the router's Ethernet channel, and two semaphores, which
// are not needed here.

namespace tt::tt_fabric {

enum EDM_IO_BLOCKING_MODE { FLUSH_BLOCKING, BLOCKING, NON_BLOCKING };

template <bool I_USE_STREAM_REG_FOR_CREDIT_RECEIVE = false, std::uint8_t EDM_NUM_BUFFER_SLOTS = 0>
struct WorkerToFabricEdmSenderImpl {
  static_assert(!I_USE_STREAM_REG_FOR_CREDIT_RECEIVE, "this is a router's side of a connection");

  template <ProgrammableCoreType my_core_type>
  static WorkerToFabricEdmSenderImpl build_from_args(std::size_t& arg_idx) {
    static_assert(my_core_type == ProgrammableCoreType::TENSIX, "workers connect to routers");
    WorkerToFabricEdmSenderImpl sender;
    sender.channel_ = get_arg_val<std::uint32_t>(arg_idx);
    arg_idx += 3;
    return sender;
  }

  template <bool SEND_CREDIT_ADDR = false, bool posted = false, std::uint8_t NOC = noc_index>
  void open_start() {
    TOWPATH_CALL(fabric_open, channel_);
  }
  template <bool posted = false, std::uint8_t NOC = noc_index>
  void open_finish() {}
  template <bool SEND_CREDIT_ADDR = false, bool posted = false, std::uint8_t NOC = noc_index>
  void open() {
    open_start();
  }
  void close_start() {}
  void close_finish() {
    TOWPATH_CALL(fabric_close, channel_);
    noc_async_write_barrier();
  }
  void close() { close_finish(); }

  template <std::size_t num_slots = 1>
  bool edm_has_space_for_packet() const {
    static_assert(num_slots == 1, "a worker asks for one slot");
    return TOWPATH_CALL(fabric_has_slot, channel_) != 0;
  }
  void wait_for_empty_write_slot() const { TOWPATH_CALL(fabric_wait_for_slot, channel_); }

  void send_payload_without_header_non_blocking_from_address(std::uint32_t source_address,
                                                             std::size_t size_bytes) {
    TOWPATH_CALL(fabric_write_payload, channel_, source_address,
                 static_cast<std::uint32_t>(size_bytes));
  }
  void send_payload_non_blocking_from_address(std::uint32_t source_address,
                                              std::size_t size_bytes) {
    send<NON_BLOCKING>(source_address, size_bytes);
  }
  void send_payload_flush_non_blocking_from_address(std::uint32_t source_address,
                                                    std::size_t size_bytes) {
    send<NON_BLOCKING>(source_address, size_bytes);
  }
  void send_payload_flush_blocking_from_address(std::uint32_t source_address,
                                                std::size_t size_bytes) {
    send<FLUSH_BLOCKING>(source_address, size_bytes);
  }
  void send_payload_blocking_from_address(std::uint32_t source_address, std::size_t size_bytes) {
    send<BLOCKING>(source_address, size_bytes);
  }
  // Pages of a circular buffer: a header, and its payload behind it.
  void send_payload_blocking(std::uint32_t cb_id, std::uint32_t num_pages,
                             std::uint32_t page_size) {
    cb_wait_front(cb_id, num_pages);
    send<BLOCKING>(get_read_ptr(cb_id), num_pages * page_size);
    cb_pop_front(cb_id, num_pages);
  }

 private:
  // The header, and behind it the payload if it was not sent before.
  template <EDM_IO_BLOCKING_MODE mode>
  void send(std::uint32_t source_address, std::size_t size_bytes) {
    const TowpathPacket packet = towpath::fabric::packet_at(source_address);
    if (size_bytes > sizeof(PACKET_HEADER_TYPE)) {
      send_payload_without_header_non_blocking_from_address(
          source_address + sizeof(PACKET_HEADER_TYPE), size_bytes - sizeof(PACKET_HEADER_TYPE));
    }
    TOWPATH_CALL(fabric_send, channel_, &packet);
    if constexpr (mode == FLUSH_BLOCKING) noc_async_writes_flushed();
    if constexpr (mode == BLOCKING) noc_async_write_barrier();
  }

  std::uint32_t channel_ = 0;
};

using WorkerToFabricEdmSender = WorkerToFabricEdmSenderImpl<false, 0>;

// Cores that share a router between workers are not modelled: what uses one does not compile.
template <std::uint8_t FABRIC_MUX_CHANNEL_NUM_BUFFERS = 0>
struct WorkerToFabricMuxSender {};

}  // namespace tt::tt_fabric
