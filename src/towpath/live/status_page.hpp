// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "towpath/live/call.hpp"
#include "towpath/transport/live_transport.hpp"

namespace towpath::live {

// The state of each rank in its symmetric heap, for the reports of other ranks: the last collective
// that it started, and its state.
class StatusPage {
 public:
  static constexpr std::uint64_t kBytes = 512;
  static std::uint32_t signals(int ranks) { return static_cast<std::uint32_t>(ranks); }

  explicit StatusPage(transport::LiveTransport& transport);

  // The number of this collective, from 1.
  std::uint64_t begin(const Request& request);
  void end() { publish(offsetof(Entry, ended) / 8, begun_); }
  // Notifies all others that this rank leaves. Throws TransportError.
  void leave();

  bool has_left(int rank) const {
    return transport_.signal_fetch(left_ + static_cast<transport::Signal>(rank)) != 0;
  }
  // The last call of a rank: "broadcast of 4096 bytes".
  std::string describe_call(int rank) const;
  // True if that rank has started the same number of calls as this rank.
  bool is_in_step_with(int rank) const;
  // The first of the last calls that differs between that rank and this one: "call 3 is broadcast
  // of 16 bytes from root 0 on rank 0, but broadcast of 16 bytes from root 1 on rank 1". Empty if
  // none does.
  std::string difference(int rank) const;
  // True if a rank, whose memory this one maps, makes another call of this number. Neither may then
  // wait for the other, such as two ranks that each assume the other to be the root.
  bool makes_another_call(int rank) const;
  struct Report {
    // The rank that is behind all others, or kNoPeer.
    int straggler;
    // One per rank, the straggler first: "rank 2: in broadcast 16 of 4096 bytes".
    std::string lines;
  };
  // Queries all other ranks. Throws TransportError if one of them has failed in the meantime.
  Report report() const;

 private:
  static constexpr std::size_t kNameWords = 20;  // the statement of a plan
  using Name = std::array<char, kNameWords * 8>;
  struct Made {
    std::uint64_t size_bytes;
    std::uint32_t element;
    std::int32_t peer;
    std::uint64_t kind;
    bool operator==(const Made&) const = default;
    bool may_meet(const Made& other) const;
  };
  static constexpr std::uint64_t kLast = 8;
  struct Entry {
    std::uint64_t begun;  // collectives
    std::uint64_t ended;
    Name name;                     // of the last one
    std::array<Made, kLast> last;  // by number modulo kLast

    const Made& call(std::uint64_t number) const { return last[number % kLast]; }
  };
  static constexpr std::size_t kWords = sizeof(Entry) / 8;
  static_assert(sizeof(Entry) % 8 == 0 && sizeof(Entry) <= kBytes);

  void publish(std::size_t word, std::uint64_t value) {
    std::atomic_ref(words_[word]).store(value, std::memory_order_release);
  }
  void publish_name(const std::string& name);
  std::uint64_t load(int rank, std::size_t word) const;
  Made load_call(int rank, std::uint64_t number) const;
  Entry read(int rank) const;
  // Empty if the rank does not answer.
  std::optional<Entry> ask(int rank) const;
  std::string describe(int rank, const std::optional<Entry>& entry) const;

  transport::LiveTransport& transport_;
  transport::Offset memory_;
  std::uint64_t* words_;  // there
  std::string name_;      // that is published
  std::uint64_t begun_ = 0;
  transport::Signal left_;  // by rank
  std::vector<transport::Move> leaving_;
};

}  // namespace towpath::live
