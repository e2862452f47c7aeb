// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/collective/algorithms/building.hpp"

// Shared by the generators of trees.

namespace towpath::collective {

struct HostParent {
  int host = kNone;      // kNone: the host is the root
  bool is_left = false;  // left child of its parent
};

// The parent of a host in one of two binary trees. Inner hosts of one tree are leaves in the other,
// except for one host if their number is odd.
HostParent parent_of_host(int host, int hosts, bool is_second);

// A rank's position in the tree of one channel, and its thread blocks.
struct TreeNode {
  RankProgram& program;
  int parent = kNone;
  std::vector<int> children{};
  int channel = 0;
  std::uint32_t first_chunk = 0;
  std::uint32_t chunks = 0;

  // The rank's contribution: chunks of this buffer. Chunk i is available after step
  // source_step + i * source_stride of a thread block, if there is one.
  Buffer source = Buffer::input;
  std::int32_t source_block = kNone;
  std::uint32_t source_step = 0;
  std::uint32_t source_stride = 1;
  Buffer result = Buffer::output;  // buffer of partial sums and results
  bool publishes_result = false;   // publish every step that stores a result
  bool has_way_down = true;        // if false, the root keeps the result

  // Sums towards the parent. One thread block per child adds the child's data to the sum so far.
  // The last one sends to the parent or, at the root, sends the result to the first child.
  void add_way_up() const;
  // Receives the result from the parent and forwards it to the first child in one step. One thread
  // block per further child forwards the stored result. Returns the thread block whose step i has
  // the result of chunk i.
  std::uint32_t add_way_down() const;

 private:
  Chunk result_chunk(std::uint32_t index) const { return {result, index}; }
  ThreadBlock& add_block(int receive_peer, int send_peer) const {
    return collective::add_block(program, receive_peer, send_peer, channel);
  }
  // The result goes down from here.
  bool is_turn() const { return parent == kNone && has_way_down; }
  StepType type_on_way_up(bool is_last) const;
  Step when_there(std::uint32_t i, Step step) const;
  std::uint32_t last_block() const { return collective::last_block(program); }
};

}  // namespace towpath::collective
