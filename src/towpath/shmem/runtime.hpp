// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "towpath/os/process.hpp"
#include "towpath/shmem/include/shmem.h"
#include "towpath/transport/live_transport.hpp"
#include "towpath/transport/remote_memory.hpp"

// OpenSHMEM's PE of this process: its transport, its heap, and the program's variables, which are
// part of the heap from shmem_init on.

// Members start, start + stride, ...
struct towpath_shmem_team {
  int start = 0;
  int stride = 1;
  int size = 0;
  std::uint64_t* words = nullptr;  // symmetric: one per round of a barrier, then kCountWord
  int number = 0;                  // of its words, unused by active sets

  int pe(int member) const { return start + member * stride; }
  int member(int pe) const;
};

struct towpath_shmem_context {
  shmem_team_t team;
};

namespace towpath::shmem {

using Team = towpath_shmem_team;

// A collective call of this PE. All members of a team must make the same call.
struct Call {
  const char* function;  // __func__ of this library
  std::uint64_t size_bytes = 0;
  int root = -1;
  std::uint64_t others = 0;  // further arguments that must be equal and are not shown
};

// Ends the process with one sentence about a mistake of the program. The other PEs receive it.
[[noreturn]] void fail(const std::string& sentence);

class Runtime {
 public:
  // Joins the PEs that the launcher started: $TOWPATH_RANK of $TOWPATH_RANKS in
  // $TOWPATH_RENDEZVOUS. Without these variables it is a single PE.
  explicit Runtime(Team& world);
  // True if this process is a forked child, which is not a PE.
  bool is_forked() const { return fork_.is_forked(); }

  int pe() const { return transport_->rank(); }
  int pes() const { return transport_->ranks(); }
  transport::LiveTransport& transport() { return *transport_; }

  // Notifies the other PEs that this one ends, with the reason. If `culprit` is the peer of the
  // last failed wait, they receive the failure of that peer instead.
  void abandon(const std::string& reason, int culprit = transport::kNoPeer);

  // --- memory ---------------------------------------------------------------------------------
  void* allocate(std::size_t size, std::size_t alignment, const char* call);
  void release(void* address, const char* call);
  std::size_t size_of(void* address) const;
  // The address of symmetric bytes at a PE. Null unless all of them are in one allocation or in the
  // program's variables.
  std::byte* reach(const void* address, std::size_t size, int pe) const {
    const std::ptrdiff_t offset = offset_of(address, size);
    const auto at = static_cast<std::size_t>(pe);
    return offset < 0 || at >= heaps_.size() ? nullptr : heaps_[at] + offset;
  }
  // The same. A call that names other bytes, or no PE, ends the program.
  std::byte* remote(const void* address, std::size_t size, int pe, const char* call) const {
    std::byte* const place = reach(address, size, pe);
    if (place == nullptr && size > 0) fail_to_reach(address, size, pe, call);
    return place;
  }

  // A word of a team at a PE.
  std::uint64_t* word_at(std::uint64_t* word, int pe, const char* call) const;

  // --- waiting --------------------------------------------------------------------------------
  // Blocks in that function until the condition holds. `details` of the wait are for its error.
  template <typename Holds>
  void wait(const Holds& holds, const char* function,
            const std::function<std::string()>& details = {}) {
    if (!holds()) block(holds, function, details);
  }

  // --- teams ----------------------------------------------------------------------------------
  Team& world() { return world_; }
  // The same team. A handle that is not a team's ends the program.
  const Team& known(const Team* team, const char* call) const;
  // A barrier of the members of a team within that call. Members that make different calls end with
  // a sentence that shows both, and no member passes.
  void sync(const Team& team, const Call& call);
  // By all members of the parent. Null if this PE is not a member of the new team.
  Team* split(const Team& parent, int start, int stride, int size, const char* call);
  void destroy(Team* team);

 private:
  struct Range {
    const std::byte* begin = nullptr;
    std::size_t size = 0;
    std::ptrdiff_t offset = 0;  // from the start of the heap
    bool holds(const std::byte* place, std::size_t bytes) const {
      const auto within = static_cast<std::size_t>(place - begin);
      return within < size && bytes <= size - within;
    }
  };

  void share_variables();
  // From the start of the heap. Negative unless all bytes are symmetric.
  std::ptrdiff_t offset_of(const void* address, std::size_t size) const {
    const auto* const place = static_cast<const std::byte*>(address);
    for (const Range& range : recent_) {
      if (range.holds(place, size)) return range.offset + (place - range.begin);
    }
    return find_offset(place, size);
  }
  std::ptrdiff_t find_offset(const std::byte* place, std::size_t size) const;
  [[noreturn]] void fail_to_reach(const void* address, std::size_t size, int pe,
                                  const char* call) const;
  void block(const std::function<bool()>& holds, const char* function,
             const std::function<std::string()>& details);
  std::string describe_place(const void* address) const;
  void publish(const Call& call);
  // The last collective call of a PE: "shmem_broadcastmem of 16 bytes from root 1".
  std::string describe_call(int pe) const;
  // The state of all PEs, for the report of a wait that took too long.
  std::string describe_all() const;
  [[noreturn]] void end_in_disagreement(int other);

  std::unique_ptr<transport::LiveTransport> transport_;
  os::ForkMark fork_;
  Time timeout_;
  std::vector<std::byte*> heaps_;
  std::byte* heap_ = nullptr;
  std::size_t heap_bytes_ = 0;
  std::byte* variables_ = nullptr;  // of the program
  std::size_t variables_bytes_ = 0;
  transport::Offset variables_at_ = 0;
  struct Allocation {
    std::size_t size;
    transport::Offset allocated;
  };
  std::map<const std::byte*, Allocation> allocations_;
  // The symmetric memory of the last accesses, and the entry that the next one replaces.
  mutable std::array<Range, 4> recent_;
  mutable std::size_t replaced_ = 0;
  Team& world_;
  std::vector<Team*> teams_;             // made by split
  std::uint64_t* team_words_ = nullptr;  // of all teams, then the call of this PE
};

// The word of a team with a count for the others, after the words of a barrier's rounds.
inline constexpr int kCountWord = 40;

// Creates the PE of this process. A process that exits before end() fails for the other PEs.
void begin(Team& world);
void end();
// Ends all PEs.
[[noreturn]] void exit_all(int status);
bool has_begun();
// The PE of this process. Ends the program before shmem_init.
Runtime& runtime();

}  // namespace towpath::shmem
