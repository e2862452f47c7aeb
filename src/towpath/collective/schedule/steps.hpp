// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "towpath/collective/schedule/access.hpp"

// The steps of a thread block. Thread blocks of many ranks that run the same steps on rotated
// chunks share one list: a ring over R ranks has 2R - 1 stored steps, not R times that. Readers see
// the rotated steps.
//
//   auto list = std::make_shared<StepList>();      // chunk 0 ... R - 1, written for rank 0
//   list->rows = ranks;
//   list->steps = {...};
//   block.steps = Steps(list, {.row_shift = rank});
//   block.steps[0]                                 // its chunk is shifted by `rank`

namespace towpath::collective {

enum class StepType : std::uint8_t {
  send,                      // source -> peer
  receive,                   // peer -> destination
  receive_copy_send,         // peer -> destination and next peer
  receive_reduce_send,       // (peer op source) -> next peer; no local store
  receive_reduce_copy,       // (peer op source) -> destination
  receive_reduce_copy_send,  // (peer op source) -> destination and next peer
  copy,                      // source -> destination
  reduce,                    // (destination op source) -> destination
  nop,                       // waits for its dependency only

  // One-sided: each has an Access.
  direct,    // combines its sources and stores the result to its destinations
  signal,    // raises a signal at peers, after the stores of its thread block
  wait,      // takes a signal from each of its peers
  flush,     // waits until all bytes of its ports are at the peers
  barrier,   // waits for the other participating thread blocks of the rank
  acquire,   // takes one from each semaphore, blocking while one is empty
  release,   // adds one to each semaphore
  pipeline,  // runs the next `count` steps piece by piece
};
inline constexpr int kStepTypes = 17;

// Engines evaluate these for each slice of each block: a mask compiles to one test without a
// branch.
template <StepType... kTypes>
constexpr bool is_one_of(StepType type) {
  constexpr std::uint32_t kMask = (... | (std::uint32_t{1} << static_cast<int>(kTypes)));
  return ((kMask >> static_cast<int>(type)) & 1u) != 0;
}
constexpr bool receives(StepType type) {
  using enum StepType;
  return is_one_of<receive, receive_copy_send, receive_reduce_send, receive_reduce_copy,
                   receive_reduce_copy_send>(type);
}
constexpr bool sends(StepType type) {
  using enum StepType;
  return is_one_of<send, receive_copy_send, receive_reduce_send, receive_reduce_copy_send>(type);
}
// True if the step reads its source range or stores to its destination range.
constexpr bool reads_source(StepType type) {
  using enum StepType;
  return is_one_of<send, receive_reduce_send, receive_reduce_copy, receive_reduce_copy_send, copy,
                   reduce>(type);
}
constexpr bool writes_destination(StepType type) {
  using enum StepType;
  return is_one_of<receive, receive_copy_send, receive_reduce_copy, receive_reduce_copy_send, copy,
                   reduce>(type);
}
constexpr bool is_one_sided(StepType type) { return type >= StepType::direct; }

inline constexpr std::int32_t kNone = -1;

// 24 bytes, because a ring over 1,024 ranks has millions of steps.
struct Step {
  StepType type = StepType::nop;
  Buffer source = Buffer::input;
  Buffer destination = Buffer::input;
  bool publishes = false;          // other steps may depend on its completion
  std::uint32_t source_chunk = 0;  // one-sided: index in ThreadBlock::accesses
  std::uint32_t destination_chunk = 0;
  std::uint32_t count = 0;                // chunks, or steps of a pipeline
  std::int32_t depends_on_block = kNone;  // thread block of this rank, or kNone
  std::int32_t depends_on_step = kNone;

  bool operator==(const Step&) const = default;
};

// Steps shared by many thread blocks. Chunks below rows * columns form a row-major grid that each
// thread block rotates. Higher chunks are counted from rows * columns and are not rotated. A step
// with a rotated chunk moves exactly one.
struct StepList {
  std::vector<Step> steps;
  std::uint32_t rows = 0;
  std::uint32_t columns = 1;
  std::vector<std::uint32_t> order{};  // permutation of the rows after rotation; empty: identity

  std::uint32_t places() const { return rows * columns; }
};

// The mapping of one thread block onto a shared list. Shifts are below the rows and columns.
struct Rotation {
  std::uint32_t row_shift = 0;
  std::uint32_t column_shift = 0;
  std::uint32_t first_chunk = 0;  // offset of the grid and all other chunks

  bool operator==(const Rotation&) const = default;
};

// A value type with copy-on-write. Reading returns steps by value with rotated chunks. Modification
// expands the shared list.
class Steps {
 public:
  class Iterator;

  Steps() = default;
  Steps(std::vector<Step> steps);            // NOLINT(google-explicit-constructor)
  Steps(std::initializer_list<Step> steps);  // NOLINT(google-explicit-constructor)
  Steps(std::shared_ptr<StepList> list, const Rotation& rotation)
      : list_(std::move(list)), rotation_(rotation) {}

  std::size_t size() const { return list_ == nullptr ? 0 : list_->steps.size(); }
  bool empty() const { return size() == 0; }
  Step operator[](std::size_t index) const {
    Step step = list_->steps[index];
    step.source_chunk = chunk(step.source_chunk);
    step.destination_chunk = chunk(step.destination_chunk);
    return step;
  }
  Step front() const { return (*this)[0]; }
  Step back() const { return (*this)[size() - 1]; }
  inline Iterator begin() const;
  inline Iterator end() const;

  // The step as stored in the shared list, without rotation.
  const Step& unrotated(std::size_t index) const { return list_->steps[index]; }
  // Null without steps.
  const StepList* list() const { return list_.get(); }
  const Rotation& rotation() const { return rotation_; }

  Step& operator[](std::size_t index) { return written_out()[index]; }
  Step& front() { return written_out().front(); }
  Step& back() { return written_out().back(); }
  std::vector<Step>::iterator begin() { return written_out().begin(); }
  std::vector<Step>::iterator end() { return written_out().end(); }
  void reserve(std::size_t count) { written_out().reserve(count); }
  void push_back(const Step& step) { written_out().push_back(step); }
  Step& emplace_back() { return written_out().emplace_back(); }
  void pop_back() { written_out().pop_back(); }
  void clear() { list_.reset(); }
  // The iterators come from begin() or end(), which expand a shared list.
  void insert(std::vector<Step>::iterator at, const Step& step) { list_->steps.insert(at, step); }
  void erase(std::vector<Step>::iterator at) { list_->steps.erase(at); }
  void erase(std::vector<Step>::iterator first, std::vector<Step>::iterator last) {
    list_->steps.erase(first, last);
  }

  bool operator==(const Steps& other) const;

 private:
  std::uint32_t chunk(std::uint32_t stored) const {
    const StepList& list = *list_;
    if (list.rows == 0) return stored;
    if (stored >= list.places()) return rotation_.first_chunk + stored - list.places();
    std::uint32_t row = list.columns == 1 ? stored : stored / list.columns;
    std::uint32_t column = stored - row * list.columns + rotation_.column_shift;
    row += rotation_.row_shift;
    if (row >= list.rows) row -= list.rows;
    if (column >= list.columns) column -= list.columns;
    if (!list.order.empty()) row = list.order[row];
    return rotation_.first_chunk + row * list.columns + column;
  }
  // Replaces the shared list by a private one without rotation.
  std::vector<Step>& written_out();

  std::shared_ptr<StepList> list_;
  Rotation rotation_;
};

class Steps::Iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Step;
  using difference_type = std::ptrdiff_t;
  using reference = Step;
  using pointer = void;

  Iterator() = default;
  Iterator(const Steps& steps, std::size_t index) : steps_(&steps), index_(index) {}
  Step operator*() const { return (*steps_)[index_]; }
  Iterator& operator++() {
    ++index_;
    return *this;
  }
  Iterator operator++(int) { return {*steps_, index_++}; }
  Iterator operator+(std::ptrdiff_t count) const {
    return {*steps_, static_cast<std::size_t>(static_cast<std::ptrdiff_t>(index_) + count)};
  }
  bool operator==(const Iterator& other) const { return index_ == other.index_; }

 private:
  const Steps* steps_ = nullptr;
  std::size_t index_ = 0;
};

inline Steps::Iterator Steps::begin() const { return {*this, 0}; }
inline Steps::Iterator Steps::end() const { return {*this, size()}; }

}  // namespace towpath::collective
