// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/causality/access_history.hpp"

#include <algorithm>

namespace towpath::causality {

std::uint32_t ClockPool::copy_of(const std::uint32_t* clock) {
  std::uint32_t number = 0;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(words_.size() / length_);
    words_.resize(words_.size() + length_);
  } else {
    number = free_.back();
    free_.pop_back();
  }
  std::copy(clock, clock + length_, at(number));
  return number;
}

void ClockPool::join(std::uint32_t* clock, const std::uint32_t* other) const {
  for (std::size_t i = 0; i < length_; ++i) clock[i] = std::max(clock[i], other[i]);
}

}  // namespace towpath::causality
