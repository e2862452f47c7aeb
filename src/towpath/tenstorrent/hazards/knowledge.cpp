// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/hazards/knowledge.hpp"

namespace towpath::tenstorrent {

namespace {

template <typename Number>
bool covers_all(const std::vector<Number>& one, const std::vector<Number>& other) {
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (other[i] > (i < one.size() ? one[i] : 0)) return false;
  }
  return true;
}

template <typename Number>
void raise_all(std::vector<Number>& one, const std::vector<Number>& other) {
  if (one.size() < other.size()) one.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) one[i] = std::max(one[i], other[i]);
}

template <typename Number>
void raise(std::vector<Number>& numbers, std::size_t at, Number number) {
  if (numbers.size() <= at) numbers.resize(at + 1);
  numbers[at] = std::max(numbers[at], number);
}

}  // namespace

bool Knowledge::covers(const Knowledge& other) const {
  return covers_all(clocks_, other.clocks_) && covers_all(arrived_, other.arrived_);
}

void Knowledge::join(const Knowledge& other) {
  raise_all(clocks_, other.clocks_);
  raise_all(arrived_, other.arrived_);
}

void Knowledge::learn_clock(Place place, std::uint32_t clock) { raise(clocks_, place, clock); }

void Knowledge::learn_arrival(Stream stream, std::uint64_t position) {
  raise(arrived_, stream, position);
}

Knowledge& Learner::own() {
  if (known_.use_count() > 1) known_ = std::make_shared<Knowledge>(*known_);
  return *known_;
}

void Learner::learn(const Stamp& stamp) {
  // A kernel that knows one moment of a place already knows what was known there.
  if (knows(stamp)) return;
  Knowledge& known = own();
  known.join(*stamp.known);
  known.learn_clock(stamp.place, stamp.clock);
}

void Learner::learn(const Knowledge& known) {
  if (!known_->covers(known)) own().join(known);
}

void Learner::learn_arrival(Stream stream, std::uint64_t position) {
  if (!knows_arrived(stream, position)) own().learn_arrival(stream, position);
}

}  // namespace towpath::tenstorrent
