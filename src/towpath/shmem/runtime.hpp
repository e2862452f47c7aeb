// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  std::uint64_t* words = nullptr;  // symmetric: one for each round of a barrier, then kCountWord
  int number = 0;                  // of its words, unused by active sets

  int pe(int member) const { return start + member * stride; }
  int member(int pe) const;
};

struct towpath_shmem_context {
  shmem_team_t team;
};

namespace towpath::shmem {

using Team = towpath_shmem_team;

// A mistake of the program: one sentence, and the process ends.
[[noreturn]] void fail(const std::string& sentence);

class Runtime {
 public:
  // Joins the PEs that the launcher started: $TOWPATH_RANK of $TOWPATH_RANKS in
  // $TOWPATH_RENDEZVOUS. One PE alone without them.
  explicit Runtime(Team& world);
  // Whether this process is a forked child, which is no PE.
  bool is_forked() const { return fork_.is_forked(); }

  int pe() const { return transport_->rank(); }
  int pes() const { return transport_->ranks(); }
  transport::LiveTransport& transport() { return *transport_; }

  // --- memory ---------------------------------------------------------------------------------
  void* allocate(std::size_t size, std::size_t alignment);
  void release(void* address);
  std::size_t size_of(void* address) const;
  // The address of symmetric bytes at a PE. Null if not all of them are symmetric.
  std::byte* reach(const void* address, std::size_t size, int pe) const;
  // The same. A call that names other bytes, or no PE, ends the program.
  std::byte* remote(const void* address, std::size_t size, int pe, const char* call) const;

  // --- waiting --------------------------------------------------------------------------------
  void wait(const std::function<bool()>& holds, const char* call);

  // --- teams ----------------------------------------------------------------------------------
  Team& world() { return world_; }
  void sync(const Team& team);
  // By all members of the parent. Null if this PE is no member of the new team.
  Team* split(const Team& parent, int start, int stride, int size);
  void destroy(Team* team);

 private:
  void share_variables();

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
  std::map<const void*, Allocation> allocations_;
  Team& world_;
  std::uint64_t* team_words_ = nullptr;  // of all teams
};

// The word of a team with a count for the others, after the words of a barrier's rounds.
inline constexpr int kCountWord = 40;

// Makes the PE of this process, and ends it.
void begin(Team& world);
void end();
bool has_begun();
// The PE of this process. Ends the program before shmem_init.
Runtime& runtime();

}  // namespace towpath::shmem
