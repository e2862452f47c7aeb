// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "towpath/collective/algorithms/building_one_sided.hpp"

// Schedules over one dimension of a grid of ranks after the other, each as rings or lines. A single
// row is a ring or line of all ranks. If rows are lines, every second channel starts with the
// columns.

namespace towpath::collective {
namespace {

// Default: a line of all ranks.
struct Grid {
  int columns = 0;
  bool row_rings = false;
  bool column_rings = false;
};

// A position in the grid, in row-major order. Parts of the array are named by the position of their
// owner.
using GridIndex = std::uint32_t;

struct Dimension {
  GridIndex count = 1;
  GridIndex stride = 1;
  bool is_ring = false;
};

GridIndex coordinate(GridIndex place, const Dimension& dimension) {
  return place / dimension.stride % dimension.count;
}

// The position `distance` before `place` in its row or column, with wrap-around.
GridIndex back_from(GridIndex place, const Dimension& dimension, GridIndex distance) {
  const GridIndex from = coordinate(place, dimension);
  const GridIndex to = (from + dimension.count - distance) % dimension.count;
  return place - from * dimension.stride + to * dimension.stride;
}

// All positions that differ from `place` in these dimensions only: itself, then its predecessors.
std::vector<GridIndex> spread(GridIndex place, std::span<const Dimension> dimensions) {
  std::vector<GridIndex> places{place};
  for (const Dimension& dimension : dimensions) {
    std::vector<GridIndex> wider;
    for (GridIndex distance = 0; distance < dimension.count; ++distance) {
      for (const GridIndex each : places) wider.push_back(back_from(each, dimension, distance));
    }
    places = std::move(wider);
  }
  return places;
}

// Dimensions with more than one position: rows, then columns.
std::vector<Dimension> dimensions_of(int rank_count, const Grid& grid) {
  const auto ranks = static_cast<GridIndex>(rank_count);
  const GridIndex columns = grid.columns == 0 ? ranks : static_cast<GridIndex>(grid.columns);
  std::vector<Dimension> dimensions{{columns, 1, grid.row_rings},
                                    {ranks / columns, columns, grid.column_rings}};
  std::erase_if(dimensions, [](const Dimension& each) { return each.count == 1; });
  return dimensions;
}

// A row or column in transfer order, and the thread blocks of its positions.
struct Way {
  bool is_ring = false;
  std::vector<GridIndex> places;
  std::vector<std::uint32_t> blocks;

  GridIndex size() const { return static_cast<GridIndex>(places.size()); }
  bool is_begin(GridIndex position) const { return !is_ring && position == 0; }
  bool is_end(GridIndex position) const { return !is_ring && position + 1 == size(); }
  GridIndex before(GridIndex position, GridIndex distance) const {
    return places[(position + size() - distance) % size()];
  }
  // Number of positions that contribute to a gather.
  GridIndex senders(GridIndex position) const { return is_ring ? size() - 1 : position; }
};

// One direction around a ring, two along a line.
using Ways = std::vector<Way>;

// Writes one channel of a schedule, phase by phase. A step that reads data of another thread block
// of its rank depends on it.
class ChannelWriter {
 public:
  using ChunkOf = std::function<Chunk(GridIndex place, GridIndex part)>;
  using Parts = std::function<std::vector<GridIndex>(GridIndex place)>;

  ChannelWriter(Schedule& schedule, const AlgorithmOptions& options, const Grid& grid, int channel)
      : schedule_(schedule),
        channel_(channel),
        ranks_(ring_of(options, channel)),
        dimensions_(dimensions_of(options.ranks, grid)),
        writers_(ranks_.size()) {
    // The second dimension carries most of the data. On a mesh, alternating the order keeps links
    // of both dimensions busy. Around a torus it costs more than it gains.
    if (channel % 2 == 1 && !grid.row_rings) std::ranges::reverse(dimensions_);
    for (const Dimension& dimension : dimensions_) {
      std::vector<Ways>& groups = groups_.emplace_back();
      for (GridIndex place = 0; place < ranks_.size(); ++place) {
        if (coordinate(place, dimension) == 0) groups.push_back(ways_from(place, dimension));
      }
    }
  }

  std::span<const Dimension> dimensions() const { return dimensions_; }

  // Chunk numbers in a buffer with all parts, and in a buffer with this rank's part only.
  std::uint32_t index_of(GridIndex part) const {
    return static_cast<std::uint32_t>(ranks_[part]) * schedule_.channels + own();
  }
  std::uint32_t own() const { return static_cast<std::uint32_t>(channel_); }

  // Each rank receives `parts` of the others in its row or column.
  void all_gather(std::size_t dimension, const Parts& parts, const ChunkOf& chunk) {
    for (const Ways& ways : groups_[dimension]) {
      for (const Way& way : ways) {
        for (const Parts& some : batches(way, parts)) {
          for (GridIndex position = 0; position < way.size(); ++position) {
            gather_at(way, position, some, chunk);
          }
        }
      }
    }
  }

  // Each rank receives the sums of its `parts` over its row or column.
  void reduce_scatter(std::size_t dimension, const Parts& parts, const ChunkOf& source,
                      const ChunkOf& sum) {
    for (const Ways& ways : groups_[dimension]) {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        for (const Parts& some : batches(ways[i], parts)) {
          for (GridIndex position = 0; position < ways[i].size(); ++position) {
            pass_on(ways[i], position, some, source);
            // The other direction along a line has left its sums, except at its start.
            const bool is_second = i == 1 && !ways[i].is_end(position);
            keep(ways[i], position, some, is_second ? sum : source, sum);
          }
        }
      }
    }
  }

 private:
  struct Writer {
    std::uint32_t block = 0;
    std::uint32_t step = 0;
  };

  Ways ways_from(GridIndex first, const Dimension& dimension) {
    Way way{.is_ring = dimension.is_ring, .places = {}, .blocks = {}};
    for (GridIndex i = 0; i < dimension.count; ++i)
      way.places.push_back(first + i * dimension.stride);
    Ways ways{way};
    if (!dimension.is_ring) {
      std::ranges::reverse(way.places);
      ways.push_back(way);
    }
    for (Way& each : ways) add_blocks(each);
    return ways;
  }

  void add_blocks(Way& way) {
    std::vector<int> ranks;
    for (const GridIndex place : way.places) ranks.push_back(ranks_[place]);
    for (GridIndex position = 0; position < way.size(); ++position) {
      if (way.is_ring) {
        add_ring_block(schedule_, ranks, position, channel_);
      } else {
        add_line_block(schedule_, ranks, position, channel_);
      }
      way.blocks.push_back(static_cast<std::uint32_t>(program(way.places[position]).size() - 1));
    }
  }

  std::vector<ThreadBlock>& program(GridIndex place) {
    return program_of(schedule_, ranks_[place]).blocks;
  }

  // Data sent before any other on a way: on a line all parts. Around a ring part by part, because
  // every rank sends before it receives and the cycle of slots would fill up.
  static std::vector<Parts> batches(const Way& way, const Parts& parts) {
    if (!way.is_ring) return {parts};
    std::vector<Parts> found;
    for (std::size_t i = 0; i < parts(way.places.front()).size(); ++i) {
      found.push_back(
          [&parts, i](GridIndex place) { return std::vector<GridIndex>{parts(place)[i]}; });
    }
    return found;
  }

  void gather_at(const Way& way, GridIndex position, const Parts& parts, const ChunkOf& chunk) {
    const GridIndex here = way.places[position];
    if (!way.is_end(position)) {
      for (const GridIndex part : parts(here)) {
        add(way, position, step(StepType::send, chunk(here, part)));
      }
    }
    for (GridIndex distance = 1; distance <= way.senders(position); ++distance) {
      const bool goes_on = way.is_ring ? distance + 1 < way.size() : !way.is_end(position);
      const StepType type = goes_on ? StepType::receive_copy_send : StepType::receive;
      for (const GridIndex part : parts(way.before(position, distance))) {
        add(way, position, step(type, chunk(here, part)));
      }
    }
  }

  // Parts in transit: the farthest owner's parts first.
  void pass_on(const Way& way, GridIndex position, const Parts& parts, const ChunkOf& source) {
    const GridIndex here = way.places[position];
    const GridIndex keepers = way.is_ring ? way.size() - 1 : way.size() - 1 - position;
    for (GridIndex i = 0; i < keepers; ++i) {
      const GridIndex keeper =
          way.is_ring ? way.before(position, i + 1) : way.places[way.size() - 1 - i];
      const bool begins = way.is_ring ? i == 0 : position == 0;
      const StepType type = begins ? StepType::send : StepType::receive_reduce_send;
      for (const GridIndex part : parts(keeper)) add(way, position, step(type, source(here, part)));
    }
  }

  void keep(const Way& way, GridIndex position, const Parts& parts, const ChunkOf& source,
            const ChunkOf& sum) {
    if (way.is_begin(position)) return;
    const GridIndex here = way.places[position];
    for (const GridIndex part : parts(here)) {
      add(way, position, step(StepType::receive_reduce_copy, source(here, part), sum(here, part)));
    }
  }

  void add(const Way& way, GridIndex position, Step next) {
    const GridIndex here = way.places[position];
    const std::uint32_t block = way.blocks[position];
    Steps& steps = program(here)[block].steps;
    if (reads_source(next.type)) {
      const auto& writer = writer_of(here, {next.source, next.source_chunk});
      if (writer && writer->block != block) {
        Step& awaited = program(here)[writer->block].steps[writer->step];
        awaited = publishing(awaited);
        next = after(writer->block, writer->step, next);
      }
    }
    if (writes_destination(next.type)) {
      writer_of(here, {next.destination, next.destination_chunk}) =
          Writer{block, static_cast<std::uint32_t>(steps.size())};
    }
    steps.push_back(next);
  }

  // The last step that stored to a chunk. No step stores to the input.
  std::optional<Writer>& writer_of(GridIndex place, Chunk chunk) {
    auto& writers = writers_[place];
    writers.resize(std::size_t{kBuffers} * schedule_.chunks / schedule_.channels + kBuffers);
    const std::size_t number = chunk.index / schedule_.channels;
    return writers[number * kBuffers + static_cast<std::size_t>(chunk.buffer)];
  }

  Schedule& schedule_;
  int channel_;
  std::vector<int> ranks_;  // by position
  std::vector<Dimension> dimensions_;
  std::vector<std::vector<Ways>> groups_;  // by dimension: the rows, the columns
  std::vector<std::vector<std::optional<Writer>>> writers_;
};

// Reduces along each dimension in turn, with parts spread over the remaining ones.
void reduce_scatter_all(ChannelWriter& writer, const ChannelWriter::ChunkOf& input_of,
                        const ChannelWriter::ChunkOf& partial, const ChannelWriter::ChunkOf& sum) {
  const auto dimensions = writer.dimensions();
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto kept = [rest = dimensions.subspan(i + 1)](GridIndex place) {
      std::vector<GridIndex> parts = spread(place, rest);
      // The next dimension forwards parts of other ranks first.
      std::ranges::rotate(parts, parts.begin() + 1);
      return parts;
    };
    writer.reduce_scatter(i, kept, i == 0 ? input_of : partial,
                          i + 1 == dimensions.size() ? sum : partial);
  }
}

// Along the rows, then along the columns.
void all_gather_by_dimension(Schedule& schedule, const AlgorithmOptions& options,
                             const Grid& grid) {
  for (int channel = 0; channel < options.channels; ++channel) {
    ChannelWriter writer(schedule, options, grid, channel);
    const auto chunk = [&](GridIndex place, GridIndex part) {
      return part == place ? input(writer.own()) : output(writer.index_of(part));
    };
    for (std::size_t i = 0; i < writer.dimensions().size(); ++i) {
      const auto done = writer.dimensions().first(i);
      writer.all_gather(i, [&](GridIndex place) { return spread(place, done); }, chunk);
    }
  }
  add_own_copies(schedule);
}

// Along the rows, then the remaining parts along the columns.
void reduce_scatter_by_dimension(Schedule& schedule, const AlgorithmOptions& options,
                                 const Grid& grid) {
  for (int channel = 0; channel < options.channels; ++channel) {
    ChannelWriter writer(schedule, options, grid, channel);
    const auto dimensions = writer.dimensions();
    reduce_scatter_all(
        writer, [&](GridIndex, GridIndex part) { return input(writer.index_of(part)); },
        [&](GridIndex, GridIndex part) {
          return scratch(coordinate(part, dimensions[1]) * schedule.channels + writer.own());
        },
        [&](GridIndex, GridIndex) { return output(writer.own()); });
    if (dimensions.size() == 1) continue;
    for (RankProgram& program : schedule.ranks) {
      program.scratch_chunks =
          std::max(program.scratch_chunks, dimensions[1].count * schedule.channels);
    }
  }
}

// Reduce-scatter, then all-gather in reverse order.
void all_reduce_by_dimension(Schedule& schedule, const AlgorithmOptions& options,
                             const Grid& grid) {
  for (int channel = 0; channel < options.channels; ++channel) {
    ChannelWriter writer(schedule, options, grid, channel);
    const auto sum = [&](GridIndex, GridIndex part) { return output(writer.index_of(part)); };
    reduce_scatter_all(
        writer, [&](GridIndex, GridIndex part) { return input(writer.index_of(part)); }, sum, sum);
    for (std::size_t i = writer.dimensions().size(); i-- > 0;) {
      const auto done = writer.dimensions().subspan(i + 1);
      writer.all_gather(i, [&](GridIndex place) { return spread(place, done); }, sum);
    }
  }
}

// On a line of all ranks, for machines without a link between the ends. Every part goes to or comes
// from both ends. A channel's ring gives the rank order. R-1 sequential steps, at most S (R-1)/R
// wire bytes per direction and rank. All-reduce doubles the steps and takes at most S. S is the
// whole array.
template <auto by_dimension>
void on_line(Schedule& schedule, const AlgorithmOptions& options) {
  by_dimension(schedule, options, Grid{});
}

// On X columns and Y rows, each dimension a ring or a line: (X-1) + (Y-1) sequential steps,
// compared to R-1 for rings and lines of all ranks. Rings have S (R-1)/R wire bytes per rank; lines
// at most that per direction. All-reduce doubles both.
template <auto by_dimension>
void on_grid(Schedule& schedule, const AlgorithmOptions& options) {
  by_dimension(schedule, options, {options.columns, options.row_rings, options.column_rings});
}

// All-gather by multicast: 1 network step, S/R bytes sent by each rank and copied en route, S
// (R-1)/R bytes received. S is the gathered array. A barrier at the start ensures that all outputs
// are writable. A signal after the bytes marks the arrival of a rank's part.
void add_block(Schedule& schedule, int rank, int channel) {
  const std::vector<int>& ranks = schedule.groups.front();
  ThreadBlock& block = add_block_to(schedule, rank);
  add_meeting(block, rank, ranks, channel, true);
  add_direct(block, {own(input(channel))},
             {of_group(0, output(std::int64_t{rank} * schedule.channels + channel))});
  Access& access = block.accesses.back();
  access.signals = true;
  access.ends = block.accesses.front().ends;
  add_waits(block, rank, ranks, channel);
}

void build_multicast_all_gather(Schedule& schedule, const AlgorithmOptions& options) {
  schedule.groups = {all_ranks(schedule)};
  for (int rank = 0; rank < options.ranks; ++rank) {
    for (int channel = 0; channel < options.channels; ++channel) add_block(schedule, rank, channel);
  }
}

}  // namespace

constinit const Algorithm line_all_reduce{
    .name = "line_all_reduce",
    .collective = Collective::all_reduce,
    .build = on_line<all_reduce_by_dimension>,
    .description = "sums of every part from both ends of a line to one rank, and back to both ends",
    .cost = "2(R-1) steps, at most S bytes each way",
    .is_quadratic = true,
};

constinit const Algorithm line_all_gather{
    .name = "line_all_gather",
    .collective = Collective::all_gather,
    .build = on_line<all_gather_by_dimension>,
    .description = "every part to both ends of a line",
    .cost = "R-1 steps, at most S(R-1)/R bytes each way",
    .is_quadratic = true,
};

constinit const Algorithm line_reduce_scatter{
    .name = "line_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .build = on_line<reduce_scatter_by_dimension>,
    .description = "sums of every part from both ends of a line to where it is kept",
    .cost = "R-1 steps, at most S(R-1)/R bytes each way",
    .is_quadratic = true,
};

constinit const Algorithm grid_all_gather{
    .name = "grid_all_gather",
    .collective = Collective::all_gather,
    .build = on_grid<all_gather_by_dimension>,
    .description = "every part along the rows, then along the columns, of a grid",
    .cost = "(X-1)+(Y-1) steps, S(R-1)/R bytes",
    .is_quadratic = true,
    .needs_grid = true,
};

constinit const Algorithm grid_reduce_scatter{
    .name = "grid_reduce_scatter",
    .collective = Collective::reduce_scatter,
    .build = on_grid<reduce_scatter_by_dimension>,
    .description = "sums along the rows, then along the columns, of a grid",
    .cost = "(X-1)+(Y-1) steps, S(R-1)/R bytes",
    .is_quadratic = true,
    .needs_grid = true,
};

constinit const Algorithm grid_all_reduce{
    .name = "grid_all_reduce",
    .collective = Collective::all_reduce,
    .build = on_grid<all_reduce_by_dimension>,
    .description = "sums along the rows, then the columns, of a grid, and the same way back",
    .cost = "2(X-1)+2(Y-1) steps, 2S(R-1)/R bytes",
    .is_quadratic = true,
    .needs_grid = true,
};

constinit const Algorithm multicast_all_gather{
    .name = "multicast_all_gather",
    .collective = Collective::all_gather,
    .build = build_multicast_all_gather,
    .description = "every rank sends its part to all at once",
    .cost = "1 step, S/R bytes, copied on their way",
    .is_quadratic = true,
    .reach = Reach::multicast,
};

}  // namespace towpath::collective
