// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

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

}  // namespace towpath::causality
