// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/base/index.hpp"

// Small sets of numbers, stored as the bits of a word.

namespace towpath::noc {

inline std::uint16_t bit16(int number) { return static_cast<std::uint16_t>(1u << number); }

template <typename Set, typename Number>
void set_bit(Set& set, Number number) {
  set = static_cast<Set>(set | Set{1} << number);
}
template <typename Set, typename Number>
void clear_bit(Set& set, Number number) {
  set = static_cast<Set>(set & ~(Set{1} << number));
}

// The members of `set` in rotated order: `first` becomes bit 0.
inline unsigned rotated(unsigned set, unsigned first) {
  return (set | set << 16) >> first & 0xffffu;
}

}  // namespace towpath::noc
