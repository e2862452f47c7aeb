// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/building_one_sided.hpp"
#include "towpath/collective/algorithms/by_dimension.hpp"

namespace towpath::collective {

// Line all-reduce: 2(R-1) sequential steps, at most S wire bytes per direction and rank. A
// reduce-scatter, then an all-gather, both in both directions along the line.
namespace {

Schedule make_line_all_reduce(const AlgorithmOptions& options) {
  return all_reduce_by_dimension("line_all_reduce", options, Grid{});
}

}  // namespace

constinit const Algorithm line_all_reduce{
    .name = "line_all_reduce",
    .collective = Collective::all_reduce,
    .make = make_line_all_reduce,
    .description = "sums of every part from both ends of a line to one rank, and back to both ends",
    .cost = "2(R-1) steps, at most S bytes each way",
};

// Line all-gather: R-1 sequential steps, at most S (R-1)/R wire bytes per direction and rank. S is
// the gathered array. Every part goes from its rank to both ends of the line, for machines without
// a link between the ends. A channel's ring gives the rank order.
namespace {

Schedule make_line_all_gather(const AlgorithmOptions& options) {
  return all_gather_by_dimension("line_all_gather", options, Grid{});
}

}  // namespace

constinit const Algorithm line_all_gather{
    .name = "line_all_gather",
    .collective = Collective::all_gather,
    .make = make_line_all_gather,
    .description = "every part to both ends of a line",
    .cost = "R-1 steps, at most S(R-1)/R bytes each way",
};

// Line reduce-scatter: R-1 sequential steps, at most S (R-1)/R wire bytes per direction and rank. S
// is the array before scattering. Partial sums reach the owner of a part from both ends of the
// line, for machines without a link between the ends. A channel's ring gives the rank order.
namespace {

Schedule make_line_reduce_scatter(const AlgorithmOptions& options) {
  return reduce_scatter_by_dimension("line_reduce_scatter", options, Grid{});
}

}  // namespace

constinit const Algorithm line_reduce_scatter{
    .name = "line_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = make_line_reduce_scatter,
    .description = "sums of every part from both ends of a line to where it is kept",
    .cost = "R-1 steps, at most S(R-1)/R bytes each way",
};

// Grid collectives, on X columns and Y rows, each dimension a ring or a line: (X-1) + (Y-1)
// sequential steps, compared to R-1 for rings and lines of all ranks. Rings have S (R-1)/R wire
// bytes per rank; lines at most that per direction. All-reduce doubles both. S is the whole array.
namespace {

Schedule all_gather(const AlgorithmOptions& options) {
  return all_gather_by_dimension("grid_all_gather", options, grid_of(options));
}

Schedule reduce_scatter(const AlgorithmOptions& options) {
  return reduce_scatter_by_dimension("grid_reduce_scatter", options, grid_of(options));
}

Schedule all_reduce(const AlgorithmOptions& options) {
  return all_reduce_by_dimension("grid_all_reduce", options, grid_of(options));
}

}  // namespace

constinit const Algorithm grid_all_gather{
    .name = "grid_all_gather",
    .collective = Collective::all_gather,
    .make = all_gather,
    .description = "every part along the rows, then along the columns, of a grid",
    .cost = "(X-1)+(Y-1) steps, S(R-1)/R bytes",
    .needs_grid = true,
};

constinit const Algorithm grid_reduce_scatter{
    .name = "grid_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .make = reduce_scatter,
    .description = "sums along the rows, then along the columns, of a grid",
    .cost = "(X-1)+(Y-1) steps, S(R-1)/R bytes",
    .needs_grid = true,
};

constinit const Algorithm grid_all_reduce{
    .name = "grid_all_reduce",
    .collective = Collective::all_reduce,
    .make = all_reduce,
    .description = "sums along the rows, then the columns, of a grid, and the same way back",
    .cost = "2(X-1)+2(Y-1) steps, 2S(R-1)/R bytes",
    .needs_grid = true,
};

// All-gather by multicast: 1 network step, S/R bytes sent by each rank and copied en route, S
// (R-1)/R bytes received. S is the gathered array. A barrier at the start ensures that all outputs
// are writable. A signal after the bytes marks the arrival of a rank's part.
namespace {

void add_block(Schedule& schedule, int rank, int channel) {
  const auto channels = schedule.channels;
  const std::vector<int>& ranks = schedule.groups.front();
  const auto own_chunk = static_cast<std::uint32_t>(channel);
  ThreadBlock& block = add_block_to(schedule, rank);
  add_meeting(block, rank, ranks, channel, true);
  add_direct(block, {own(input(own_chunk))},
             {of_group(0, output(static_cast<std::uint32_t>(rank) * channels + own_chunk))});
  Access& access = block.accesses.back();
  access.signals = true;
  access.ends = block.accesses.front().ends;
  add_waits(block, rank, ranks, channel);
}

Schedule make_multicast_all_gather(const AlgorithmOptions& options) {
  check_one_sided(options);
  Schedule schedule = schedule_without_blocks(
      "multicast_all_gather", Collective::all_gather, options,
      static_cast<std::uint32_t>(options.channels) * static_cast<std::uint32_t>(options.ranks));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  schedule.groups = {all_ranks(schedule)};
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) add_block(schedule, rank, channel);
  }
  return schedule;
}

}  // namespace

constinit const Algorithm multicast_all_gather{
    .name = "multicast_all_gather",
    .collective = Collective::all_gather,
    .make = make_multicast_all_gather,
    .description = "every rank sends its part to all at once",
    .cost = "1 step, S/R bytes, copied on their way",
    .reach = Reach::multicast,
};

}  // namespace towpath::collective
