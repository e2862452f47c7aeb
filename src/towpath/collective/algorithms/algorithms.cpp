// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// In an all-gather by chains, neighbors await each other. The last packet of a reduce-scatter
// around a ring carries the notification, and so does the last packet of an all-to-all, whose
// receivers do not forward data. Source: tt-metal, unicast_writer.cpp of all_gather,
// reduce_scatter_minimal_direct, reduce_scatter_minimal_async, all_to_all_async_generic.
void set_synchronization(Schedule& schedule) {
  switch (schedule.collective) {
    case Collective::all_gather: schedule.rendezvous = Rendezvous::peers; break;
    case Collective::reduce_scatter: schedule.notification = Notification::attached; break;
    case Collective::all_to_all:
    case Collective::all_to_all_v: schedule.notification = Notification::deferred; break;
    default: break;
  }
}

Schedule schedule_without_blocks(const Algorithm& algorithm, const AlgorithmOptions& options) {
  Schedule schedule;
  schedule.name = algorithm.name;
  schedule.collective = algorithm.collective;
  schedule.protocol = options.protocol;
  schedule.channels = options.channels;
  schedule.chunks = static_cast<std::uint32_t>(algorithm.chunks(options));
  schedule.root = options.root;
  schedule.in_place = true;
  set_synchronization(schedule);
  schedule.ranks.resize(index(options.ranks));
  for (RankProgram& program : schedule.ranks) {
    program.input_chunks = chunks_in(schedule, 0, Buffer::input);
    program.output_chunks = chunks_in(schedule, 0, Buffer::output);
  }
  return schedule;
}

// The schedule of a single rank: one thread block per channel copies its chunks.
void add_local_copy(Schedule& schedule) {
  const std::uint32_t chunks = schedule.chunks / schedule.channels;
  for (std::uint32_t channel = 0; channel < schedule.channels; ++channel) {
    ThreadBlock& block = schedule.ranks[0].blocks.emplace_back();
    block.channel = static_cast<std::int32_t>(channel);
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const std::uint32_t chunk = channel * chunks + i;
      block.steps.push_back(step(StepType::copy, input(chunk), output(chunk)));
    }
  }
}

}  // namespace

std::string_view name_of(Reach reach) {
  switch (reach) {
    case Reach::fifo: return "fifo";
    case Reach::memory: return "memory";
    case Reach::group_of_host: return "group_of_host";
    case Reach::group: return "group";
    case Reach::multicast: return "multicast";
  }
  return "";
}

std::span<const Algorithm> algorithms() {
#define TOWPATH_LIST_ALGORITHM(name) name,
  static const std::vector<Algorithm> all = {TOWPATH_ALGORITHMS(TOWPATH_LIST_ALGORITHM)};
#undef TOWPATH_LIST_ALGORITHM
  return all;
}

Schedule Algorithm::operator()(const AlgorithmOptions& options) const {
  if (options.root != 0 && !has_root(collective)) {
    throw std::invalid_argument(fmt::format("root is {}; it must be 0 for {}, which has no root",
                                            options.root, name_of(collective)));
  }
  if (is_quadratic) check_quadratic(options);
  check_options(options);
  Schedule schedule = schedule_without_blocks(*this, options);
  if (options.ranks > 1 || builds_one_rank) {
    build(schedule, options);
  } else {
    add_local_copy(schedule);
  }
  return schedule;
}

Schedule make_schedule(std::string_view algorithm, const AlgorithmOptions& options) {
  std::vector<std::string_view> names;
  for (const Algorithm& candidate : algorithms()) {
    if (candidate.name == algorithm) return candidate(options);
    names.push_back(candidate.name);
  }
  throw std::invalid_argument(fmt::format("there is no algorithm '{}'; choose one of {}", algorithm,
                                          fmt::join(names, ", ")));
}

}  // namespace towpath::collective
