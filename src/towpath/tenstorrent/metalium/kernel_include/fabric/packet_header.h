// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "api/dataflow/dataflow_api.h"
#include "fabric/noc_addr.h"

// Headers of the fabric's packets under the names and with the fields that kernels use (tt-metal,
// tt_metal/fabric/fabric_edm_packet_header.hpp). What a router needs is taken from them when the
// packet is sent; only the routes are encoded in a way of our own.

enum eth_chan_directions : std::uint8_t {
  EAST = 0,
  WEST = 1,
  NORTH = 2,
  SOUTH = 3,
  Z = 4,
  COUNT = 5
};

namespace tt::tt_fabric {

inline constexpr std::uint32_t PACKET_WORD_SIZE_BYTES = 16;
inline constexpr std::uint16_t MAX_NUM_MESHES = 1024;
inline constexpr std::uint8_t edm_to_local_chip_noc = 1;

enum NocSendType : std::uint8_t {
  NOC_UNICAST_WRITE = 0,
  NOC_UNICAST_INLINE_WRITE = 1,
  NOC_UNICAST_ATOMIC_INC = 2,
  NOC_FUSED_UNICAST_ATOMIC_INC = 3,
  NOC_UNICAST_SCATTER_WRITE = 4,
  NOC_MULTICAST_WRITE = 5,
  NOC_MULTICAST_ATOMIC_INC = 6,
  NOC_UNICAST_READ = 7,
};
enum ChipSendType : std::uint8_t { CHIP_UNICAST = 0, CHIP_MULTICAST = 1 };
enum NocScatterWriteChunkEncoding : std::uint8_t {
  CHUNK_ENCODING_NOP = 0,
  CHUNK_ENCODING_UNICAST_WRITE = 1,
  CHUNK_ENCODING_SEMINC_NO_FLUSH = 2,
  CHUNK_ENCODING_SEMINC_FLUSH = 3,
};
constexpr std::uint8_t expand_encoding_to_all_chunks(NocScatterWriteChunkEncoding encoding) {
  return static_cast<std::uint8_t>(encoding * 0x55);
}
inline void set_chunk_encoding(std::uint8_t& encodings, NocScatterWriteChunkEncoding encoding,
                               std::uint32_t chunk) {
  encodings |= static_cast<std::uint8_t>(encoding << (chunk * 2));
}

#define NOC_SCATTER_WRITE_MAX_CHUNKS 4
#define NOC_SCATTER_WRITE_ATOMIC_INC_FUSED_WRITE_CHUNKS 2
inline constexpr std::uint8_t NOC_SCATTER_WRITE_MIN_CHUNKS = 2;

// --- what a packet does at its chip --------------------------------------------------------------

struct MulticastRoutingCommandHeader {
  std::uint8_t start_distance_in_hops;
  std::uint8_t range_hops;
};
template <typename Header>
struct get_max_num_hops {
  static constexpr std::uint32_t value = 16;
};
template <typename Header>
struct SparseMulticastRoutingCommandHeader {
  using HopMaskType = std::uint16_t;
  HopMaskType hop_mask;
};

struct NocUnicastCommandHeader {
  std::uint64_t noc_address;
};
struct NocUnicastInlineWriteCommandHeader {
  std::uint64_t noc_address;
  std::uint32_t value;
};
struct NocUnicastAtomicIncCommandHeader {
  NocUnicastAtomicIncCommandHeader(std::uint64_t address, std::uint32_t increment,
                                   bool flushes = true)
      : noc_address(address), val(increment), flush(flushes) {}
  std::uint64_t noc_address;
  std::uint32_t val;
  bool flush;
};
struct NocUnicastAtomicIncFusedCommandHeader {
  NocUnicastAtomicIncFusedCommandHeader(std::uint64_t address, std::uint64_t semaphore,
                                        std::uint32_t increment, bool flushes = true)
      : noc_address(address), semaphore_noc_address(semaphore), val(increment), flush(flushes) {}
  std::uint64_t noc_address;
  std::uint64_t semaphore_noc_address;
  std::uint32_t val;
  bool flush;
};
// The size of the last chunk is what is left of the payload.
struct NocUnicastScatterCommandHeader {
  std::uint64_t noc_address[NOC_SCATTER_WRITE_MAX_CHUNKS];
  std::uint16_t chunk_size[NOC_SCATTER_WRITE_MAX_CHUNKS - 1];
  std::uint8_t chunk_count;
  std::uint8_t chunk_encoding;

  NocUnicastScatterCommandHeader(std::initializer_list<std::uint64_t> addresses,
                                 std::initializer_list<std::uint16_t> sizes = {})
      : NocUnicastScatterCommandHeader(addresses.begin(), sizes.begin(),
                                       static_cast<std::uint8_t>(addresses.size()), sizes.size()) {}
  NocUnicastScatterCommandHeader(const std::uint64_t* addresses, const std::uint16_t* sizes,
                                 std::uint8_t count)
      : NocUnicastScatterCommandHeader(addresses, sizes, count, count > 0 ? count - 1u : 0u) {}

 private:
  NocUnicastScatterCommandHeader(const std::uint64_t* addresses, const std::uint16_t* sizes,
                                 std::uint8_t count, std::size_t size_count)
      : noc_address{}, chunk_size{}, chunk_count(count), chunk_encoding(0) {
    ASSERT(count > 0 && count <= NOC_SCATTER_WRITE_MAX_CHUNKS);
    for (std::size_t i = 0; i < count; ++i) noc_address[i] = addresses[i];
    for (std::size_t i = 0; i < size_count; ++i) chunk_size[i] = sizes[i];
  }
};
struct NocUnicastScatterAtomicIncFusedCommandHeader {
  std::uint64_t noc_address[NOC_SCATTER_WRITE_ATOMIC_INC_FUSED_WRITE_CHUNKS];
  std::uint64_t semaphore_noc_address;
  std::uint16_t chunk_size[NOC_SCATTER_WRITE_ATOMIC_INC_FUSED_WRITE_CHUNKS - 1];
  std::uint16_t val;
  bool flush;

  NocUnicastScatterAtomicIncFusedCommandHeader(std::initializer_list<std::uint64_t> addresses,
                                               std::uint64_t semaphore,
                                               std::initializer_list<std::uint16_t> sizes,
                                               std::uint16_t increment, bool flushes = true)
      : noc_address{addresses.begin()[0], addresses.begin()[1]},
        semaphore_noc_address(semaphore),
        chunk_size{sizes.begin()[0]},
        val(increment),
        flush(flushes) {
    ASSERT(addresses.size() == 2 && sizes.size() == 1);
  }
};
struct NocMulticastCommandHeader {
  std::uint32_t address;
  std::uint8_t noc_x_start;
  std::uint8_t noc_y_start;
  std::uint8_t mcast_rect_size_x;
  std::uint8_t mcast_rect_size_y;
};
struct NocMulticastAtomicIncCommandHeader {
  std::uint32_t address;
  std::uint32_t val;
  std::uint8_t noc_x_start;
  std::uint8_t noc_y_start;
  std::uint8_t size_x;
  std::uint8_t size_y;
};

union NocCommandFields {
  NocCommandFields() {}
  NocUnicastCommandHeader unicast_write;
  NocUnicastCommandHeader unicast_read;
  NocUnicastInlineWriteCommandHeader unicast_inline_write;
  NocMulticastCommandHeader mcast_write;
  NocUnicastAtomicIncCommandHeader unicast_seminc;
  NocUnicastAtomicIncFusedCommandHeader unicast_seminc_fused;
  NocMulticastAtomicIncCommandHeader mcast_seminc;
  NocUnicastScatterCommandHeader unicast_scatter_write;
};
static_assert(sizeof(NocCommandFields) == 40);

// --- headers ------------------------------------------------------------------------------------

template <typename Derived>
struct PacketHeaderBase {
  NocCommandFields command_fields;
  std::uint16_t payload_size_bytes;
  NocSendType noc_send_type;
  std::uint8_t src_ch_id;

  std::size_t get_payload_size_excluding_header() const volatile { return payload_size_bytes; }
  std::size_t get_payload_size_including_header() const volatile {
    return payload_size_bytes + sizeof(Derived);
  }
  NocSendType get_noc_send_type() const volatile { return noc_send_type; }
  void set_src_ch_id(std::uint8_t channel) volatile { src_ch_id = channel; }

  volatile Derived* to_chip_unicast(std::uint8_t distance_in_hops) volatile {
    self()->to_chip_unicast_impl(distance_in_hops);
    return self();
  }
  volatile Derived* to_chip_multicast(const MulticastRoutingCommandHeader& range) volatile {
    self()->to_chip_multicast_impl(range);
    return self();
  }
  volatile Derived* to_chip_sparse_multicast(
      const SparseMulticastRoutingCommandHeader<Derived>&) volatile {
    TOWPATH_CALL(refuse, "it sends a sparse multicast; multicasts reach chips side by side here");
    return self();
  }
  volatile Derived* to_noc_unicast_write(const NocUnicastCommandHeader& command,
                                         std::size_t size_bytes) volatile {
    command_fields.unicast_write.noc_address = command.noc_address;
    return as(NOC_UNICAST_WRITE, size_bytes);
  }
  volatile Derived* to_noc_unicast_inline_write(
      const NocUnicastInlineWriteCommandHeader& command) volatile {
    command_fields.unicast_inline_write.noc_address = command.noc_address;
    command_fields.unicast_inline_write.value = command.value;
    return as(NOC_UNICAST_INLINE_WRITE, 0);
  }
  volatile Derived* to_noc_unicast_atomic_inc(
      const NocUnicastAtomicIncCommandHeader& command) volatile {
    command_fields.unicast_seminc.noc_address = command.noc_address;
    command_fields.unicast_seminc.val = command.val;
    command_fields.unicast_seminc.flush = command.flush;
    return as(NOC_UNICAST_ATOMIC_INC, 0);
  }
  volatile Derived* to_noc_fused_unicast_write_atomic_inc(
      const NocUnicastAtomicIncFusedCommandHeader& command, std::size_t size_bytes) volatile {
    command_fields.unicast_seminc_fused.noc_address = command.noc_address;
    command_fields.unicast_seminc_fused.semaphore_noc_address = command.semaphore_noc_address;
    command_fields.unicast_seminc_fused.val = command.val;
    command_fields.unicast_seminc_fused.flush = command.flush;
    return as(NOC_FUSED_UNICAST_ATOMIC_INC, size_bytes);
  }
  volatile Derived* to_noc_unicast_scatter_write(const NocUnicastScatterCommandHeader& command,
                                                 std::size_t size_bytes) volatile {
    auto& fields = command_fields.unicast_scatter_write;
    for (std::uint32_t i = 0; i < NOC_SCATTER_WRITE_MAX_CHUNKS; ++i) {
      fields.noc_address[i] = i < command.chunk_count ? command.noc_address[i] : 0;
      if (i + 1 < NOC_SCATTER_WRITE_MAX_CHUNKS) {
        fields.chunk_size[i] = i + 1 < command.chunk_count ? command.chunk_size[i] : 0;
      }
    }
    fields.chunk_count = command.chunk_count;
    fields.chunk_encoding = expand_encoding_to_all_chunks(CHUNK_ENCODING_UNICAST_WRITE);
    return as(NOC_UNICAST_SCATTER_WRITE, size_bytes);
  }
  volatile Derived* to_noc_fused_unicast_scatter_write_atomic_inc(
      const NocUnicastScatterAtomicIncFusedCommandHeader& command,
      std::size_t size_bytes) volatile {
    auto& fields = command_fields.unicast_scatter_write;
    fields.noc_address[0] = command.noc_address[0];
    fields.noc_address[1] = command.noc_address[1];
    fields.noc_address[2] = command.semaphore_noc_address;
    fields.noc_address[3] = 0;
    fields.chunk_size[0] = command.chunk_size[0];
    fields.chunk_size[1] = static_cast<std::uint16_t>(size_bytes - command.chunk_size[0]);
    fields.chunk_size[2] = command.val;
    fields.chunk_count = 3;
    std::uint8_t encodings = 0;
    set_chunk_encoding(encodings, CHUNK_ENCODING_UNICAST_WRITE, 0);
    set_chunk_encoding(encodings, CHUNK_ENCODING_UNICAST_WRITE, 1);
    set_chunk_encoding(
        encodings, command.flush ? CHUNK_ENCODING_SEMINC_FLUSH : CHUNK_ENCODING_SEMINC_NO_FLUSH, 2);
    fields.chunk_encoding = encodings;
    return as(NOC_UNICAST_SCATTER_WRITE, size_bytes);
  }

 private:
  volatile Derived* self() volatile { return static_cast<volatile Derived*>(this); }
  volatile Derived* as(NocSendType type, std::size_t size_bytes) volatile {
    noc_send_type = type;
    payload_size_bytes = static_cast<std::uint16_t>(size_bytes);
    return self();
  }
};

// A line of chips: the distance to the first, and how many there are from it on.
struct LowLatencyRoutingFields {
  std::uint32_t value;
  std::uint32_t route_buffer[1];
};
struct LowLatencyPacketHeader : PacketHeaderBase<LowLatencyPacketHeader> {
  LowLatencyRoutingFields routing_fields;
  std::uint8_t padding0[64 - sizeof(NocCommandFields) - 4 - sizeof(LowLatencyRoutingFields)];

  void to_chip_unicast_impl(std::uint8_t distance_in_hops) volatile {
    to_chip_multicast_impl({distance_in_hops, 1});
  }
  void to_chip_multicast_impl(const MulticastRoutingCommandHeader& range) volatile {
    routing_fields.value =
        range.start_distance_in_hops | static_cast<std::uint32_t>(range.range_hops) << 8;
  }
};
static_assert(sizeof(LowLatencyPacketHeader) == TOWPATH_LINE_HEADER_BYTES);
using PacketHeader = LowLatencyPacketHeader;

// A mesh: the chip, or how far a multicast goes each way.
struct LowLatencyMeshRoutingFields {
  std::uint32_t value;
};
struct HybridMeshPacketHeader : PacketHeaderBase<HybridMeshPacketHeader> {
  LowLatencyMeshRoutingFields routing_fields;
  std::uint8_t route_buffer[32];
  union {
    struct {
      std::uint16_t dst_start_chip_id;
      std::uint16_t dst_start_mesh_id;
    };
    std::uint32_t dst_start_node_id;
  };
  std::uint16_t mcast_params[4];
  std::uint8_t is_mcast_active;
  std::uint8_t padding0[3];

  void to_chip_unicast_impl(std::uint8_t) volatile {}
  void to_chip_multicast_impl(const MulticastRoutingCommandHeader&) volatile {}
};
static_assert(sizeof(HybridMeshPacketHeader) == TOWPATH_MESH_HEADER_BYTES);

}  // namespace tt::tt_fabric

#ifdef FABRIC_2D
#define PACKET_HEADER_TYPE tt::tt_fabric::HybridMeshPacketHeader
#define ROUTING_FIELDS_TYPE tt::tt_fabric::LowLatencyMeshRoutingFields
#else
#define PACKET_HEADER_TYPE tt::tt_fabric::LowLatencyPacketHeader
#define ROUTING_FIELDS_TYPE tt::tt_fabric::LowLatencyRoutingFields
#endif

// --- what the simulator takes from a header ------------------------------------------------------

namespace towpath::fabric {

using namespace tt::tt_fabric;

inline void add_chunks(TowpathPacket& packet, const NocUnicastScatterCommandHeader& chunks) {
  if (chunks.chunk_count > NOC_SCATTER_WRITE_MAX_CHUNKS) {
    TOWPATH_CALL(refuse, "it sends a packet of more than 4 chunks");
  }
  std::uint32_t left = packet.payload_bytes;
  for (std::uint32_t i = 0; i < chunks.chunk_count; ++i) {
    const std::uint32_t encoding = chunks.chunk_encoding >> (2 * i) & 3;
    const bool is_last = i + 1 == NOC_SCATTER_WRITE_MAX_CHUNKS ||
                         (i + 1 == chunks.chunk_count && encoding == CHUNK_ENCODING_UNICAST_WRITE);
    const std::uint32_t number = is_last ? left : chunks.chunk_size[i];
    if (encoding == CHUNK_ENCODING_UNICAST_WRITE) {
      if (number > left) {
        TOWPATH_CALL(refuse, "it sends a packet whose chunks have more bytes than its payload");
      }
      packet.to[i] = chunks.noc_address[i];
      packet.bytes[i] = number;
      left -= number;
      continue;
    }
    packet.action |= kTowpathPacketIncrements;
    if (encoding == CHUNK_ENCODING_SEMINC_FLUSH) packet.action |= kTowpathPacketFlushes;
    packet.word = chunks.noc_address[i];
    packet.value = number;
  }
}

inline void set_increment(TowpathPacket& packet, std::uint64_t word, std::uint32_t value,
                          bool flushes) {
  packet.action |= kTowpathPacketIncrements | (flushes ? kTowpathPacketFlushes : 0);
  packet.word = word;
  packet.value = value;
}

template <typename Header>
inline void set_action(TowpathPacket& packet, const Header& header) {
  const NocCommandFields& fields = header.command_fields;
  packet.payload_bytes = header.payload_size_bytes;
  switch (header.noc_send_type) {
    case NOC_UNICAST_WRITE:
      packet.action = kTowpathPacketWrites;
      packet.to[0] = fields.unicast_write.noc_address;
      break;
    case NOC_UNICAST_INLINE_WRITE:
      packet.action = kTowpathPacketSetsWord;
      packet.word = fields.unicast_inline_write.noc_address;
      packet.value = fields.unicast_inline_write.value;
      break;
    case NOC_UNICAST_ATOMIC_INC:
      set_increment(packet, fields.unicast_seminc.noc_address, fields.unicast_seminc.val,
                    fields.unicast_seminc.flush);
      break;
    case NOC_FUSED_UNICAST_ATOMIC_INC:
      packet.action = kTowpathPacketWrites;
      packet.to[0] = fields.unicast_seminc_fused.noc_address;
      set_increment(packet, fields.unicast_seminc_fused.semaphore_noc_address,
                    fields.unicast_seminc_fused.val, fields.unicast_seminc_fused.flush);
      break;
    case NOC_UNICAST_SCATTER_WRITE:
      packet.action = kTowpathPacketWrites | kTowpathPacketScatters;
      add_chunks(packet, fields.unicast_scatter_write);
      break;
    default:
      TOWPATH_CALL(refuse,
                   "it sends a packet that reads, or that writes to several cores of a chip; a "
                   "packet writes, increments or sets a word here");
  }
}

inline void set_route(TowpathPacket& packet, const LowLatencyPacketHeader& header) {
  packet.route = kTowpathAlongLine;
  packet.hops[0] = header.routing_fields.value & 0xff;
  packet.hops[1] = header.routing_fields.value >> 8;
}
inline void set_route(TowpathPacket& packet, const HybridMeshPacketHeader& header) {
  packet.route = kTowpathToChip;
  packet.hops[0] = header.dst_start_chip_id;
  for (const std::uint16_t hops : header.mcast_params) {
    if (hops > 0) packet.route = kTowpathToRectangle;
  }
  if (packet.route == kTowpathToChip) return;
  for (int i = 0; i < 4; ++i) packet.hops[i] = header.mcast_params[i];
}

// The packet whose header is at an address of L1.
inline TowpathPacket packet_at(std::uint32_t address) {
  alignas(16) unsigned char bytes[sizeof(PACKET_HEADER_TYPE)];
  TOWPATH_CALL(load, address, bytes, sizeof(bytes), nullptr);
  const auto& header = *reinterpret_cast<const PACKET_HEADER_TYPE*>(bytes);
  TowpathPacket packet{};
  set_action(packet, header);
  set_route(packet, header);
  return packet;
}

}  // namespace towpath::fabric
