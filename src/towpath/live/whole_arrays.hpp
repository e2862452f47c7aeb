// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "towpath/live/call.hpp"
#include "towpath/transport/reduction.hpp"

namespace towpath::live {

// A reduction of the library with the number of ranks, by which an average divides.
struct LibraryReduction {
  transport::Reduction reduction;
  int ranks = 1;
};

// `how` must live as long as the combination is used.
Combination combination_of(const LibraryReduction& how);

// A call over two contiguous arrays, which are divided into equal parts for the ranks if the
// collective works on parts. `collective` is one of all_reduce, reduce, broadcast, all_gather,
// reduce_scatter, all_to_all, barrier. Throws std::invalid_argument for any other. `how` must live
// as long as the request.
Request request_of(std::string_view collective, const LibraryReduction& how, int root, Span input,
                   Span output);

}  // namespace towpath::live
