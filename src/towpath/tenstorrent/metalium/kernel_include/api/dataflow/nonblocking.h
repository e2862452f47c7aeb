// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layer below dataflow_api.h, as far as headers of tt-metal use it, included by that. Tests of
// what is under way with an id look once. Those of all requests wait here, because what calls them
// repeats them until they hold.

#define DATA_FORMATS_DEFINED
#define DEBUG_SANITIZE_L1_ADDR(...)
#define DEBUG_SANITIZE_NOC_ADDR(...)
#define DEBUG_SANITIZE_NO_DRAM_ADDR(...)
#define DEBUG_SANITIZE_NO_LINKED_TRANSACTION(...)
#define DEBUG_SANITIZE_NOC_READ_TRANSACTION(...)
#define DEBUG_SANITIZE_NOC_WRITE_TRANSACTION(...)
#define DEBUG_SANITIZE_NOC_WRITE_TRANSACTION_WITH_ADDR_STATE(...)
#define DEBUG_SANITIZE_NOC_WRITE_TRANSACTION_WITH_ADDR_AND_SIZE_STATE(...)
#define DEBUG_SANITIZE_NOC_MULTI_WRITE_TRANSACTION(...)
#define RECORD_NOC_EVENT(...)
#define RECORD_NOC_EVENT_WITH_ADDR(...)
#define RECORD_NOC_EVENT_WITH_ID(...)
#define NOC_TRACE_QUICK_PUSH_IF_LINKED(...)

template <std::uint8_t mode = 0, bool one_packet = false, bool use_vc = false>
inline void ncrisc_noc_read_set_state(std::uint32_t noc, std::uint32_t, std::uint64_t src_noc_addr,
                                      std::uint32_t size = 0, std::uint32_t vc = 0) {
  TOWPATH_CALL(read_set_state, src_noc_addr, size,
               towpath_options(noc, use_vc ? vc : NOC_UNICAST_WRITE_VC,
                               one_packet ? kTowpathOnePacket : 0u));
}
template <bool posted = false, bool one_packet = false>
inline void ncrisc_noc_write_set_state(std::uint32_t noc, std::uint32_t, std::uint64_t dst_noc_addr,
                                       std::uint32_t size = 0,
                                       std::uint32_t vc = NOC_UNICAST_WRITE_VC) {
  TOWPATH_CALL(write_set_state, dst_noc_addr, size,
               towpath_options(noc, vc,
                               towpath_posted(posted) | (one_packet ? kTowpathOnePacket : 0u)));
}
template <std::uint8_t mode = 0, bool posted = false>
inline void ncrisc_noc_write_any_len_with_state(std::uint32_t noc, std::uint32_t, std::uint32_t src,
                                                std::uint32_t dst, std::uint32_t size) {
  TOWPATH_CALL(write_with_state, src, dst, size, towpath_options(noc, NOC_UNICAST_WRITE_VC, 0));
}
template <std::uint8_t mode = 0, bool use_trid = false, bool one_packet = false>
inline void ncrisc_noc_fast_write_any_len(std::uint32_t noc, std::uint32_t, std::uint32_t src,
                                          std::uint64_t dst, std::uint32_t size, std::uint32_t vc,
                                          bool mcast, bool linked, std::uint32_t num_dests,
                                          bool path_reserve, bool posted = false,
                                          std::uint32_t trid = 0) {
  const TowpathOptions options = towpath_options(
      noc, vc, towpath_posted(posted) | (linked ? static_cast<std::uint32_t>(kTowpathLinked) : 0u),
      trid, num_dests);
  if (mcast) {
    TOWPATH_CALL(multicast, src, dst, size, options);
  } else if (use_trid) {
    TOWPATH_CALL(write_with_id, src, dst, size, options);
  } else {
    TOWPATH_CALL(write, src, dst, size, options);
  }
}
template <std::uint8_t mode = 0, InlineWriteDst dst_type = InlineWriteDst::DEFAULT,
          bool flush = true>
inline void noc_fast_write_dw_inline(std::uint32_t noc, std::uint32_t, std::uint32_t val,
                                     std::uint64_t dest_addr, std::uint32_t be, std::uint32_t vc,
                                     bool mcast, bool posted = false,
                                     std::uint32_t customized_src_addr = 0) {
  if (mcast) TOWPATH_CALL(refuse, "an inline write has one destination; mcast must be false");
  noc_inline_dw_write(dest_addr, val, static_cast<std::uint8_t>(be), static_cast<noc_index_t>(noc),
                      static_cast<std::uint8_t>(vc));
}
inline std::uint32_t noc_get_interim_inline_value_addr(std::uint32_t, std::uint64_t) { return 0; }

inline bool noc_cmd_buf_ready(std::uint32_t, std::uint32_t) { return true; }
inline bool ncrisc_noc_reads_flushed(std::uint32_t noc) {
  TOWPATH_CALL(barrier, kTowpathReads, 0, static_cast<std::int32_t>(noc));
  return true;
}
inline bool ncrisc_noc_nonposted_writes_flushed(std::uint32_t noc) {
  TOWPATH_CALL(barrier, kTowpathWrites, 0, static_cast<std::int32_t>(noc));
  return true;
}
inline bool ncrisc_noc_nonposted_writes_sent(std::uint32_t noc) {
  TOWPATH_CALL(barrier, kTowpathWritesFlushed, 0, static_cast<std::int32_t>(noc));
  return true;
}
inline bool ncrisc_noc_read_with_transaction_id_flushed(std::uint32_t noc, std::uint32_t trid) {
  return TOWPATH_CALL(has_passed, kTowpathReadsOfId, trid, static_cast<std::int32_t>(noc)) != 0;
}
inline bool ncrisc_noc_nonposted_write_with_transaction_id_flushed(std::uint32_t noc,
                                                                   std::uint32_t trid) {
  return TOWPATH_CALL(has_passed, kTowpathWritesOfId, trid, static_cast<std::int32_t>(noc)) != 0;
}
inline bool ncrisc_noc_nonposted_write_with_transaction_id_sent(std::uint32_t noc,
                                                                std::uint32_t trid) {
  return TOWPATH_CALL(has_passed, kTowpathWritesFlushedOfId, trid,
                      static_cast<std::int32_t>(noc)) != 0;
}
inline void ncrisc_noc_set_transaction_id(std::uint32_t noc, std::uint32_t cmd_buf,
                                          std::uint32_t trid) {
  TOWPATH_CALL(set_id, cmd_buf == read_cmd_buf, trid, static_cast<std::int32_t>(noc));
}
inline constexpr std::uint32_t NOC_MAX_TRANSACTION_ID_COUNT = 255;
// What is outstanding does not limit the simulator's counters, which are wider.
inline std::uint32_t noc_available_transactions(std::uint32_t, std::uint32_t) {
  return NOC_MAX_TRANSACTION_ID_COUNT;
}
// On the chip it forgets what is under way; kernels run an empty loop before, so that nothing is.
// Such a loop takes no time here, so this waits.
inline void ncrisc_noc_counters_init() {
  for (std::int32_t noc = 0; noc < 2; ++noc) TOWPATH_CALL(barrier, kTowpathEverything, 0, noc);
}

// Requests whose tile and address are given apart, with all their fields at once: those to addresses
// of 64 bits, which are the host's. Other flags do not compile.
enum CQNocFlags { CQ_NOC_SNDL = 0xf };
enum CQNocSend { CQ_NOC_SEND = 1 };
enum CQNocWait { CQ_NOC_WAIT = 1 };
enum : std::uint8_t { NOC_0, NOC_1 };
inline std::uint32_t towpath_write_vc[2] = {NOC_UNICAST_WRITE_VC, NOC_UNICAST_WRITE_VC};

inline constexpr std::uint64_t towpath_wide_address(std::uint32_t noc_xy, std::uint64_t address) {
  return static_cast<std::uint64_t>(noc_xy) << NOC_ADDR_COORD_SHIFT | address;
}
template <std::uint32_t cmd_buf>
inline void noc_write_init_state(std::uint32_t noc, std::uint32_t vc) {
  towpath_write_vc[noc] = vc;
}
template <std::uint32_t cmd_buf>
inline void noc_read_init_state(std::uint32_t) {}
template <std::uint8_t mode, std::uint32_t cmd_buf, CQNocFlags flags, CQNocSend send = CQ_NOC_SEND,
          CQNocWait wait = CQ_NOC_WAIT, bool update_counter = true, bool posted = false>
inline void noc_wwrite_with_state(std::uint32_t noc, std::uint32_t src_addr,
                                  std::uint32_t dst_noc_addr, std::uint64_t dst_addr,
                                  std::uint32_t size = 0, std::uint32_t ndests = 1) {
  if (ndests != 1) TOWPATH_CALL(refuse, "noc_wwrite_with_state has one destination here");
  TOWPATH_CALL(write, src_addr, towpath_wide_address(dst_noc_addr, dst_addr), size,
               towpath_options(noc, towpath_write_vc[noc], towpath_posted(posted)));
}
template <std::uint8_t mode, std::uint32_t cmd_buf, CQNocFlags flags, CQNocSend send = CQ_NOC_SEND,
          CQNocWait wait = CQ_NOC_WAIT>
inline void noc_read_with_state(std::uint32_t noc, std::uint32_t src_noc_addr,
                                std::uint64_t src_addr, std::uint32_t dst_addr,
                                std::uint32_t size) {
  TOWPATH_CALL(read, towpath_wide_address(src_noc_addr, src_addr), dst_addr, size,
               towpath_options(noc, NOC_UNICAST_WRITE_VC, 0));
}
