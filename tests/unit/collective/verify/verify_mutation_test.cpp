// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "interpreter.hpp"
#include "schedules.hpp"
#include "towpath/collective/schedule/chunking.hpp"
#include "towpath/collective/verify/verify.hpp"

// The verifier against a second opinion: right schedules with one thing changed, executed in many
// random orders. TOWPATH_MUTANTS sets how many; the default, 1,000, takes a second.

namespace towpath::collective {
namespace {
using namespace samples;

constexpr int kInterleavings = 50;

// Elements so large that a transfer holds a few: slices, several transfers, several iterations and
// ragged ends all come about with a handful of numbers.
struct Size {
  Protocol protocol = Protocol::simple;
  std::uint64_t element_bytes = 1;
  std::uint64_t chunk_elements = 1;
};
constexpr Size kSizes[] = {
    {Protocol::ll, 4096, 1},         // 8 chunks per transfer
    {Protocol::ll, 4096, 3},         // 2
    {Protocol::ll, 4096, 11},        // 1, in two iterations
    {Protocol::ll128, 65536, 2},     // 4
    {Protocol::simple, 262144, 1},   // 8, two slices of which one may be empty
    {Protocol::simple, 262144, 3},   // 2
    {Protocol::simple, 262144, 5},   // 1
    {Protocol::simple, 262144, 17},  // 1, in three iterations
    {Protocol::simple, 16384, 1},    // 71; one slice up to two chunks
    {Protocol::simple, 16384, 129},  // 1, in two iterations, the last of one slice
};

std::vector<Schedule> right_schedules() {
  return {ring_all_reduce(3, 1),     ring_all_reduce(4, 2),          ring_all_gather(4, 1),
          ring_all_gather(3, 2),     ring_reduce_scatter(3),         two_shot_all_reduce(2, 2),
          two_shot_all_reduce(4, 1), two_shot_all_reduce(3, 2),      pairwise_all_to_all(3, 2),
          stepwise_all_to_all(3, 2), chain_broadcast(4, 3),          relayed_all_gather(4),
          one_slot_reduce(3, 3),     there_and_back_all_reduce(3, 2)};
}

struct Case {
  Schedule schedule;
  std::uint64_t elements = 0;
  std::uint64_t element_bytes = 1;
};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  // `schedule` at a size; the last chunks may be ragged or missing.
  Case at_size(Schedule schedule, const Size& size) {
    schedule.protocol = size.protocol;
    const std::uint64_t granularity = element_granularity(schedule);
    const std::uint64_t smallest = smallest_elements_with_chunk(schedule, size.chunk_elements);
    const std::uint64_t span = size.chunk_elements * schedule.chunks - smallest;
    const std::uint64_t elements = smallest + below(span / granularity + 1) * granularity;
    return {std::move(schedule), elements, size.element_bytes};
  }

  // Changes one thing; returns what in a word.
  std::string mutate(Schedule& schedule) {
    RankProgram& program = pick(schedule.ranks);
    const std::size_t b = below(program.blocks.size());
    ThreadBlock& block = program.blocks[b];
    if (block.steps.empty()) return mutate(schedule);
    const std::size_t s = below(block.steps.size());
    switch (below(9)) {
      case 0: drop(program, b, s); return "dropped";
      case 1: return swap(schedule, block, s);
      case 2: return readdress_source(schedule, block.steps[s]);
      case 3: return readdress_destination(schedule, block.steps[s]);
      case 4: return undepend(schedule, program);
      case 5: block.steps[s].count += below(2) == 0 ? 1u : ~0u; return "count changed";
      case 6: block.steps[s].type = static_cast<StepType>(below(9)); return "type changed";
      case 7: repeer(schedule, block); return "peer changed";
      default: return redepend(schedule, program, block, b, s);
    }
  }

 private:
  template <typename T>
  T& pick(std::vector<T>& items) {
    return items[below(items.size())];
  }

  // Others' dependencies go on naming the steps they named; on the dropped one, the one before it.
  static void drop(RankProgram& program, std::size_t b, std::size_t s) {
    program.blocks[b].steps.erase(program.blocks[b].steps.begin() + static_cast<std::ptrdiff_t>(s));
    for (ThreadBlock& block : program.blocks) {
      for (Step& step : block.steps) {
        if (step.depends_on_block != static_cast<int>(b)) continue;
        if (step.depends_on_step >= static_cast<int>(s)) --step.depends_on_step;
        if (step.depends_on_step < 0) step.depends_on_block = step.depends_on_step = kNone;
      }
    }
  }

  std::string swap(Schedule& schedule, ThreadBlock& block, std::size_t s) {
    if (block.steps.size() < 2) return mutate(schedule);
    s = std::min(s, block.steps.size() - 2);
    std::swap(block.steps[s], block.steps[s + 1]);
    return "swapped";
  }

  std::string readdress_source(Schedule& schedule, Step& step) {
    if (!reads_source(step.type)) return mutate(schedule);
    readdress(schedule, step.source, step.source_chunk);
    return "source changed";
  }

  std::string readdress_destination(Schedule& schedule, Step& step) {
    if (!writes_destination(step.type)) return mutate(schedule);
    readdress(schedule, step.destination, step.destination_chunk);
    return "destination changed";
  }

  void readdress(const Schedule& schedule, Buffer& buffer, std::uint32_t& chunk) {
    if (below(3) == 0) {
      buffer = static_cast<Buffer>(below(kBuffers));
    } else {
      chunk = static_cast<std::uint32_t>(below(schedule.chunks));
    }
  }

  std::string undepend(Schedule& schedule, RankProgram& program) {
    std::vector<Step*> dependent;
    for (ThreadBlock& block : program.blocks) {
      for (Step& step : block.steps) {
        if (step.depends_on_block != kNone) dependent.push_back(&step);
      }
    }
    if (dependent.empty()) return mutate(schedule);
    Step& step = *pick(dependent);
    step.depends_on_block = step.depends_on_step = kNone;
    return "dependency removed";
  }

  std::string redepend(Schedule& schedule, RankProgram& program, ThreadBlock& block, std::size_t b,
                       std::size_t s) {
    const std::size_t on = below(program.blocks.size());
    if (on == b || program.blocks[on].steps.empty()) return mutate(schedule);
    block.steps[s] = after(block.steps[s], static_cast<int>(on),
                           static_cast<int>(below(program.blocks[on].steps.size())));
    return "dependency changed";
  }

  void repeer(const Schedule& schedule, ThreadBlock& block) {
    const int peer = static_cast<int>(below(schedule.ranks.size()));
    switch (below(3)) {
      case 0: block.send_peer = peer; break;
      case 1: block.receive_peer = peer; break;
      default: block.channel = static_cast<int>(below(schedule.channels));
    }
  }

  std::mt19937_64 random_;
};

// Runs a case in many orders, in every placement it claims; the first that goes wrong, if any.
Interpretation expose(const Case& mutant, int interleavings) {
  for (int seed = 0; seed < interleavings; ++seed) {
    for (const bool in_place : {false, true}) {
      if (in_place ? !mutant.schedule.in_place : !mutant.schedule.out_of_place) continue;
      const Interpretation run = interpret(mutant.schedule, mutant.elements, mutant.element_bytes,
                                           in_place, static_cast<std::uint64_t>(seed));
      if (run.outcome != Outcome::correct) return run;
    }
  }
  return {};
}

bool has_kind(const Verdict& verdict, FindingKind kind) {
  for (const Finding& finding : verdict.findings) {
    if (finding.kind == kind) return true;
  }
  return false;
}

int mutant_count() {
  const char* wanted = std::getenv("TOWPATH_MUTANTS");
  return wanted == nullptr ? 1000 : std::atoi(wanted);
}

TEST(VerifyMutation, RightSchedulesAreAcceptedAtEverySize) {
  Mutator mutator(1);
  for (const Schedule& schedule : right_schedules()) {
    for (const Size& size : kSizes) {
      for (int i = 0; i < 3; ++i) {
        const Case original = mutator.at_size(schedule, size);
        const Verdict verdict =
            verify(original.schedule, original.elements, original.element_bytes);
        ASSERT_TRUE(verdict.is_correct()) << verdict.findings.front().sentence;
        EXPECT_TRUE(verdict.not_checked.empty());
        const Interpretation run = expose(original, 4);
        ASSERT_EQ(run.outcome, Outcome::correct) << run.what;
      }
    }
  }
}

TEST(VerifyMutation, WhatGoesWrongInAnyOrderIsRejected) {
  const std::vector<Schedule> schedules = right_schedules();
  Mutator mutator(2);
  std::map<std::string, int> tally;
  for (int i = 0; i < mutant_count(); ++i) {
    Case mutant = mutator.at_size(schedules[mutator.below(schedules.size())],
                                  kSizes[mutator.below(std::size(kSizes))]);
    const std::string change = mutator.mutate(mutant.schedule);
    const Verdict verdict = [&] {
      try {
        return verify(mutant.schedule, mutant.elements, mutant.element_bytes);
      } catch (const std::invalid_argument&) {
        // A larger count makes the collective need whole chunks.
        mutant.elements = mutant.schedule.chunks * (mutant.elements / mutant.schedule.chunks + 1);
        return verify(mutant.schedule, mutant.elements, mutant.element_bytes);
      }
    }();
    const std::string sentence =
        verdict.is_correct() ? "accepted" : verdict.findings.front().sentence;
    SCOPED_TRACE(fmt::format("mutant {}: {} ({} elements of {} bytes): {}", i, change,
                             mutant.elements, mutant.element_bytes, sentence));
    if (has_kind(verdict, FindingKind::structure)) {
      ++tally["rejected: structure"];
      continue;
    }
    const Interpretation run = expose(mutant, kInterleavings);
    if (run.outcome != Outcome::correct) {
      ASSERT_FALSE(verdict.is_correct()) << run.what;
      ++tally["rejected and exposed"];
      continue;
    }
    // Whatever order the run takes, these show; the rest may need luck.
    ASSERT_FALSE(has_kind(verdict, FindingKind::wrong_data));
    ASSERT_FALSE(has_kind(verdict, FindingKind::deadlock));
    ASSERT_FALSE(has_kind(verdict, FindingKind::mismatch));
    ++tally[verdict.is_correct()                   ? "harmless"
            : has_kind(verdict, FindingKind::race) ? "rejected for a race not exposed"
                                                   : "rejected for storing to the input"];
  }
  for (const auto& [what, count] : tally) std::printf("  %4d %s\n", count, what.c_str());
}

}  // namespace
}  // namespace towpath::collective
