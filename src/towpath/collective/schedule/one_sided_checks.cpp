// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/one_sided_checks.hpp"

#include <algorithm>

#include "towpath/collective/schedule/one_sided.hpp"

namespace towpath::collective {
namespace {

constexpr std::uint32_t kPartsMax = 64;  // thread blocks that share a range

bool contains(const std::vector<std::int32_t>& ranks, int rank) {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

void check_groups(const Schedule& schedule) {
  for (std::size_t g = 0; g < schedule.groups.size(); ++g) {
    const std::vector<std::int32_t>& group = schedule.groups[g];
    const bool is_ascending =
        std::adjacent_find(group.begin(), group.end(), std::greater_equal<>()) == group.end();
    if (group.empty() || !is_ascending || group.front() < 0 ||
        group.back() >= schedule.rank_count()) {
      throw ScheduleError(
          fmt::format("schedule '{}': its group {} must be ranks below {}, each once, in "
                      "ascending order",
                      schedule.name, g, schedule.rank_count()));
    }
  }
}

void check_peer(const StepLocation& at, int peer) {
  if (peer < 0 || peer >= at.schedule.rank_count() || peer == at.rank) {
    at.fail("its peer is rank {}; it must be any other of {} ranks", peer,
            at.schedule.rank_count());
  }
}

// Out of place, a range has the same offset on all ranks of a group. In place, a buffer that is a
// part of another has a different offset on each.
bool is_at_one_place(const Schedule& schedule, Buffer buffer) {
  return !schedule.in_place || buffer == Buffer::scratch ||
         chunks_in(schedule, 0, buffer) == schedule.chunks;
}

void check_holder(const StepLocation& at, const char* role, const Operand& operand) {
  if (operand.holder == Holder::peer) check_peer(at, operand.number);
  if (operand.holder != Holder::group) return;
  if (operand.number < 0 || static_cast<std::size_t>(operand.number) >= at.schedule.groups.size()) {
    at.fail("its {} is in group {} of ranks; the schedule has {}", role, operand.number,
            at.schedule.groups.size());
  }
  if (!contains(at.schedule.groups[static_cast<std::size_t>(operand.number)], at.rank)) {
    at.fail("its {} is in group {} of ranks, which does not contain its own rank", role,
            operand.number);
  }
  if (!is_at_one_place(at.schedule, operand.buffer)) {
    at.fail(
        "its {} is the {} buffer of a group of ranks, which has different places on them when in "
        "place",
        role, name_of(operand.buffer));
  }
}

void check_operand(const StepLocation& at, const char* role, const Operand& operand,
                   std::uint32_t count) {
  check_holder(at, role, operand);
  if (operand.is_packet && operand.buffer != Buffer::scratch) {
    at.fail("its {} is packets in the {} buffer; they must be in scratch", role,
            name_of(operand.buffer));
  }
  for (const int rank : ranks_of(at.schedule, at.rank, operand)) {
    const std::uint32_t size = chunks_in(at.schedule, rank, operand.buffer);
    if (operand.chunk <= size && count <= size - operand.chunk) continue;
    const std::string chunks = count == 1 ? fmt::format("chunk {}", operand.chunk)
                                          : fmt::format("chunks {} to {}", operand.chunk,
                                                        std::uint64_t{operand.chunk} + count - 1);
    at.fail("its {} is {} of the {} buffer of rank {}, which has {}", role, chunks,
            name_of(operand.buffer), rank, size);
  }
}

void check_operands(const StepLocation& at, const Step& step, const Access& access) {
  if (step.count == 0) at.fail("its count is 0; it must be at least 1");
  if (access.sources.empty() || access.destinations.empty()) {
    at.fail("it has no {}; it needs at least one",
            access.sources.empty() ? "source" : "destination");
  }
  for (const auto* operands : {&access.sources, &access.destinations}) {
    const bool has_group =
        std::any_of(operands->begin(), operands->end(),
                    [](const Operand& operand) { return operand.holder == Holder::group; });
    if (has_group && operands->size() > 1) {
      at.fail("it has a group of ranks and {} other {}; a group must be the only one",
              operands->size() - 1, operands == &access.sources ? "sources" : "destinations");
    }
  }
  for (const Operand& source : access.sources) {
    check_operand(at, "source", source, step.count);
    if (source.is_packet && source.holder != Holder::own) {
      at.fail("it reads packets of another rank; packets must be read where they were put");
    }
  }
  for (const Operand& destination : access.destinations) {
    check_operand(at, "destination", destination, step.count);
  }
}

// True if there is a signal for each destination of its bytes.
bool has_end_for_each(const StepLocation& at, const Access& access) {
  const Operand& to = access.destinations.front();
  if (to.holder != Holder::group) {
    return access.is_port && access.ends.size() == access.destinations.size();
  }
  const auto& group = at.schedule.groups[static_cast<std::size_t>(to.number)];
  std::vector<std::int32_t> told{at.rank};
  for (const SignalEnd& end : access.ends) told.push_back(end.peer);
  std::ranges::sort(told);
  return told == group;
}

void check_direct(const StepLocation& at, const Step& step, const Access& access) {
  check_operands(at, step, access);
  if (access.parts == 0 || access.parts > kPartsMax || access.part >= access.parts) {
    at.fail("it does part {} of {}; parts are numbered from 0, and there are at most {}",
            access.part, access.parts, kPartsMax);
  }
  const bool loads =
      std::any_of(access.sources.begin(), access.sources.end(),
                  [](const Operand& source) { return source.holder != Holder::own; });
  if (access.is_port && loads) at.fail("it loads through a port; a port can only store to peers");
  if (access.signals && !has_end_for_each(at, access)) {
    at.fail(
        "it signals after its bytes; this needs a port channel for each destination, or a channel "
        "to each other rank of its group");
  }
}

void check_ends(const StepLocation& at, const Access& access) {
  for (const SignalEnd& end : access.ends) {
    check_peer(at, end.peer);
    if (end.channel < 0 || static_cast<std::uint32_t>(end.channel) >= at.schedule.channels) {
      at.fail("its channel is {}; the schedule has {}", end.channel, at.schedule.channels);
    }
  }
}

void check_semaphores(const StepLocation& at, const Access& access) {
  const std::size_t count = at.schedule.ranks[static_cast<std::size_t>(at.rank)].semaphores.size();
  for (const std::uint32_t semaphore : access.semaphores) {
    if (semaphore >= count) at.fail("its semaphore is {}; the rank has {}", semaphore, count);
  }
}

void check_pipeline(const StepLocation& at, const Step& step, const Access& access) {
  const auto& steps = at.schedule.ranks[static_cast<std::size_t>(at.rank)].blocks[at.block].steps;
  if (step.count == 0 || step.count > steps.size() - at.step - 1) {
    at.fail("it is a pipeline of {} steps; {} follow", step.count, steps.size() - at.step - 1);
  }
  if (access.unit_bytes == 0 || access.chunks == 0) {
    at.fail("it is a pipeline of {} chunks in pieces of {} bytes; both must be at least 1",
            access.chunks, access.unit_bytes);
  }
  for (std::size_t s = at.step + 1; s <= at.step + step.count; ++s) {
    const Step& inner = steps[s];
    const bool is_possible = inner.type == StepType::nop ||
                             (is_one_sided(inner.type) && inner.type != StepType::pipeline);
    if (!is_possible || inner.publishes || inner.depends_on_block != kNone) {
      at.fail(
          "it is a pipeline with a {} at step {}; it may have only one-sided steps and nop, "
          "without dependencies",
          name_of(inner.type), s);
    }
    if (inner.type != StepType::direct) continue;
    const Access& moved =
        at.schedule.ranks[static_cast<std::size_t>(at.rank)].blocks[at.block].access(inner);
    const auto is_packet = [](const Operand& operand) { return operand.is_packet; };
    if (std::any_of(moved.sources.begin(), moved.sources.end(), is_packet) ||
        std::any_of(moved.destinations.begin(), moved.destinations.end(), is_packet)) {
      at.fail("it is a pipeline with packets at step {}; packets cannot be divided into pieces", s);
    }
  }
}

void check_access(const StepLocation& at, const Step& step, const Access& access) {
  switch (step.type) {
    case StepType::direct: check_direct(at, step, access); [[fallthrough]];
    case StepType::signal:
    case StepType::wait:
    case StepType::flush: check_ends(at, access); break;
    case StepType::acquire:
    case StepType::release: check_semaphores(at, access); break;
    case StepType::pipeline: check_pipeline(at, step, access); break;
    default: break;
  }
}

bool has_accesses(const Schedule& schedule) {
  const auto has_some = [](const ThreadBlock& block) { return !block.accesses.empty(); };
  return std::ranges::any_of(schedule.ranks, [&](const RankProgram& program) {
    return std::ranges::any_of(program.blocks, has_some);
  });
}

// The k-th one-sided step of a thread block must use its k-th access, so that equal schedules
// compare equal.
void check_access_order(const Schedule& schedule) {
  if (!has_one_sided_steps(schedule) && !has_accesses(schedule)) return;
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    const auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      StepLocation at{schedule, rank, b, 0};
      std::uint32_t next = 0;
      for (; at.step < blocks[b].steps.size(); ++at.step) {
        const Step& step = blocks[b].steps[at.step];
        if (!is_one_sided(step.type)) continue;
        if (step.source_chunk != next || next >= blocks[b].accesses.size()) {
          at.fail("it has access {} of {}; the next in order is {}", step.source_chunk,
                  blocks[b].accesses.size(), next);
        }
        ++next;
      }
      if (next != blocks[b].accesses.size()) {
        at.step = 0;
        at.fail("its thread block has {} accesses for {} one-sided steps",
                blocks[b].accesses.size(), next);
      }
    }
  }
}

void check_mixture(const Schedule& schedule) {
  if (!has_fifo_steps(schedule)) return;
  for_each_access(schedule, [](const StepLocation& at, const Step& step, const Access& access) {
    if (step.type == StepType::pipeline ||
        (step.type == StepType::direct && (step.count != 1 || access.parts != 1))) {
      at.fail(
          "it is a {} of {} chunks and {} parts; next to steps that send and receive, it must be a "
          "single whole chunk",
          name_of(step.type), step.count, access.parts);
    }
  });
}

}  // namespace

void check_each_access(const Schedule& schedule) {
  check_groups(schedule);
  check_access_order(schedule);
  for_each_access(schedule, check_access);
  check_mixture(schedule);
}

}  // namespace towpath::collective
