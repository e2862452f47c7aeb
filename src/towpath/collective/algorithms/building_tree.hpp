// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "towpath/collective/algorithms/building.hpp"

// What the generators of trees share.

namespace towpath::collective {

// One rank's place in one channel's tree, and the thread blocks that it becomes.
struct TreeNode {
  RankProgram& program;
  int parent = kNone;
  std::vector<int> children{};
  int channel = 0;
  std::uint32_t first_chunk = 0;
  std::uint32_t chunks = 0;

  // What the rank itself adds: chunks of this buffer, which for chunk i are there once step
  // source_step + i of a thread block is complete, if one is named.
  Buffer source = Buffer::input;
  std::int32_t source_block = kNone;
  std::uint32_t source_step = 0;
  Buffer result = Buffer::output;  // where partial sums and results are kept
  bool publishes_result = false;   // every step that stores a result
  bool has_way_down = true;        // else the root keeps the result

  // Sums to the parent. One thread block per child adds what it sends to the sum of those before;
  // the last of them hands on to the parent, or, at the root, already the result to the first
  // child.
  void add_way_up() const;
  // The result comes from the parent and goes on to the first child in one step; one thread block
  // for each further child sends it from there. Returns the thread block whose step i has the
  // result of chunk i.
  std::uint32_t add_way_down() const;

 private:
  Chunk result_chunk(std::uint32_t index) const { return {result, index}; }
  ThreadBlock& add_block(int receive_peer, int send_peer) const;
  bool is_turn() const { return parent == kNone && has_way_down; }  // results go down from here
  StepType type_on_way_up(bool is_last) const;
  Step when_there(std::uint32_t i, Step step) const;
  std::uint32_t last_block() const { return static_cast<std::uint32_t>(program.blocks.size() - 1); }
};

}  // namespace towpath::collective
