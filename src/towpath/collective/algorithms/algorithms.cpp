// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <stdexcept>

namespace towpath::collective {
namespace {

constexpr std::array<Algorithm, 17> kAlgorithms = {{
    {"ring_all_reduce", Collective::all_reduce, ring_all_reduce,
     "every chunk once round a ring to be summed, once more to be handed out",
     "2(R-1) steps, 2S(R-1)/R bytes"},
    {"one_shot_all_reduce", Collective::all_reduce, one_shot_all_reduce,
     "every rank sends its whole input to every other and adds up by itself",
     "1 step, S(R-1) bytes"},
    {"two_shot_all_reduce", Collective::all_reduce, two_shot_all_reduce,
     "every rank sums one part for all and hands it to all", "2 steps, 2S(R-1)/R bytes"},
    {"tree_all_reduce", Collective::all_reduce, tree_all_reduce,
     "sums up and results down a double binary tree of hosts, a chain inside each",
     "2(log2(H)+G-1)+K steps, 2S(R-1)/R bytes on average"},
    {"line_all_reduce", Collective::all_reduce, line_all_reduce,
     "sums of every part from both ends of a line to one rank, and back to both ends",
     "2(R-1) steps, at most S bytes each way"},
    {"grid_all_reduce", Collective::all_reduce, grid_all_reduce,
     "sums along the rows, then the columns, of a grid, and the same way back",
     "2(X-1)+2(Y-1) steps, 2S(R-1)/R bytes", true},
    {"ring_all_gather", Collective::all_gather, ring_all_gather, "every part once round a ring",
     "R-1 steps, S(R-1)/R bytes"},
    {"line_all_gather", Collective::all_gather, line_all_gather,
     "every part to both ends of a line", "R-1 steps, at most S(R-1)/R bytes each way"},
    {"grid_all_gather", Collective::all_gather, grid_all_gather,
     "every part along the rows, then along the columns, of a grid",
     "(X-1)+(Y-1) steps, S(R-1)/R bytes", true},
    {"all_pairs_all_gather", Collective::all_gather, all_pairs_all_gather,
     "every rank sends its part to every other", "1 step, S(R-1)/R bytes"},
    {"ring_reduce_scatter", Collective::reduce_scatter, ring_reduce_scatter,
     "every part once round a ring, ending where it is kept", "R-1 steps, S(R-1)/R bytes"},
    {"line_reduce_scatter", Collective::reduce_scatter, line_reduce_scatter,
     "sums of every part from both ends of a line to where it is kept",
     "R-1 steps, at most S(R-1)/R bytes each way"},
    {"grid_reduce_scatter", Collective::reduce_scatter, grid_reduce_scatter,
     "sums along the rows, then along the columns, of a grid", "(X-1)+(Y-1) steps, S(R-1)/R bytes",
     true},
    {"all_pairs_reduce_scatter", Collective::reduce_scatter, all_pairs_reduce_scatter,
     "every rank gets its part of every input and adds up by itself", "1 step, S(R-1)/R bytes"},
    {"ring_broadcast", Collective::broadcast, ring_broadcast,
     "a pipelined chain along a ring from the root", "R-2+K steps, S bytes"},
    {"ring_reduce", Collective::reduce, ring_reduce, "a pipelined chain along a ring to the root",
     "R-2+K steps, S bytes"},
    {"all_pairs_all_to_all", Collective::all_to_all, all_pairs_all_to_all,
     "every rank sends every other one its part", "1 step, S(R-1)/R bytes"},
}};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

Schedule make_schedule(std::string_view algorithm, const AlgorithmOptions& options) {
  std::vector<std::string_view> names;
  for (const Algorithm& candidate : kAlgorithms) {
    if (candidate.name == algorithm) return candidate.make(options);
    names.push_back(candidate.name);
  }
  throw std::invalid_argument(
      fmt::format("there is no algorithm '{}'; allowed are {}", algorithm, fmt::join(names, ", ")));
}

}  // namespace towpath::collective
