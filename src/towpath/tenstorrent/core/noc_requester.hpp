// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/core/core_process.hpp"

namespace towpath::tenstorrent {

// Software of a core at the command buffers of its NIUs: it issues requests, and waits for their
// answers. Each call costs the cycles of the kernel call that it is part of.
class NocRequester {
 public:
  // The command buffers of the hardware, by the calls that use them.
  enum Initiator : int { kWrite, kRead, kWriteWord, kAtomic, kInitiators };

  explicit NocRequester(CoreProcess& core) : core_(core) {}

  // The bytes of a request in the core's L1.
  struct Local {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  // The workers of a multicast, with the number that the kernel states.
  struct Receivers {
    int workers = 0;
    bool includes_source = false;
  };

  void check_one_packet(std::uint64_t size_bytes) const;
  void read(const NocAddress& from, const Local& to, const ReadOptions& options) {
    issue(
        request({noc::RequestKind::read, kRead, to}, from, {.vc = options.vc, .noc = options.noc}),
        costs().read);
  }
  void write(const Local& from, const NocAddress& to, const WriteOptions& options) {
    issue(request({noc::RequestKind::write, kWrite, from}, to, options), costs().write);
  }
  void multicast(const Local& from, const NocMulticastAddress& to, const Receivers& receivers,
                 const MulticastOptions& options) {
    issue(multicast_request({noc::RequestKind::write, kWrite, from}, to, receivers, options),
          costs().multicast);
  }
  void write_word(std::uint64_t from, const NocAddress& to, const WriteOptions& options) {
    issue(request({noc::RequestKind::write, kWriteWord, {from, noc::kWordBytes}}, to, options),
          costs().write);
  }
  void multicast_word(std::uint64_t from, const NocMulticastAddress& to, const Receivers& receivers,
                      const MulticastOptions& options);
  void write_value(std::uint32_t value, const NocAddress& to, const WriteOptions& options);
  void increment(const NocAddress& word, std::uint32_t increment, const WriteOptions& options);
  void multicast_increment(const NocMulticastAddress& word, std::uint32_t increment, int workers,
                           const MulticastOptions& options);

  // The constant part of requests is set once, and each request then costs less. Any other call of
  // the same kind overwrites the state. Without a size the request has that of the state.
  void set_read_state(const NocAddress& from, std::uint64_t size_bytes,
                      const ReadOptions& options) {
    set_state(request({noc::RequestKind::read, kRead, {0, size_bytes}}, from,
                      {.vc = options.vc, .noc = options.noc}));
  }
  void set_write_state(const NocAddress& to, std::uint64_t size_bytes,
                       const WriteOptions& options) {
    set_state(request({noc::RequestKind::write, kWrite, {0, size_bytes}}, to, options));
  }
  void set_value_state(const NocAddress& to, const WriteOptions& options) {
    set_state(
        request({noc::RequestKind::inline_write, kAtomic, {0, noc::kWordBytes}}, to, options));
  }
  void read_with_state(std::uint64_t from_offset, std::uint64_t to_offset,
                       std::optional<std::uint64_t> size_bytes, int noc);
  void write_with_state(std::uint64_t from_offset, std::uint64_t to_offset,
                        std::optional<std::uint64_t> size_bytes, int noc);
  void write_value_with_state(std::uint32_t value, int noc);

  // Waits until a count of a NIU has reached another one.
  using Count = std::uint32_t noc::NiuCounters::*;
  template <Count reached, Count awaited>
  void wait_for_counts(int noc) {
    core_.poll_counters({[](const noc::NiuCounters& counters, int) {
                          return counters.*reached == counters.*awaited;
                        }},
                        core_.noc_of(noc));
  }
  void wait_for_initiator(int noc, Initiator initiator);

  // --- transaction ids --------------------------------------------------------------------------
  void set_transaction_id(Initiator initiator, int transaction_id, int noc);
  void wait_for_answers(int transaction_id, int noc);
  void wait_until_sent(int transaction_id, int noc);
  bool is_answered(int transaction_id, int noc);
  bool is_sent(int transaction_id, int noc);
  void reset_outstanding(std::uint32_t ids, int noc) {
    core_.network().clear_outstanding(core_.noc_of(noc), core_.config().core, ids);
  }

  // Requests without an answer, or an empty text.
  std::string describe_unanswered() const;

 private:
  struct State {
    noc::Request request;  // as set by the last call
    bool is_set = false;
    int transaction_id = 0;
  };
  // Part of a request that is independent of its destination.
  struct Command {
    noc::RequestKind kind;
    Initiator initiator;
    Local local{};
  };

  State& state(int noc, int initiator);
  noc::Request request(const Command& command, const NocAddress& remote,
                       const WriteOptions& options);
  void check_receivers(const noc::MulticastRectangle& to, const Receivers& receivers) const;
  noc::Request multicast_request(const Command& command, const NocMulticastAddress& to,
                                 const Receivers& receivers, const MulticastOptions& options);
  noc::Request request_with_state(Initiator initiator, int noc, const Local& local,
                                  std::uint64_t remote_offset);
  void set_state(const noc::Request& request);
  // Waits for the initiator, spends the cost of the call, issues.
  void issue(const noc::Request& request, int cycles);
  // The same, without a change of the state.
  void issue_with_state(const noc::Request& request, int cycles);
  void wait_for_last_packet(int noc, int initiator);
  // Accesses the registers of a NIU. Each read response that the NIU sends delays them.
  void work_at_niu(int noc, int cycles);
  void check_transaction_id(int transaction_id) const;
  void check_outstanding(int transaction_id, int noc) const;
  const noc::NiuCounters& counters(int noc) const {
    return core_.network().counters(noc, core_.config().core);
  }
  const CallCosts& costs() const { return kCallCosts.of(core_.network().chip()); }

  CoreProcess& core_;
  std::array<std::array<State, kInitiators>, 2> states_;
  std::array<bool, 2> has_used_noc_{};
};

}  // namespace towpath::tenstorrent
