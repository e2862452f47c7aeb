// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "towpath/collective/verify/verify_checks.hpp"

namespace towpath::collective {
namespace {

constexpr std::array<std::string_view, kFindingKinds> kFindingNames = {
    "structure", "mismatch", "deadlock", "race", "wrong_data", "input_overwritten"};

std::vector<Blocked> find_stuck(const Network& network, const Chunking& chunking) {
  Visitor visitor;
  return walk(network, chunking, visitor);
}

bool check_deadlock(const Network& network, const Chunking& chunking, FindingList& findings) {
  const std::vector<Blocked> stuck = find_stuck(network, chunking);
  if (stuck.empty()) return true;
  const WaitChain chain = find_wait_chain(stuck);
  const Blocked& first = chain.links.front();
  const std::uint32_t block = network.block_of(first.rank, first.block);
  findings.add({FindingKind::deadlock, "deadlock: " + describe(network.schedule, chain), first.rank,
                first.block, network.blocks[block].program->channel, first.step,
                first.waits_for_rank, first.waits_for_block, kNone});
  return false;
}

// The sizes of the transfers at one end of a connection, in order.
class Transfers {
 public:
  Transfers(const Network::Block& block, bool (*takes_part)(StepType), const Chunking& chunking)
      : block_(block), takes_part_(takes_part), at_most_(chunking.chunks_per_transfer()) {
    skip();
  }
  const Network::Block& block() const { return block_; }
  bool is_at_end() const { return step_ == steps().size(); }
  int step() const { return static_cast<int>(step_); }
  std::uint32_t chunks() const {
    return is_at_end() ? 0 : std::min(at_most_, steps()[step_].count - done_);
  }
  void next() {
    done_ += chunks();
    if (done_ < steps()[step_].count) return;
    done_ = 0;
    ++step_;
    skip();
  }

 private:
  const Steps& steps() const { return block_.program->steps; }
  void skip() {
    while (!is_at_end() && !takes_part_(steps()[step_].type)) ++step_;
  }
  const Network::Block& block_;
  bool (*takes_part_)(StepType);
  std::uint32_t at_most_;
  std::size_t step_ = 0;
  std::uint32_t done_ = 0;  // chunks of the step
};

std::string describe_mismatch(const Schedule& schedule, const Transfers& sent,
                              const Transfers& received, std::uint64_t transfer) {
  const Network::Block& from = sent.block();
  const Network::Block& to = received.block();
  const auto place = [&](const Transfers& end) {
    return describe_step(schedule, end.block().rank, end.block().number, end.step());
  };
  if (received.is_at_end()) {
    return fmt::format("{} sends transfer {} to rank {} thread block {}, which receives only {}",
                       place(sent), transfer, to.rank, to.number, transfer);
  }
  if (sent.is_at_end()) {
    return fmt::format("{} waits for transfer {} from rank {} thread block {}, which sends only {}",
                       place(received), transfer, from.rank, from.number, transfer);
  }
  return fmt::format("{} sends {} chunks in transfer {}, but {} receives {}", place(sent),
                     sent.chunks(), transfer, place(received), received.chunks());
}

// True if the ends of a connection agree. Adds the first disagreement to `findings` if it is not
// null.
bool ends_agree(const Network& network, const Network::Connection& connection,
                const Chunking& chunking, FindingList* findings) {
  const Network::Block& from = network.blocks[connection.sender];
  const Network::Block& to = network.blocks[connection.receiver];
  Transfers sent(from, sends, chunking);
  Transfers received(to, receives, chunking);
  for (std::uint64_t transfer = 0; !sent.is_at_end() || !received.is_at_end(); ++transfer) {
    if (sent.chunks() != received.chunks()) {
      if (findings == nullptr) return false;
      Finding finding{FindingKind::mismatch,
                      describe_mismatch(network.schedule, sent, received, transfer),
                      from.rank,
                      from.number,
                      from.program->channel,
                      sent.step(),
                      to.rank,
                      to.number,
                      received.step()};
      if (sent.is_at_end()) {
        std::swap(finding.rank, finding.other_rank);
        std::swap(finding.block, finding.other_block);
        std::swap(finding.step, finding.other_step);
      }
      findings->add(std::move(finding));
      return false;
    }
    sent.next();
    received.next();
  }
  return true;
}

bool agrees(const Network& network, const Chunking& chunking) {
  return std::all_of(network.connections.begin(), network.connections.end(),
                     [&](const auto& c) { return ends_agree(network, c, chunking, nullptr); });
}

// Number of raises and takes of a counter in one invocation, and the first step of each.
struct CounterBalance {
  std::uint64_t raised = 0;
  std::uint64_t taken = 0;
  std::uint32_t raiser = 0;
  std::uint32_t taker = 0;
  int raiser_step = kNone;
  int taker_step = kNone;
  WaitReason reason = WaitReason::signal;
};

std::map<std::uint32_t, CounterBalance> balances(const Network& network, const Chunking& chunking) {
  std::map<std::uint32_t, CounterBalance> found;
  for (std::uint32_t b = 0; b < network.blocks.size(); ++b) {
    const Network::Block& block = network.blocks[b];
    const Steps& steps = block.program->steps;
    std::uint64_t times = 1;
    std::size_t loop_end = 0;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (s >= loop_end) times = 1;
      if (!is_one_sided(steps[s].type)) continue;
      const AccessWiring& wiring = network.access_wiring(block, steps[s]);
      const int step = static_cast<int>(s);
      for (const CounterRaise& raise : wiring.raises) {
        CounterBalance& balance = found[network.counter_of(raise.rank, raise.counter)];
        if (balance.raiser_step == kNone)
          std::tie(balance.raiser, balance.raiser_step) = std::tuple(b, step);
        balance.raised += times;
      }
      for (const CounterTake& take : wiring.takes) {
        CounterBalance& balance = found[network.counter_of(block.rank, take.counter)];
        if (balance.taker_step == kNone)
          std::tie(balance.taker, balance.taker_step) = std::tuple(b, step);
        balance.taken += times;
        balance.reason = take.reason;
      }
      if (steps[s].type != StepType::pipeline) continue;
      times = loop_count(block.program->access(steps[s]), chunking.chunk_elements(),
                         chunking.element_bytes());
      loop_end = s + 1 + steps[s].count;
    }
  }
  return found;
}

// Surplus raises would be visible in the next invocation.
bool check_counters(const Network& network, const Chunking& chunking, FindingList& findings) {
  if (!network.is_one_sided()) return true;
  bool all_agree = true;
  for (const auto& [counter, balance] : balances(network, chunking)) {
    // Packets may be read by any number of steps.
    const bool is_counted =
        balance.reason == WaitReason::signal || balance.reason == WaitReason::semaphore;
    const bool is_taken = balance.taker_step != kNone;
    if (!is_counted || !is_taken || balance.raised == balance.taken) continue;
    all_agree = false;
    const bool has_raiser = balance.raiser_step != kNone;
    const Network::Block& block = network.blocks[has_raiser ? balance.raiser : balance.taker];
    const Network::Block& other = network.blocks[balance.taker];
    const int step = has_raiser ? balance.raiser_step : balance.taker_step;
    const std::string taker =
        fmt::format("{} takes it {} times",
                    describe_step(network.schedule, other.rank, other.number, balance.taker_step),
                    balance.taken);
    findings.add({FindingKind::mismatch,
                  fmt::format("{} and its like raise {} {} times, but {}",
                              describe_step(network.schedule, block.rank, block.number, step),
                              words_of(balance.reason), balance.raised, taker),
                  block.rank, block.number, block.program->channel, step, other.rank, other.number,
                  balance.taker_step});
  }
  return all_agree;
}

// Reports relaxed signals after stores of their thread block. Whether the stores are visible in
// time depends on the hardware.
void note_relaxed_signals(const Network& network, Verdict& verdict) {
  for (const Network::Block& block : network.blocks) {
    bool has_stored = false;
    const Steps& steps = block.program->steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      has_stored |= steps[s].type == StepType::direct || writes_destination(steps[s].type);
      if (steps[s].type != StepType::signal || !has_stored) continue;
      if (!block.program->access(steps[s]).is_relaxed) {
        has_stored = false;
        continue;
      }
      verdict.not_checked.push_back(fmt::format(
          "whether what was stored before {} is seen by those it signals: it is relaxed and orders "
          "no memory; it was taken to do so",
          describe_step(network.schedule, block.rank, block.number, static_cast<int>(s))));
      return;
    }
  }
}

void check_placement(const Network& network, const Chunking& chunking, Placement placement,
                     FindingList& findings, Verdict& verdict) {
  const std::size_t races_before = findings.total(FindingKind::race);
  check_races(network, chunking, placement, findings, verdict);
  if (findings.total(FindingKind::race) > races_before) {
    verdict.not_checked.push_back(
        fmt::format("data{}: they depend on who wins the race", placement.words()));
    return;
  }
  check_data(network, chunking, placement, findings);
}

// The chunk sizes, in elements, at which chunks_per_transfer decreases. Between two of them steps
// have the same transfers. Their number of slices does not matter for deadlocks (verify_walk.hpp).
std::set<std::uint64_t> chunk_sizes_that_matter(const Schedule& schedule,
                                                std::uint64_t element_bytes) {
  const std::uint64_t transfer = fifo_limits(schedule).transfer_bytes_max / element_bytes;
  std::set<std::uint64_t> sizes = {1};
  for (std::uint64_t chunks = 1; chunks < kChunksPerTransferMax; ++chunks) {
    sizes.insert(transfer / (chunks + 1) + 1);
  }
  return sizes;
}

std::set<std::uint32_t> distinct_counts(const Schedule& schedule) {
  std::set<std::uint32_t> counts;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      for (const Step& step : block.steps) {
        if (sends(step.type) || receives(step.type)) counts.insert(step.count);
      }
    }
  }
  return counts;
}

// The chunks of the transfers of a step, for each count.
std::vector<std::uint32_t> transfer_pattern(const Chunking& chunking,
                                            const std::set<std::uint32_t>& counts) {
  std::vector<std::uint32_t> pattern;
  for (const std::uint32_t count : counts) {
    pattern.push_back(std::min(count, chunking.chunks_per_transfer()));
  }
  return pattern;
}

// Each step takes some hundred bytes during verification.
constexpr std::size_t kStepsVerifiedMax = 4 * kStepsWrittenMax;

}  // namespace

std::string_view name_of(FindingKind kind) { return kFindingNames[static_cast<std::size_t>(kind)]; }

void FindingList::add(Finding finding, const std::string& place) {
  if (is_full(finding.kind)) return omit(finding.kind, 1);
  ++total_[static_cast<std::size_t>(finding.kind)];
  if (!seen_.emplace(finding.kind, finding.sentence).second) return;
  ++shown_[static_cast<std::size_t>(finding.kind)];
  finding.sentence += place;
  verdict_.findings.push_back(std::move(finding));
}

void FindingList::omit(FindingKind kind, std::size_t count) {
  total_[static_cast<std::size_t>(kind)] += count;
  verdict_.omitted += count;
}

bool check_matching(const Network& network, const Chunking& chunking, FindingList& findings) {
  bool all_agree = check_counters(network, chunking, findings);
  for (const Network::Connection& connection : network.connections) {
    all_agree = ends_agree(network, connection, chunking, &findings) && all_agree;
  }
  return all_agree;
}

void check_input_is_kept(const Network& network, FindingList& findings) {
  for (const Network::Block& block : network.blocks) {
    const Steps& steps = block.program->steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const auto report = [&](const std::string& what) {
        const int step = static_cast<int>(s);
        findings.add(
            {FindingKind::input_overwritten,
             fmt::format("{} stores to {}, which must stay as it is out of place",
                         describe_step(network.schedule, block.rank, block.number, step), what),
             block.rank, block.number, block.program->channel, step, kNone, kNone, kNone});
      };
      if (steps[s].type == StepType::direct) {
        for (const Operand& operand : block.program->access(steps[s]).destinations) {
          if (operand.buffer != Buffer::input) continue;
          report(describe_operand(network.schedule, operand));
        }
      } else if (writes_destination(steps[s].type) && steps[s].destination == Buffer::input) {
        report(fmt::format("input chunk {}", steps[s].destination_chunk));
      }
    }
  }
}

Verdict verify(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes,
               const SlotCounts& slots) {
  if (step_count(schedule) > kStepsVerifiedMax) {
    throw std::invalid_argument(
        fmt::format("schedule '{}' has {} steps; at most {} can be verified, so use fewer ranks",
                    schedule.name, step_count(schedule), kStepsVerifiedMax));
  }
  Verdict verdict;
  FindingList findings(verdict);
  try {
    check_structure(schedule);
  } catch (const ScheduleError& error) {
    findings.add({FindingKind::structure, error.what()});
    verdict.not_checked.emplace_back("all else: the schedule makes no sense as a text");
    return verdict;
  }
  const Chunking chunking(schedule, elements, element_bytes);
  const Network network(schedule, slots);
  if (schedule.out_of_place) check_input_is_kept(network, findings);
  if (!check_matching(network, chunking, findings)) {
    verdict.not_checked.emplace_back(
        "deadlock, races and data: connections have ends that disagree");
    return verdict;
  }
  if (!check_deadlock(network, chunking, findings)) {
    verdict.not_checked.emplace_back("races and data: the schedule does not finish at this size");
    return verdict;
  }
  note_relaxed_signals(network, verdict);
  if (CellGrid(schedule, chunking).per_chunk() > kCellsPerChunkMax) {
    verdict.not_checked.push_back(fmt::format(
        "races and data: pipelines cut chunks into more than {} pieces", kCellsPerChunkMax));
    return verdict;
  }
  if (schedule.out_of_place) check_placement(network, chunking, {false}, findings, verdict);
  if (schedule.in_place) check_placement(network, chunking, {true}, findings, verdict);
  return verdict;
}

std::optional<std::uint64_t> smallest_hanging_size(const Schedule& schedule,
                                                   std::uint64_t element_bytes,
                                                   std::uint64_t elements_max,
                                                   const SlotCounts& slots) {
  check_structure(schedule);
  const Network network(schedule, slots);
  const std::set<std::uint32_t> counts = distinct_counts(schedule);
  std::vector<std::uint32_t> pattern_before;
  for (const std::uint64_t chunk : chunk_sizes_that_matter(schedule, element_bytes)) {
    const std::uint64_t elements = smallest_elements_with_chunk(schedule, chunk);
    if (elements > elements_max) break;
    const Chunking chunking(schedule, elements, element_bytes);
    std::vector<std::uint32_t> pattern = transfer_pattern(chunking, counts);
    if (pattern == pattern_before) continue;
    pattern_before = std::move(pattern);
    if (agrees(network, chunking) && !find_stuck(network, chunking).empty()) return elements;
  }
  return std::nullopt;
}

}  // namespace towpath::collective
