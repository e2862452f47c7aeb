// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// The spellings of PTX that Towpath models.

namespace towpath::gpu {

enum class PtxForm : std::uint8_t {
  none,    // it has no effect here
  value,   // d, sources
  pair,    // d|p, sources: the second result is a predicate that may be missing
  action,  // sources
  vote,    // d, barrier, count, predicate: bar.red
  move,
  load,
  store,
  atomic,
  copy,      // cp.async
  multimem,  // of multicast memory: order, reach, space, operation, accumulator, vector, type
};

// A pattern has a token for each modifier, in order. "a|b" is one of them and captured, "?a|b=c"
// may be missing and is then captured as c, "!a" is captured as true or false, "-a" is not
// captured, and "*" is any number of hints to caches. `call` is a function of towpath_ptx.h: "$1"
// is the first capture.
struct PtxRow {
  std::string_view opcode;
  std::string_view pattern;
  std::string_view call;
  PtxForm form;
  std::size_t operands_min;
  std::size_t operands_max;
  bool has_site = false;
  bool has_carry = false;
};

std::span<const PtxRow> ptx_rows();
// True if an atomic operation exists for a type.
bool ptx_has_atomic(std::string_view operation, std::string_view type);

}  // namespace towpath::gpu
