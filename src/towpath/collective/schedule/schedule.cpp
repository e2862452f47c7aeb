// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/schedule/one_sided.hpp"
#include "towpath/collective/schedule/step_location.hpp"
#include "towpath/collective/schedule/symmetry.hpp"
#include "towpath/collective/schedule/wiring.hpp"

namespace towpath::collective {
namespace {

constexpr std::array<std::string_view, 11> kCollectiveNames = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
    "gather",     "scatter",    "all_to_all_v",   "send_recv", "barrier"};
constexpr std::array<std::string_view, kBuffers> kBufferNames = {"input", "output", "scratch"};
constexpr std::array<std::string_view, kStepTypes> kStepNames = {"send",
                                                                 "receive",
                                                                 "receive_copy_send",
                                                                 "receive_reduce_send",
                                                                 "receive_reduce_copy",
                                                                 "receive_reduce_copy_send",
                                                                 "copy",
                                                                 "reduce",
                                                                 "nop",
                                                                 "direct",
                                                                 "signal",
                                                                 "wait",
                                                                 "flush",
                                                                 "barrier",
                                                                 "acquire",
                                                                 "release",
                                                                 "pipeline"};
constexpr std::array<std::string_view, kProtocols> kProtocolNames = {"Simple", "LL", "LL128"};
constexpr std::array<std::string_view, 3> kNotificationNames = {"trailing", "attached", "deferred"};

void check_ranges(const StepLocation& at, const Step& step) {
  if (reads_source(step.type)) {
    check_range(at, "source", step.source, step.source_chunk, step.count);
  }
  if (writes_destination(step.type)) {
    check_range(at, "destination", step.destination, step.destination_chunk, step.count);
  }
}

void check_dependency(const StepLocation& at, const Step& step) {
  if (step.depends_on_block == kNone) return;
  const auto& blocks = at.schedule.ranks[static_cast<std::size_t>(at.rank)].blocks;
  const auto block = static_cast<std::size_t>(step.depends_on_block);
  if (step.depends_on_block < 0 || block >= blocks.size()) {
    at.fail("it depends on thread block {}, but the rank has {}", step.depends_on_block,
            blocks.size());
  }
  const auto dependency = static_cast<std::size_t>(step.depends_on_step);
  if (step.depends_on_step < 0 || dependency >= blocks[block].steps.size()) {
    at.fail("it depends on step {} of thread block {}, which has {} steps", step.depends_on_step,
            block, blocks[block].steps.size());
  }
  if (block == at.block) at.fail("it depends on its own thread block");
  if (!blocks[block].steps[dependency].publishes) {
    at.fail("it depends on step {} of thread block {}, which does not publish its completion",
            dependency, block);
  }
}

void check_step(const StepLocation& at, const ThreadBlock& block, const Step& step) {
  if (sends(step.type) && block.send_peer == kNone) {
    at.fail("it is a {}, but its thread block has no send peer", name_of(step.type));
  }
  if (receives(step.type) && block.receive_peer == kNone) {
    at.fail("it is a {}, but its thread block has no receive peer", name_of(step.type));
  }
  if (step.type < StepType::nop && step.count == 0)
    at.fail("its count is 0; it must be at least 1");
  check_ranges(at, step);
  check_dependency(at, step);
}

// A description of an invalid pattern; empty if the pattern is valid for the collective.
std::string mistake_in_pattern(const Schedule& schedule) {
  const std::size_t ranks = schedule.ranks.size();
  const bool is_per_pair = schedule.collective == Collective::all_to_all_v;
  const bool is_per_rank = schedule.collective == Collective::send_recv;
  const std::size_t size = is_per_pair ? ranks * ranks : is_per_rank ? ranks : 0;
  if (schedule.pattern.size() != size) {
    return fmt::format("its pattern has {} numbers; {} of {} ranks has {}", schedule.pattern.size(),
                       name_of(schedule.collective), ranks, size);
  }
  std::vector<bool> is_target(ranks);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t number = schedule.pattern[i];
    if (is_per_pair && number > schedule.chunks / ranks) {
      return fmt::format("rank {} sends rank {} {} chunks; a part has {}", i / ranks, i % ranks,
                         number, schedule.chunks / ranks);
    }
    if (!is_per_rank) continue;
    if (number >= ranks || is_target[number]) {
      return fmt::format("rank {} sends to rank {}; the pattern must list each of {} ranks once", i,
                         number, ranks);
    }
    is_target[number] = true;
  }
  return "";
}

void check_header(const Schedule& schedule) {
  const auto fail = [&](const std::string& what) {
    throw ScheduleError(fmt::format("schedule '{}': {}", schedule.name, what));
  };
  const std::size_t ranks = schedule.ranks.size();
  if (ranks == 0) fail("it has no ranks; it needs at least 1");
  if (schedule.chunks == 0) fail("it cuts the array into 0 chunks; it needs at least 1");
  if (works_on_parts(schedule.collective) && schedule.chunks % ranks != 0) {
    fail(fmt::format("{} of {} ranks needs a multiple of {} chunks, not {}",
                     name_of(schedule.collective), ranks, ranks, schedule.chunks));
  }
  if (schedule.root < 0 || static_cast<std::size_t>(schedule.root) >= ranks) {
    fail(fmt::format("its root is rank {} of {}", schedule.root, ranks));
  }
  if (!schedule.in_place && !schedule.out_of_place) {
    fail("it supports neither in place nor out of place; it needs at least one");
  }
  const std::string mistake = mistake_in_pattern(schedule);
  if (!mistake.empty()) fail(mistake);
}

void check_peer(const StepLocation& at, const char* role, std::int32_t peer) {
  if (peer == kNone) return;
  if (peer < 0 || peer >= at.schedule.rank_count() || peer == at.rank) {
    at.fail("its {} peer is rank {}; it must be any other of {} ranks", role, peer,
            at.schedule.rank_count());
  }
}

bool has_step(const ThreadBlock& block, bool (*matches)(StepType)) {
  for (std::size_t s = 0; s < block.steps.size(); ++s) {
    if (matches(block.steps.unrotated(s).type)) return true;
  }
  return false;
}

// A connection belongs to one thread block at either end. Sorted, because a rank may have a
// thousand connections.
bool has_single_ends(const RankProgram& program) {
  std::vector<std::pair<std::int32_t, std::int32_t>> ends;
  for (const auto peer : {&ThreadBlock::send_peer, &ThreadBlock::receive_peer}) {
    ends.clear();
    for (const ThreadBlock& block : program.blocks) {
      if (block.*peer != kNone) ends.emplace_back(block.channel, block.*peer);
    }
    if (!std::ranges::is_sorted(ends)) std::ranges::sort(ends);
    if (std::ranges::adjacent_find(ends) != ends.end()) return false;
  }
  return true;
}

void check_single_ends(const Schedule& schedule, int rank) {
  const RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
  if (has_single_ends(program)) return;
  std::set<std::pair<int, int>> senders;
  std::set<std::pair<int, int>> receivers;
  const auto& blocks = program.blocks;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const ThreadBlock& block = blocks[b];
    const StepLocation at{schedule, rank, b, 0};
    if (block.send_peer != kNone && !senders.emplace(block.send_peer, block.channel).second) {
      at.fail("another thread block of the rank also sends to rank {} on channel {}",
              block.send_peer, block.channel);
    }
    if (block.receive_peer != kNone &&
        !receivers.emplace(block.receive_peer, block.channel).second) {
      at.fail("another thread block of the rank also receives from rank {} on channel {}",
              block.receive_peer, block.channel);
    }
  }
}

void check_other_ends(const Schedule& schedule, int rank, const ConnectionEnds& ends) {
  const auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const ThreadBlock& block = blocks[b];
    const StepLocation at{schedule, rank, b, 0};
    if (has_step(block, sends) && ends.receiver(block.send_peer, rank, block.channel) == kNone) {
      at.fail("it sends to rank {} on channel {}, where no thread block receives from rank {}",
              block.send_peer, block.channel, rank);
    }
    if (has_step(block, receives) &&
        ends.sender(block.receive_peer, rank, block.channel) == kNone) {
      at.fail("it receives from rank {} on channel {}, where no thread block sends to rank {}",
              block.receive_peer, block.channel, rank);
    }
  }
}

// The chunks of a list's steps: whether they use the grid, and the end of the chunks outside it.
struct Reached {
  bool has_grid = false;
  std::uint64_t end = 0;
};

std::array<Reached, kBuffers> reached_by(const StepList& list) {
  std::array<Reached, kBuffers> reached;
  const auto add = [&](Buffer buffer, std::uint32_t chunk, std::uint32_t count) {
    Reached& of_buffer = reached[static_cast<std::size_t>(buffer)];
    if (chunk < list.places()) {
      of_buffer.has_grid = true;
    } else {
      of_buffer.end = std::max(of_buffer.end, std::uint64_t{chunk} - list.places() + count);
    }
  };
  for (const Step& step : list.steps) {
    if (reads_source(step.type)) add(step.source, step.source_chunk, step.count);
    if (writes_destination(step.type)) add(step.destination, step.destination_chunk, step.count);
  }
  return reached;
}

// Chunk ranges of ranks that run the same steps with other chunks.
class RangeChecks {
 public:
  explicit RangeChecks(const Schedule& schedule) : schedule_(schedule) {}

  void check(int rank) {
    const auto& blocks = schedule_.ranks[static_cast<std::size_t>(rank)].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (is_surely_within(rank, blocks[b].steps)) continue;
      StepLocation at{schedule_, rank, b, 0};
      for (; at.step < blocks[b].steps.size(); ++at.step) {
        check_ranges(at, blocks[b].steps[at.step]);
      }
    }
  }

 private:
  bool is_surely_within(int rank, const Steps& steps) {
    const StepList* list = steps.list();
    if (list == nullptr) return true;
    if (list->rows == 0) return false;
    const auto [found, is_new] = reached_.try_emplace(list);
    if (is_new) found->second = reached_by(*list);
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      const Reached& reached = found->second[static_cast<std::size_t>(buffer)];
      const std::uint64_t end = std::max<std::uint64_t>(
          reached.end, reached.has_grid ? std::uint64_t{list->rows} * list->columns : 0);
      if (end == 0) continue;
      if (steps.rotation().first_chunk + end >
          chunks_in(schedule_, rank, static_cast<Buffer>(buffer))) {
        return false;
      }
    }
    return true;
  }

  const Schedule& schedule_;
  std::unordered_map<const StepList*, std::array<Reached, kBuffers>> reached_;
};

}  // namespace

void check_range(const StepLocation& at, const char* role, Buffer buffer, std::uint32_t chunk,
                 std::uint32_t count) {
  const std::uint32_t size = chunks_in(at.schedule, at.rank, buffer);
  if (chunk > size || count > size - chunk) {
    const std::string chunks =
        count == 1 ? fmt::format("chunk {}", chunk)
                   : fmt::format("chunks {} to {}", chunk, std::uint64_t{chunk} + count - 1);
    at.fail("its {} is {} of the {} buffer, which has {}", role, chunks, name_of(buffer), size);
  }
}

std::string_view name_of(Collective c) { return kCollectiveNames[static_cast<std::size_t>(c)]; }
std::string_view name_of(Buffer b) { return kBufferNames[static_cast<std::size_t>(b)]; }
std::string_view name_of(StepType t) { return kStepNames[static_cast<std::size_t>(t)]; }
std::string_view name_of(Protocol p) { return kProtocolNames[static_cast<std::size_t>(p)]; }
std::string_view name_of(Rendezvous rendezvous) {
  return rendezvous == Rendezvous::all ? "all" : "peers";
}
std::string_view name_of(Notification n) { return kNotificationNames[static_cast<std::size_t>(n)]; }

std::optional<Collective> collective_from(std::string_view name) {
  for (std::size_t i = 0; i < kCollectiveNames.size(); ++i) {
    if (kCollectiveNames[i] == name) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::optional<Protocol> protocol_from(std::string_view name) {
  for (std::size_t i = 0; i < kProtocolNames.size(); ++i) {
    if (kProtocolNames[i] == name) return static_cast<Protocol>(i);
  }
  return std::nullopt;
}

std::uint32_t chunks_in(const Schedule& schedule, int rank, Buffer buffer) {
  const auto ranks = static_cast<std::uint32_t>(schedule.ranks.size());
  if (buffer == Buffer::scratch) {
    return schedule.ranks[static_cast<std::size_t>(rank)].scratch_chunks;
  }
  const Collective collective = schedule.collective;
  const bool is_one_part =
      buffer == Buffer::input
          ? collective == Collective::all_gather || collective == Collective::gather
          : collective == Collective::reduce_scatter || collective == Collective::scatter;
  return is_one_part ? schedule.chunks / ranks : schedule.chunks;
}

std::uint32_t shared_chunk(const Schedule& schedule, int rank, Buffer buffer, std::uint32_t chunk) {
  const bool is_one_part =
      buffer != Buffer::scratch && chunks_in(schedule, rank, buffer) < schedule.chunks;
  if (!is_one_part) return chunk;
  return static_cast<std::uint32_t>(rank) * chunks_in(schedule, rank, buffer) + chunk;
}

std::size_t step_count(const Schedule& schedule) {
  std::size_t count = 0;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) count += block.steps.size();
  }
  return count;
}

namespace {

bool has_step_in_any_rank(const Schedule& schedule, bool (*matches)(StepType)) {
  return any_distinct_steps(
      schedule, [matches](const ThreadBlock& block) { return has_step(block, matches); });
}

// Calls mix(word) for every field of an Access.
template <typename Mix>
void mix_access(const Access& access, const Mix& mix) {
  for (const auto* operands : {&access.sources, &access.destinations}) {
    mix(operands->size());
    for (const Operand& operand : *operands) {
      mix(static_cast<std::uint64_t>(operand.holder) * 16 +
          static_cast<std::uint64_t>(operand.buffer) * 2 + operand.is_packet);
      mix(std::uint64_t{static_cast<std::uint32_t>(operand.number)} << 32 | operand.chunk);
    }
  }
  mix(std::uint64_t{access.part} << 32 | access.parts);
  mix(access.is_port * 8u + access.is_relaxed * 4u + access.signals * 2u + access.flushes);
  mix(access.ends.size());
  for (const SignalEnd& end : access.ends) {
    mix(std::uint64_t{static_cast<std::uint32_t>(end.peer)} << 32 |
        static_cast<std::uint32_t>(end.channel));
  }
  mix(access.semaphores.size());
  for (const std::uint32_t semaphore : access.semaphores) mix(semaphore);
  mix(std::uint64_t{access.barrier} << 32 | access.barrier_blocks);
  mix(access.unit_bytes);
  mix(access.chunks);
}

}  // namespace

bool has_one_sided_steps(const Schedule& schedule) {
  return has_step_in_any_rank(schedule, is_one_sided);
}

bool follows_fifo(const RankProgram& program, const Step& step) {
  if (step.depends_on_block == kNone) return false;
  const ThreadBlock& other = program.blocks[static_cast<std::size_t>(step.depends_on_block)];
  return other.send_peer != kNone || other.receive_peer != kNone;
}

bool has_fifo_steps(const Schedule& schedule) {
  return has_step_in_any_rank(schedule,
                              [](StepType type) { return sends(type) || receives(type); });
}

namespace {

// One round of a multiply-xorshift mixer per word. The order matters.
class Mixer {
 public:
  void mix(std::uint64_t word) {
    hash_ = (hash_ ^ word) * 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 29;
  }
  void pair(std::uint64_t high, std::uint64_t low) { mix((high << 32) ^ (low & 0xFFFFFFFFu)); }
  void step(const Step& step) {
    pair(static_cast<std::uint64_t>(step.type) * 64 + static_cast<std::uint64_t>(step.source) * 8 +
             static_cast<std::uint64_t>(step.destination) * 2 + step.publishes,
         step.count);
    pair(step.source_chunk, step.destination_chunk);
    pair(static_cast<std::uint32_t>(step.depends_on_block),
         static_cast<std::uint32_t>(step.depends_on_step));
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0x243F6A8885A308D3u;
};

// Hashes steps one by one, or by their shared list, which is hashed once.
class StepHash {
 public:
  explicit StepHash(bool is_by_list) : is_by_list_(is_by_list) {}

  void mix(const Steps& steps, Mixer& mixer) {
    if (!is_by_list_ || steps.list() == nullptr) {
      for (const Step& step : steps) mixer.step(step);
      return;
    }
    const auto [found, is_new] = of_list_.try_emplace(steps.list());
    if (is_new) found->second = hash_of(*steps.list());
    mixer.mix(found->second);
    mixer.pair(steps.rotation().row_shift, steps.rotation().column_shift);
    mixer.mix(steps.rotation().first_chunk);
  }

 private:
  static std::uint64_t hash_of(const StepList& list) {
    Mixer mixer;
    mixer.pair(list.rows, list.columns);
    for (const std::uint32_t row : list.order) mixer.mix(row);
    for (const Step& step : list.steps) mixer.step(step);
    return mixer.hash();
  }

  bool is_by_list_;
  std::unordered_map<const StepList*, std::uint64_t> of_list_;
};

}  // namespace

std::uint64_t fingerprint(const Schedule& schedule) {
  Mixer mixer;
  StepHash step_hash(step_count(schedule) > kStepsWrittenMax);
  const auto mix = [&mixer](std::uint64_t word) { mixer.mix(word); };
  const auto pair = [&mixer](std::uint64_t high, std::uint64_t low) { mixer.pair(high, low); };
  pair(static_cast<std::uint64_t>(schedule.collective),
       static_cast<std::uint64_t>(schedule.protocol));
  pair(schedule.channels, schedule.chunks);
  pair(static_cast<std::uint32_t>(schedule.root), schedule.in_place * 2u + schedule.out_of_place);
  mix(schedule.size_bytes_min);
  mix(schedule.size_bytes_max);
  for (const std::uint32_t number : schedule.pattern) mix(number);
  for (const RankProgram& program : schedule.ranks) {
    pair(program.input_chunks, program.output_chunks);
    pair(program.scratch_chunks, program.blocks.size());
    for (const ThreadBlock& block : program.blocks) {
      pair(static_cast<std::uint32_t>(block.send_peer),
           static_cast<std::uint32_t>(block.receive_peer));
      pair(static_cast<std::uint32_t>(block.channel), block.steps.size());
      step_hash.mix(block.steps, mixer);
      for (const Access& access : block.accesses) mix_access(access, mix);
    }
    for (const std::uint32_t held : program.semaphores) mix(held);
  }
  for (const auto& group : schedule.groups) {
    mix(group.size());
    for (const std::int32_t rank : group) mix(static_cast<std::uint32_t>(rank));
  }
  if (schedule.rendezvous != Rendezvous::all || schedule.notification != Notification::trailing) {
    pair(static_cast<std::uint64_t>(schedule.rendezvous),
         static_cast<std::uint64_t>(schedule.notification));
  }
  if (schedule.has_double_scratch) mix(1);
  if (schedule.has_switch_stages) mix(2);
  if (schedule.has_half_blocks) mix(3);
  if (schedule.scratch_bytes_max > 0) mix(schedule.scratch_bytes_max);
  return mixer.hash();
}

void check_structure(const Schedule& schedule) {
  check_header(schedule);
  // Later ranks repeat these except for their chunks.
  const int period = rotation_period(schedule);
  for (int rank = 0; rank < period; ++rank) {
    const RankProgram& program = schedule.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      const ThreadBlock& block = program.blocks[b];
      StepLocation at{schedule, rank, b, 0};
      check_peer(at, "send", block.send_peer);
      check_peer(at, "receive", block.receive_peer);
      if (block.channel < 0 || static_cast<std::uint32_t>(block.channel) >= schedule.channels) {
        at.fail("its channel is {}; the schedule has {}", block.channel, schedule.channels);
      }
      for (at.step = 0; at.step < block.steps.size(); ++at.step) {
        check_step(at, block, block.steps[at.step]);
      }
    }
    check_single_ends(schedule, rank);
  }
  RangeChecks ranges(schedule);
  for (int rank = period; rank < schedule.rank_count(); ++rank) ranges.check(rank);
  const ConnectionEnds ends(schedule, period);
  for (int rank = 0; rank < period; ++rank) check_other_ends(schedule, rank, ends);
  check_accesses(schedule);
}

}  // namespace towpath::collective
