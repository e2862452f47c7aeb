// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>

#include "api/alignment.h"
#include "api/compile_time_args.h"
#include "api/dataflow/addresses.h"
#include "api/debug/assert.h"
#include "api/debug/dprint.h"
#include "circular_buffers.h"
#include "noc_parameters.h"
#include "tensix_types.h"
#include "tools/profiler/kernel_profiler.h"
#include "towpath_prelude.h"
#ifdef COMPILE_FOR_TRISC
#include "api/compute/engine.h"
#endif

// TT-Metalium's data movement interface for kernels: its names, arguments and defaults (tt-metal,
// hw/inc/api/dataflow/dataflow_api.h). What a call does and costs is the simulator's.

using noc_index_t = std::uint8_t;

inline constexpr std::uint32_t INVALID = 0;
inline constexpr std::uint32_t VALID = 1;

inline constexpr std::uint8_t DM_DEDICATED_NOC = 0;
inline constexpr std::uint8_t DM_DYNAMIC_NOC = 1;
inline constexpr std::uint8_t noc_mode = DM_DEDICATED_NOC;
inline constexpr std::uint8_t read_cmd_buf = 0;
inline constexpr std::uint8_t write_cmd_buf = 1;
inline constexpr std::uint8_t write_reg_cmd_buf = 2;
inline constexpr std::uint8_t write_at_cmd_buf = 3;

enum class InlineWriteDst : std::uint8_t { DEFAULT, L1, REG };

// --- arguments ----------------------------------------------------------------------------------

inline void towpath_check_argument(std::uint32_t index, std::uint32_t count) {
  if (index >= count) {
    TOWPATH_CALL(refuse, "the kernel reads a runtime argument that it was not given");
  }
}

inline std::uintptr_t get_arg_addr(int arg_idx) {
  return reinterpret_cast<std::uintptr_t>(towpath_core.arguments + arg_idx);
}
inline std::uintptr_t get_common_arg_addr(int arg_idx) {
  return reinterpret_cast<std::uintptr_t>(towpath_core.common_arguments + arg_idx);
}
template <typename T>
inline T get_arg_val(int arg_idx) {
  static_assert(sizeof(T) == 4, "a runtime argument has 4 bytes");
  towpath_check_argument(static_cast<std::uint32_t>(arg_idx), towpath_core.argument_count);
  return __builtin_bit_cast(T, towpath_core.arguments[arg_idx]);
}
template <typename T>
inline T get_common_arg_val(int arg_idx) {
  static_assert(sizeof(T) == 4, "a runtime argument has 4 bytes");
  towpath_check_argument(static_cast<std::uint32_t>(arg_idx), towpath_core.common_argument_count);
  return __builtin_bit_cast(T, towpath_core.common_arguments[arg_idx]);
}

inline std::uint8_t get_absolute_logical_x() {
  return static_cast<std::uint8_t>(towpath_core.logical_x);
}
inline std::uint8_t get_absolute_logical_y() {
  return static_cast<std::uint8_t>(towpath_core.logical_y);
}
inline std::uint8_t get_relative_logical_x() { return get_absolute_logical_x(); }
inline std::uint8_t get_relative_logical_y() { return get_absolute_logical_y(); }
inline std::uint32_t get_num_threads() { return 1; }
inline std::uint32_t get_my_thread_id() { return 0; }

// --- circular buffers ---------------------------------------------------------------------------

// Formats of the core's buffers, by number.
inline constexpr std::uint8_t towpath_formats[] = {TOWPATH_BUFFER_FORMATS};
constexpr DataFormat get_dataformat(std::uint32_t operand) {
  return operand < sizeof(towpath_formats) ? static_cast<DataFormat>(towpath_formats[operand])
                                           : DataFormat::Invalid;
}
constexpr std::uint32_t get_tile_size(std::uint32_t operand) {
  return MUL_WITH_TILE_SIZE(static_cast<unsigned>(get_dataformat(operand)), 1);
}
constexpr std::uint32_t get_tile_hw(std::uint32_t) { return 1024; }
inline void cb_push_back(std::int32_t operand, std::int32_t num_pages) {
#ifdef COMPILE_FOR_TRISC
  towpath::compute::wait_until(towpath::compute::engine.packed_at);
  towpath::compute::engine.packed_tiles[operand % 32] = 0;
#endif
  TOWPATH_CALL(cb_push_back, operand, num_pages);
}
inline void cb_pop_front(std::int32_t operand, std::int32_t num_pages) {
#ifdef COMPILE_FOR_TRISC
  towpath::compute::wait_until(towpath::compute::engine.unpacked_at);
#endif
  TOWPATH_CALL(cb_pop_front, operand, num_pages);
}
inline std::uint32_t get_write_ptr(std::uint32_t operand) {
  return TOWPATH_CALL(cb_pointer, operand, kTowpathWritePointer);
}
inline std::uint32_t get_read_ptr(std::uint32_t operand) {
  return TOWPATH_CALL(cb_pointer, operand, kTowpathReadPointer);
}
inline bool cb_pages_reservable_at_back(std::int32_t operand, std::int32_t num_pages) {
  return TOWPATH_CALL(cb_are_pages, operand, num_pages, 0) != 0;
}
inline void cb_reserve_back(std::int32_t operand, std::int32_t num_pages) {
  TOWPATH_CALL(cb_reserve_back, operand, num_pages);
}
inline bool cb_pages_available_at_front(std::int32_t operand, std::int32_t num_pages) {
  return TOWPATH_CALL(cb_are_pages, operand, num_pages, 1) != 0;
}
inline void cb_wait_front(std::int32_t operand, std::int32_t num_pages) {
  TOWPATH_CALL(cb_wait_front, operand, num_pages);
}

// A buffer's state, to read: what a kernel changes is changed by the calls above. Pointers are
// addresses in bytes.
struct LocalCBInterface {
  const std::uint32_t fifo_size;
  const std::uint32_t fifo_limit;
  const std::uint32_t fifo_page_size;
  const std::uint32_t fifo_num_pages;
  const std::uint32_t fifo_rd_ptr;
  const std::uint32_t fifo_wr_ptr;
};
inline LocalCBInterface& get_local_cb_interface(std::uint32_t operand) {
  alignas(LocalCBInterface) static unsigned char states[32][sizeof(LocalCBInterface)];
  const std::uint32_t page_bytes = TOWPATH_CALL(cb_page_bytes, operand);
  const std::uint32_t pages = TOWPATH_CALL(cb_pages, operand);
  const std::uint32_t begin = TOWPATH_CALL(cb_pointer, operand, kTowpathFirstPointer);
  return *new (states[operand]) LocalCBInterface{page_bytes * pages, begin + page_bytes * pages,
                                                 page_bytes,         pages,
                                                 get_read_ptr(operand), get_write_ptr(operand)};
}

// --- reads --------------------------------------------------------------------------------------

inline TowpathOptions towpath_options(std::uint32_t noc, std::uint32_t vc, std::uint32_t flags,
                                      std::uint32_t id = 0, std::uint32_t destinations = 0) {
  return {static_cast<std::int32_t>(noc), static_cast<std::int32_t>(vc), flags, id, destinations};
}

template <bool enable_noc_tracing = true>
inline void noc_async_read_one_packet(std::uint64_t src_noc_addr, std::uint32_t dst_local_l1_addr,
                                      std::uint32_t size, noc_index_t noc = noc_index,
                                      std::uint32_t read_req_vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(read, src_noc_addr, dst_local_l1_addr, size,
               towpath_options(noc, read_req_vc, kTowpathOnePacket));
}
template <std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1, bool enable_noc_tracing = true>
inline void noc_async_read(std::uint64_t src_noc_addr, std::uint32_t dst_local_l1_addr,
                           std::uint32_t size, noc_index_t noc = noc_index,
                           std::uint32_t read_req_vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(read, src_noc_addr, dst_local_l1_addr, size,
               towpath_options(noc, read_req_vc, 0));
}
template <bool use_vc = false>
inline void noc_async_read_one_packet_set_state(std::uint64_t src_noc_addr, std::uint32_t size,
                                                std::uint32_t vc = 0,
                                                noc_index_t noc = noc_index) {
  TOWPATH_CALL(read_set_state, src_noc_addr, size,
               towpath_options(noc, use_vc ? vc : NOC_UNICAST_WRITE_VC, kTowpathOnePacket));
}
template <bool inc_num_issued = true, bool use_vc = false>
inline void noc_async_read_one_packet_with_state(std::uint32_t src_local_l1_addr,
                                                 std::uint32_t dst_local_l1_addr,
                                                 std::uint32_t vc = 0,
                                                 noc_index_t noc = noc_index) {
  TOWPATH_CALL(read_with_state, src_local_l1_addr, dst_local_l1_addr, 0,
               towpath_options(noc, vc, kTowpathOnePacket));
}
inline void noc_async_read_set_state(std::uint64_t src_noc_addr, noc_index_t noc = noc_index) {
  TOWPATH_CALL(read_set_state, src_noc_addr, 0, towpath_options(noc, NOC_UNICAST_WRITE_VC, 0));
}
template <bool inc_num_issued = true>
inline void noc_async_read_with_state(std::uint32_t src_local_l1_addr,
                                      std::uint32_t dst_local_l1_addr, std::uint32_t size,
                                      noc_index_t noc = noc_index) {
  TOWPATH_CALL(read_with_state, src_local_l1_addr, dst_local_l1_addr, size,
               towpath_options(noc, NOC_UNICAST_WRITE_VC, 0));
}
// The NIU counts what is issued.
inline void noc_async_read_inc_num_issued(std::uint32_t, noc_index_t = noc_index) {}

// --- writes -------------------------------------------------------------------------------------

inline constexpr std::uint32_t towpath_posted(bool is_posted) {
  return is_posted ? kTowpathPosted : 0u;
}
template <bool enable_noc_tracing = true, bool posted = false>
inline void noc_async_write_one_packet(std::uint32_t src_local_l1_addr, std::uint64_t dst_noc_addr,
                                       std::uint32_t size, noc_index_t noc = noc_index,
                                       std::uint32_t vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(write, src_local_l1_addr, dst_noc_addr, size,
               towpath_options(noc, vc, kTowpathOnePacket | towpath_posted(posted)));
}
template <std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1, bool enable_noc_tracing = true,
          bool posted = false>
inline void noc_async_write(std::uint32_t src_local_l1_addr, std::uint64_t dst_noc_addr,
                            std::uint32_t size, noc_index_t noc = noc_index,
                            std::uint32_t vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(write, src_local_l1_addr, dst_noc_addr, size,
               towpath_options(noc, vc, towpath_posted(posted)));
}
template <bool posted = false>
inline void noc_async_write_one_packet_set_state(std::uint64_t dst_noc_addr, std::uint32_t size,
                                                 noc_index_t noc = noc_index,
                                                 std::uint8_t vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(write_set_state, dst_noc_addr, size,
               towpath_options(noc, vc, kTowpathOnePacket | towpath_posted(posted)));
}
template <bool posted = false>
inline void noc_async_write_one_packet_with_state(std::uint32_t src_local_l1_addr,
                                                  std::uint32_t dst_local_l1_addr,
                                                  noc_index_t noc = noc_index) {
  TOWPATH_CALL(write_with_state, src_local_l1_addr, dst_local_l1_addr, 0,
               towpath_options(noc, NOC_UNICAST_WRITE_VC, kTowpathOnePacket));
}
template <bool enable_noc_tracing = true>
inline void noc_async_write_multicast_one_packet(std::uint32_t src_local_l1_addr,
                                                 std::uint64_t dst_noc_addr_multicast,
                                                 std::uint32_t size, std::uint32_t num_dests,
                                                 bool linked = false,
                                                 noc_index_t noc = noc_index) {
  TOWPATH_CALL(multicast, src_local_l1_addr, dst_noc_addr_multicast, size,
               towpath_options(noc, NOC_MULTICAST_WRITE_VC,
                               kTowpathOnePacket | (linked ? kTowpathLinked : 0u),
                               0, num_dests));
}
template <std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1>
inline void noc_async_write_multicast(std::uint32_t src_local_l1_addr,
                                      std::uint64_t dst_noc_addr_multicast, std::uint32_t size,
                                      std::uint32_t num_dests, bool linked = false,
                                      noc_index_t noc = noc_index) {
  TOWPATH_CALL(multicast, src_local_l1_addr, dst_noc_addr_multicast, size,
               towpath_options(noc, NOC_MULTICAST_WRITE_VC, linked ? kTowpathLinked : 0u,
                               0, num_dests));
}
inline void noc_async_write_multicast_loopback_src(std::uint32_t src_local_l1_addr,
                                                   std::uint64_t dst_noc_addr_multicast,
                                                   std::uint32_t size, std::uint32_t num_dests,
                                                   bool linked = false,
                                                   noc_index_t noc = noc_index) {
  TOWPATH_CALL(multicast, src_local_l1_addr, dst_noc_addr_multicast, size,
               towpath_options(noc, NOC_MULTICAST_WRITE_VC,
                               kTowpathLoopback | (linked ? kTowpathLinked : 0u),
                               0, num_dests));
}
template <InlineWriteDst dst_type = InlineWriteDst::DEFAULT, bool posted = false, bool flush = true>
inline void noc_inline_dw_write(std::uint64_t addr, std::uint32_t val, std::uint8_t be = 0xF,
                                noc_index_t noc = noc_index,
                                std::uint8_t vc = NOC_UNICAST_WRITE_VC,
                                std::uint32_t customized_src_addr = 0) {
  if (be != 0xF) TOWPATH_CALL(refuse, "noc_inline_dw_write writes whole words; be must be 0xF");
  TOWPATH_CALL(inline_write, addr, val, towpath_options(noc, vc, towpath_posted(posted)));
}
inline std::uint32_t towpath_inline_value;
template <bool posted = false, bool set_val = false>
inline void noc_inline_dw_write_set_state(std::uint64_t addr, std::uint32_t val = 0,
                                          std::uint8_t be = 0xF,
                                          std::uint8_t cmd_buf = write_at_cmd_buf,
                                          noc_index_t noc = noc_index,
                                          std::uint8_t vc = NOC_UNICAST_WRITE_VC) {
  if constexpr (set_val) towpath_inline_value = val;
  TOWPATH_CALL(inline_write_set_state, addr, towpath_options(noc, vc, towpath_posted(posted)));
}
template <bool update_addr_lo = false, bool update_counter = true, bool posted = false,
          bool update_addr_hi = false, bool update_val = false,
          InlineWriteDst dst_type = InlineWriteDst::DEFAULT>
inline void noc_inline_dw_write_with_state(std::uint32_t val, std::uint32_t addr = 0,
                                           std::uint8_t cmd_buf = write_at_cmd_buf,
                                           noc_index_t noc = noc_index) {
  static_assert(!update_addr_hi, "the destination's tile is what set_state has set");
  TOWPATH_CALL(inline_write_with_state, update_val ? val : towpath_inline_value,
               update_addr_lo ? addr : 0xffffffffu, towpath_options(noc, NOC_UNICAST_WRITE_VC, 0));
}

// --- transaction ids ----------------------------------------------------------------------------

inline void noc_async_read_set_trid(std::uint32_t trid = 0, noc_index_t noc = noc_index) {
  TOWPATH_CALL(set_id, 1, trid, noc);
}
inline void noc_async_write_set_trid(std::uint32_t trid = 0, noc_index_t noc = noc_index) {
  TOWPATH_CALL(set_id, 0, trid, noc);
}
template <bool skip_ptr_update = false, bool skip_cmdbuf_chk = false>
inline void noc_async_read_one_packet_with_state_with_trid(std::uint32_t src_base_addr,
                                                           std::uint32_t src_addr,
                                                           std::uint32_t dest_addr,
                                                           std::uint32_t trid = 0,
                                                           noc_index_t noc = noc_index) {
  TOWPATH_CALL(read_with_id, src_base_addr + src_addr, dest_addr, trid,
               towpath_options(noc, NOC_UNICAST_WRITE_VC, kTowpathOnePacket));
}
template <bool update_counter = true, bool posted = false>
inline void noc_async_write_one_packet_with_trid(std::uint32_t src_local_l1_addr,
                                                 std::uint64_t dst_noc_addr, std::uint32_t size,
                                                 std::uint32_t trid,
                                                 std::uint8_t cmd_buf = write_cmd_buf,
                                                 noc_index_t noc = noc_index,
                                                 std::uint8_t vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(write_with_id, src_local_l1_addr, dst_noc_addr, size,
               towpath_options(noc, vc, towpath_posted(posted), trid));
}
template <bool posted = false>
inline void noc_async_write_one_packet_with_trid_set_state(
    std::uint64_t dst_noc_addr, std::uint8_t cmd_buf = write_cmd_buf, noc_index_t noc = noc_index,
    std::uint8_t vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(write_with_id_set_state, dst_noc_addr,
               towpath_options(noc, vc, towpath_posted(posted)));
}
template <bool update_counter = true, bool posted = false>
inline void noc_async_write_one_packet_with_trid_with_state(
    std::uint32_t src_local_l1_addr, std::uint32_t dst_local_l1_addr, std::uint32_t size,
    std::uint32_t trid, std::uint8_t cmd_buf = write_cmd_buf, noc_index_t noc = noc_index) {
  TOWPATH_CALL(write_with_id_with_state, src_local_l1_addr, dst_local_l1_addr, size,
               towpath_options(noc, NOC_UNICAST_WRITE_VC, 0, trid));
}

// --- barriers -----------------------------------------------------------------------------------

inline void noc_async_read_barrier(noc_index_t noc = noc_index) {
  TOWPATH_CALL(barrier, kTowpathReads, 0, noc);
}
inline void noc_async_write_barrier(noc_index_t noc = noc_index) {
  TOWPATH_CALL(barrier, kTowpathWrites, 0, noc);
}
inline void noc_async_writes_flushed(noc_index_t noc = noc_index) {
  TOWPATH_CALL(barrier, kTowpathWritesFlushed, 0, noc);
}
inline void noc_async_posted_writes_flushed(noc_index_t noc = noc_index) {
  TOWPATH_CALL(barrier, kTowpathPostedWritesFlushed, 0, noc);
}
inline void noc_async_atomic_barrier(std::uint8_t noc_idx = noc_index) {
  TOWPATH_CALL(barrier, kTowpathAtomics, 0, noc_idx);
}
inline void noc_async_full_barrier(std::uint8_t noc_idx = noc_index) {
  TOWPATH_CALL(barrier, kTowpathEverything, 0, noc_idx);
}
inline void noc_async_read_barrier_with_trid(std::uint32_t trid, noc_index_t noc = noc_index) {
  TOWPATH_CALL(barrier, kTowpathReadsOfId, trid, noc);
}
inline void noc_async_write_barrier_with_trid(std::uint32_t trid, noc_index_t noc = noc_index) {
  TOWPATH_CALL(barrier, kTowpathWritesOfId, trid, noc);
}
inline void noc_async_write_flushed_with_trid(std::uint32_t trid, noc_index_t noc = noc_index) {
  TOWPATH_CALL(barrier, kTowpathWritesFlushedOfId, trid, noc);
}
inline void reset_noc_trid_barrier_counter(
    std::uint32_t id_mask = NOC_CLEAR_OUTSTANDING_REQ_MASK, std::uint32_t noc = noc_index) {
  TOWPATH_CALL(reset_ids, id_mask, static_cast<std::int32_t>(noc));
}

// --- semaphores ---------------------------------------------------------------------------------

inline std::uint32_t towpath_offset_of(const volatile void* address) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address));
}
template <ProgrammableCoreType type = ProgrammableCoreType::TENSIX>
inline std::uint32_t get_semaphore(std::uint32_t semaphore_id) {
  return towpath_core.semaphore_base[type != ProgrammableCoreType::TENSIX] +
         semaphore_id * L1_ALIGNMENT;
}
inline void noc_semaphore_set_remote(std::uint32_t src_local_l1_addr, std::uint64_t dst_noc_addr,
                                     noc_index_t noc = noc_index) {
  TOWPATH_CALL(semaphore_set_remote, src_local_l1_addr, dst_noc_addr,
               towpath_options(noc, NOC_UNICAST_WRITE_VC, 0));
}
inline void noc_semaphore_set_multicast(std::uint32_t src_local_l1_addr,
                                        std::uint64_t dst_noc_addr_multicast,
                                        std::uint32_t num_dests, bool linked = false,
                                        noc_index_t noc = noc_index) {
  TOWPATH_CALL(multicast, src_local_l1_addr, dst_noc_addr_multicast, 4,
               towpath_options(noc, NOC_MULTICAST_WRITE_VC,
                               kTowpathWord | (linked ? kTowpathLinked : 0u),
                               0, num_dests));
}
inline void noc_semaphore_set_multicast_loopback_src(std::uint32_t src_local_l1_addr,
                                                     std::uint64_t dst_noc_addr_multicast,
                                                     std::uint32_t num_dests, bool linked = false,
                                                     noc_index_t noc = noc_index) {
  TOWPATH_CALL(multicast, src_local_l1_addr, dst_noc_addr_multicast, 4,
               towpath_options(noc, NOC_MULTICAST_WRITE_VC,
                               kTowpathWord | kTowpathLoopback | (linked ? kTowpathLinked : 0u),
                               0, num_dests));
}
inline void noc_semaphore_wait(volatile tt_l1_ptr std::uint32_t* sem_addr, std::uint32_t val) {
  TOWPATH_CALL(semaphore_wait, towpath_offset_of(sem_addr), val, 0);
}
inline void noc_semaphore_wait_min(volatile tt_l1_ptr std::uint32_t* sem_addr, std::uint32_t val) {
  TOWPATH_CALL(semaphore_wait, towpath_offset_of(sem_addr), val, 1);
}
inline void noc_semaphore_set(volatile tt_l1_ptr std::uint32_t* sem_addr, std::uint32_t val) {
  TOWPATH_CALL(semaphore_set, towpath_offset_of(sem_addr), val);
}
template <bool posted = false>
inline void noc_semaphore_inc(std::uint64_t addr, std::uint32_t incr,
                              noc_index_t noc_id = noc_index,
                              std::uint8_t vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(semaphore_inc, addr, incr, towpath_options(noc_id, vc, towpath_posted(posted)));
}
template <bool posted = false>
inline void noc_semaphore_inc_multicast(std::uint64_t addr, std::uint32_t incr,
                                        std::uint32_t num_dests, noc_index_t noc_id = noc_index) {
  TOWPATH_CALL(semaphore_inc_multicast, addr, incr, num_dests,
               towpath_options(noc_id, NOC_MULTICAST_WRITE_VC, towpath_posted(posted)));
}

// --- time ---------------------------------------------------------------------------------------

inline std::uint64_t get_timestamp() { return TOWPATH_CALL(cycle); }
inline std::uint32_t get_timestamp_32b() { return static_cast<std::uint32_t>(get_timestamp()); }
inline void riscv_wait(std::uint32_t cycles) { TOWPATH_CALL(work, cycles); }
inline void invalidate_l1_cache() {}
inline void zero_l1_buf(tt_l1_ptr std::uint32_t* buf, std::uint32_t size_bytes) {
  for (std::uint32_t i = 0; i < size_bytes / 4; ++i) buf[i] = 0;
}
template <bool enable>
inline void set_l1_data_cache() {}
inline void RISC_POST_HEARTBEAT(std::uint32_t& heartbeat) { ++heartbeat; }

#include "api/dataflow/nonblocking.h"
#include "api/dataflow/pages.h"
#include "api/tensor/tensor_accessor.h"
