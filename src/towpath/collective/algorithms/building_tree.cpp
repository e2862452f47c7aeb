// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building_tree.hpp"

namespace towpath::collective {
ThreadBlock& TreeNode::add_block(int receive_peer, int send_peer) const {
  ThreadBlock& block = program.blocks.emplace_back();
  block.receive_peer = receive_peer;
  block.send_peer = send_peer;
  block.channel = channel;
  return block;
}

Step TreeNode::when_there(std::uint32_t i, Step step) const {
  if (source_block == kNone) return step;
  return after(static_cast<std::uint32_t>(source_block), source_step + i, step);
}

StepType TreeNode::type_on_way_up(bool is_last) const {
  if (!is_last) return StepType::receive_reduce_copy;
  if (is_turn()) return StepType::receive_reduce_copy_send;
  return parent == kNone ? StepType::receive_reduce_copy : StepType::receive_reduce_send;
}

void TreeNode::add_way_up() const {
  if (children.empty()) {
    ThreadBlock& block = add_block(kNone, parent);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      block.steps.push_back(when_there(i, step(StepType::send, Chunk{source, first_chunk + i})));
    }
    return;
  }
  for (std::size_t c = 0; c < children.size(); ++c) {
    const bool is_last = c + 1 == children.size();
    const int target = is_turn() ? children.front() : parent;
    ThreadBlock& block = add_block(children[c], is_last ? target : kNone);
    const StepType type = type_on_way_up(is_last);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const std::uint32_t chunk = first_chunk + i;
      const Chunk addend = c == 0 ? Chunk{source, chunk} : result_chunk(chunk);
      Step next = step(type, addend, result_chunk(chunk));
      next = c == 0 ? when_there(i, next) : after(last_block() - 1, i, next);
      next.publishes = !is_last || (is_turn() && (children.size() > 1 || publishes_result));
      block.steps.push_back(next);
    }
  }
}

std::uint32_t TreeNode::add_way_down() const {
  const bool is_root = parent == kNone;
  if (!is_root) {
    const bool is_leaf = children.empty();
    ThreadBlock& block = add_block(parent, is_leaf ? kNone : children.front());
    for (std::uint32_t i = 0; i < chunks; ++i) {
      block.steps.push_back(step(is_leaf ? StepType::receive : StepType::receive_copy_send,
                                 result_chunk(first_chunk + i)));
      block.steps.back().publishes = children.size() > 1 || publishes_result;
    }
  }
  const std::uint32_t block_with_result = last_block();
  for (std::size_t c = 1; c < children.size(); ++c) {
    ThreadBlock& block = add_block(kNone, children[c]);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      block.steps.push_back(
          after(block_with_result, i, step(StepType::send, result_chunk(first_chunk + i))));
    }
  }
  return block_with_result;
}

}  // namespace towpath::collective
