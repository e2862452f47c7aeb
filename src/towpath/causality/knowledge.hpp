// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// The events that agents have observed of each other, as vector clocks. The clock of an agent
// advances with every action that other agents can observe. An agent that observes the effect of an
// action has observed everything that the acting agent had observed at that time.

namespace towpath::causality {

// A number for each index that only increases, initially 0.
template <typename Number>
class VectorClock {
 public:
  Number at(std::size_t index) const { return index < numbers_.size() ? numbers_[index] : 0; }

  void raise(std::size_t index, Number number) {
    if (numbers_.size() <= index) numbers_.resize(index + 1);
    numbers_[index] = std::max(numbers_[index], number);
  }

  void join(const VectorClock& other) {
    if (numbers_.size() < other.numbers_.size()) numbers_.resize(other.numbers_.size());
    for (std::size_t i = 0; i < other.numbers_.size(); ++i) {
      numbers_[i] = std::max(numbers_[i], other.numbers_[i]);
    }
  }

  bool covers(const VectorClock& other) const {
    for (std::size_t i = 0; i < other.numbers_.size(); ++i) {
      if (other.numbers_[i] > at(i)) return false;
    }
    return true;
  }

 private:
  std::vector<Number> numbers_;
};

// Place of agents that run one after the other and share its clock.
using Place = std::uint32_t;
// A sequence of bytes that arrive in order. A position is the number of earlier bytes.
using Stream = std::uint32_t;

struct Knowledge {
  VectorClock<std::uint32_t> clocks;    // by position
  VectorClock<std::uint64_t> arrivals;  // by stream: all bytes before that position have arrived

  bool covers(const Knowledge& other) const {
    return clocks.covers(other.clocks) && arrivals.covers(other.arrivals);
  }
  void join(const Knowledge& other) {
    clocks.join(other.clocks);
    arrivals.join(other.arrivals);
  }
};

// The observations of an agent at one moment of its clock. Stamps travel with messages.
struct Stamp {
  std::shared_ptr<const Knowledge> known;
  Place place = 0;
  std::uint32_t clock = 0;

  // True if this moment includes another.
  bool covers(const Stamp& other) const {
    return place == other.place || known->clocks.at(other.place) >= other.clock;
  }
};

// The growing observations of one agent. Stamps share them until they grow.
class Learner {
 public:
  Learner(Place place, std::uint32_t clock)
      : known_(std::make_shared<Knowledge>()), place_(place), clock_(clock) {}

  Place place() const { return place_; }
  std::uint32_t clock() const { return clock_; }
  const Knowledge& known() const { return *known_; }
  // Advances the clock.
  Stamp step() { return {known_, place_, ++clock_}; }

  bool knows(const Stamp& stamp) const {
    return stamp.place == place_ || known_->clocks.at(stamp.place) >= stamp.clock;
  }
  bool knows_arrival(Stream stream, std::uint64_t position) const {
    return known_->arrivals.at(stream) >= position;
  }
  void learn(const Stamp& stamp) {
    if (knows(stamp)) return;  // and with it everything before
    own().join(*stamp.known);
    known_->clocks.raise(stamp.place, stamp.clock);
  }
  void learn(const Knowledge& known) {
    if (!known_->covers(known)) own().join(known);
  }
  void learn_arrival(Stream stream, std::uint64_t position) {
    if (!knows_arrival(stream, position)) own().arrivals.raise(stream, position);
  }

 private:
  // An unshared copy for changes.
  Knowledge& own() {
    if (known_.use_count() > 1) known_ = std::make_shared<Knowledge>(*known_);
    return *known_;
  }

  std::shared_ptr<Knowledge> known_;
  Place place_;
  std::uint32_t clock_;
};

}  // namespace towpath::causality
