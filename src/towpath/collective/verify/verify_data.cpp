// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "towpath/collective/verify/verify_checks.hpp"

// The final contents of the outputs. Every chunk of memory starts as a distinct *atom*: an input
// chunk, or the unknown contents of another. Copies copy, reductions add. The first run adds 128
// random bits per atom, so that equal sums have the same atoms with equal counts (a wrong one
// passes once in 2^128). It also digests the order of the additions. For a wrong sum, a second run
// keeps the atoms and describes the difference.

namespace towpath::collective {
namespace {

constexpr std::size_t kAtomsShown = 3;

// The contents of a chunk before the first step.
struct Atom {
  Buffer buffer = Buffer::input;
  int rank = 0;
  std::uint32_t chunk = 0;

  auto operator<=>(const Atom&) const = default;
};

// Represents sent elements that do not exist.
constexpr std::uint32_t kPastTheEnd = UINT32_MAX;

// --- two kinds of value ---------------------------------------------------------------------

using Sum = unsigned __int128;

// A well-mixed word (SplitMix64).
std::uint64_t mixed(std::uint64_t word) {
  word += 0x9E3779B97F4A7C15u;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
  return word ^ (word >> 31);
}

struct Sums {
  // A sum, and a digest of its tree of additions, in which a + b is b + a.
  struct Value {
    Sum total = 0;
    std::uint64_t order = 0;
  };
  static Value of(const Atom& atom) {
    const std::uint64_t place =
        (std::uint64_t{static_cast<std::uint32_t>(atom.rank)} << 32) | atom.chunk;
    const std::uint64_t high = mixed(mixed(place) + static_cast<std::uint64_t>(atom.buffer));
    return {(Sum{high} << 64) | mixed(high ^ mixed(~place)), high};
  }
  static Value add(const Value& a, const Value& b) {
    return {a.total + b.total, mixed(a.order + b.order)};
  }
};

struct Contributions {
  // Count of each atom in a sum, sorted by atom.
  using Counts = std::vector<std::pair<Atom, std::uint64_t>>;
  using Value = std::shared_ptr<const Counts>;
  static Value of(const Atom& atom) { return std::make_shared<const Counts>(Counts{{atom, 1}}); }
  static Value add(const Value& a, const Value& b) {
    Counts sum;
    sum.reserve(a->size() + b->size());
    for (auto left = a->begin(), right = b->begin(); left != a->end() || right != b->end();) {
      const bool takes_left =
          right == b->end() || (left != a->end() && left->first <= right->first);
      const bool takes_right =
          left == a->end() || (right != b->end() && right->first <= left->first);
      sum.emplace_back((takes_left ? left : right)->first, 0);
      if (takes_left) sum.back().second += (left++)->second;
      if (takes_right) sum.back().second += (right++)->second;
    }
    return std::make_shared<const Counts>(std::move(sum));
  }
};

bool contains(const Contributions::Counts& counts, const Atom& atom) {
  const auto found =
      std::lower_bound(counts.begin(), counts.end(), atom,
                       [](const auto& count, const Atom& sought) { return count.first < sought; });
  return found != counts.end() && found->first == atom;
}

// --- the run ---------------------------------------------------------------------------------

template <typename Kind>
class DataRun : public Visitor {
 public:
  using Value = typename Kind::Value;

  // The first `begun` chunks of each part have elements.
  DataRun(const Network& network, const CellGrid& grid, const Memory& memory, const Extent& extent,
          std::uint32_t begun)
      : network_(network),
        grid_(grid),
        memory_(memory),
        chunks_per_part_(extent.chunks_per_part),
        begun_(begun),
        values_(memory.cells()),
        in_flight_(network.connections.size()) {
    // The input last: in place it shares its memory with the output.
    for (int rank = 0; rank < network.schedule.rank_count(); ++rank) {
      for (const Buffer buffer : {Buffer::output, Buffer::scratch, Buffer::input}) {
        const std::uint32_t chunks = chunks_in(network.schedule, rank, buffer);
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) fill({buffer, rank, chunk});
      }
    }
  }

  const Value& value(std::size_t cell) const { return values_[cell]; }
  bool exists(Buffer buffer, std::uint32_t chunk) const {
    return buffer == Buffer::scratch || begun_ == chunks_per_part_ ||
           chunk % chunks_per_part_ < begun_;
  }

  void on_slice(const SliceEvent& event) {
    if (event.access != nullptr) return move_directly(event);
    const Step& step = *event.step;
    const int rank = network_.blocks[event.block].rank;
    const std::size_t source =
        reads_source(step.type) ? memory_.cell(rank, step.source, step.source_chunk) : 0;
    const std::size_t destination =
        writes_destination(step.type) ? memory_.cell(rank, step.destination, step.destination_chunk)
                                      : 0;
    for (std::uint32_t i = event.first_cell; i < event.first_cell + event.cells; ++i) {
      const bool is_whole = exists_at(step, i / memory_.cells_per_chunk());
      Value value = operand(event, source + i, destination + i);
      if (!is_whole) value = Kind::of({Buffer::scratch, rank, kPastTheEnd});
      if (event.outgoing != kNone) queue(event.outgoing).push(value);
      if (is_whole && writes_destination(step.type)) values_[destination + i] = std::move(value);
    }
  }

 private:
  void fill(const Atom& atom) {
    const std::size_t first = memory_.cell(atom.rank, atom.buffer, atom.chunk);
    for (std::uint32_t i = 0; i < memory_.cells_per_chunk(); ++i) {
      values_[first + i] = Kind::of(atom);
    }
  }

  // Stores the sum of the sources, cell by cell, to every destination.
  void move_directly(const SliceEvent& event) {
    const Access& access = *event.access;
    const int own = network_.blocks[event.block].rank;
    const CellSpan span = grid_.span(access.sources.front(), *event.step, event.piece);
    std::vector<Value> values(span.cells);
    for (std::uint32_t i = 0; i < span.cells; ++i) {
      bool is_first = true;
      for_each_cell(event, access.sources, own, i, [&](std::size_t cell) {
        values[i] = is_first ? values_[cell] : Kind::add(values[i], values_[cell]);
        is_first = false;
      });
    }
    for (std::uint32_t i = 0; i < span.cells; ++i) {
      if (!all_exist(event, (span.first + i) / memory_.cells_per_chunk())) continue;
      for_each_cell(event, access.destinations, own, i,
                    [&](std::size_t cell) { values_[cell] = values[i]; });
    }
  }

  // Calls visit(cell) for the i-th cell of each operand, at each of its ranks.
  template <typename Visit>
  void for_each_cell(const SliceEvent& event, const std::vector<Operand>& operands, int own,
                     std::uint32_t i, const Visit& visit) const {
    for (const Operand& operand : operands) {
      const std::uint32_t first = grid_.span(operand, *event.step, event.piece).first;
      for (const int rank : ranks_of(network_.schedule, own, operand)) {
        visit(memory_.cell(rank, operand, false) + first + i);
      }
    }
  }

  // True if chunk `offset` of all operands has elements.
  bool all_exist(const SliceEvent& event, std::uint32_t offset) const {
    const auto does = [&](const Operand& operand) {
      return exists(operand.buffer, operand.chunk + offset);
    };
    const Access& access = *event.access;
    return std::all_of(access.sources.begin(), access.sources.end(), does) &&
           std::all_of(access.destinations.begin(), access.destinations.end(), does);
  }

  // True if chunk `offset` of all ranges of the step has elements.
  bool exists_at(const Step& step, std::uint32_t offset) const {
    return (!reads_source(step.type) || exists(step.source, step.source_chunk + offset)) &&
           (!writes_destination(step.type) ||
            exists(step.destination, step.destination_chunk + offset));
  }

  // The step's result for one cell of its operands.
  Value operand(const SliceEvent& event, std::size_t source, std::size_t destination) {
    const Step& step = *event.step;
    if (step.type == StepType::reduce) return Kind::add(values_[destination], values_[source]);
    if (event.incoming == kNone) return values_[source];
    Value value = queue(event.incoming).pop();
    return reads_source(step.type) ? Kind::add(value, values_[source]) : value;
  }

  Queue<Value>& queue(std::int32_t connection) {
    return in_flight_[static_cast<std::size_t>(connection)];
  }

  const Network& network_;
  const CellGrid& grid_;
  const Memory& memory_;
  std::uint32_t chunks_per_part_;
  std::uint32_t begun_;
  std::vector<Value> values_;            // per cell
  std::vector<Queue<Value>> in_flight_;  // per connection
};

// --- what is asked for -----------------------------------------------------------------------

struct Expected {
  bool is_any = false;  // unspecified by the collective
  int rank = kNone;     // the owner of the input chunk; kNone: the sum over all ranks
  std::uint32_t chunk = 0;
};

Expected expected_at(const Schedule& schedule, int rank, std::uint32_t chunk) {
  const std::uint32_t per_part =
      schedule.chunks / static_cast<std::uint32_t>(schedule.rank_count());
  const std::uint32_t own_part = static_cast<std::uint32_t>(rank) * per_part;
  const auto ranks = static_cast<std::uint32_t>(schedule.rank_count());
  const auto& pattern = schedule.pattern;
  switch (schedule.collective) {
    case Collective::all_reduce:
    case Collective::barrier: return {false, kNone, chunk};
    case Collective::reduce_scatter: return {false, kNone, own_part + chunk};
    case Collective::reduce: return {rank != schedule.root, kNone, chunk};
    case Collective::broadcast: return {false, schedule.root, chunk};
    case Collective::all_gather:
      return {false, static_cast<int>(chunk / per_part), chunk % per_part};
    case Collective::all_to_all:
      return {false, static_cast<int>(chunk / per_part), own_part + chunk % per_part};
    case Collective::gather:
      return {rank != schedule.root, static_cast<int>(chunk / per_part), chunk % per_part};
    case Collective::scatter: return {false, schedule.root, own_part + chunk};
    case Collective::all_to_all_v: {
      const std::uint32_t sender = chunk / per_part;
      const bool is_sent =
          chunk % per_part < pattern[sender * ranks + static_cast<std::uint32_t>(rank)];
      return {!is_sent, static_cast<int>(sender), own_part + chunk % per_part};
    }
    case Collective::send_recv: {
      const auto sender = std::ranges::find(pattern, static_cast<std::uint32_t>(rank));
      return {false, static_cast<int>(sender - pattern.begin()), chunk};
    }
  }
  return {};
}

Contributions::Counts expected_counts(const Schedule& schedule, const Expected& expected) {
  Contributions::Counts counts;
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    if (expected.rank == kNone || expected.rank == rank) {
      counts.push_back({{Buffer::input, rank, expected.chunk}, 1});
    }
  }
  return counts;
}

// --- what is wrong, in words -----------------------------------------------------------------

std::string join(const std::vector<std::string>& words) {
  std::string text;
  const std::size_t shown = std::min(words.size(), kAtomsShown);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + words[i];
  if (words.size() > shown) text += fmt::format(" and {} more", words.size() - shown);
  return text;
}

std::string describe_atom(const Atom& atom) {
  if (atom.chunk == kPastTheEnd) {
    return fmt::format("elements past the end of a ragged chunk of rank {}", atom.rank);
  }
  return fmt::format("{} chunk {} of rank {}", name_of(atom.buffer), atom.chunk, atom.rank);
}

// "lacks input chunk 1 of rank 2; has what was in scratch chunk 0 of rank 1 before"
std::string describe_difference(const Contributions::Counts& expected,
                                const Contributions::Counts& found) {
  std::vector<std::string> missing, repeated, foreign, uninitialised;
  for (const auto& [atom, count] : expected) {
    if (!contains(found, atom)) missing.push_back(describe_atom(atom));
  }
  for (const auto& [atom, count] : found) {
    if (atom.buffer != Buffer::input) {
      uninitialised.push_back(describe_atom(atom));
    } else if (!contains(expected, atom)) {
      foreign.push_back(describe_atom(atom));
    } else if (count > 1) {
      repeated.push_back(fmt::format("{} {} times", describe_atom(atom), count));
    }
  }
  std::string text;
  const auto add = [&](const char* verb, const std::vector<std::string>& words, const char* end) {
    if (words.empty()) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", verb, join(words), end);
  };
  add("lacks", missing, "");
  add("has", repeated, "");
  add("has", foreign, ", which do not belong there");
  add("has uninitialised", uninitialised, "");
  return text;
}

struct WrongOutput {
  int rank = kNone;
  std::uint32_t chunk = 0;
  std::size_t cell = 0;
};

// The last steps that stored to some cells.
class LastStores : public Visitor {
 public:
  LastStores(const Network& network, const CellGrid& grid, const Memory& memory,
             const std::vector<WrongOutput>& wrong)
      : network_(network), grid_(grid), memory_(memory) {
    for (const WrongOutput& output : wrong) last_[output.cell] = {kNone, kNone};
  }
  void on_slice(const SliceEvent& event) {
    const Network::Block& block = network_.blocks[event.block];
    if (event.access != nullptr) {
      for (const Operand& operand : event.access->destinations) {
        const CellSpan span = grid_.span(operand, *event.step, event.piece);
        for (const int rank : ranks_of(network_.schedule, block.rank, operand)) {
          note(event, memory_.cell(rank, operand, false) + span.first, span.cells);
        }
      }
    } else if (writes_destination(event.step->type)) {
      const Step& step = *event.step;
      note(event,
           memory_.cell(block.rank, step.destination, step.destination_chunk) + event.first_cell,
           event.cells);
    }
  }
  // Thread block of the network and step; kNone twice if there is none.
  std::pair<int, int> at(std::size_t cell) const { return last_.at(cell); }

 private:
  void note(const SliceEvent& event, std::size_t first, std::uint32_t cells) {
    for (auto at = last_.lower_bound(first); at != last_.end() && at->first < first + cells; ++at) {
      at->second = {static_cast<int>(event.block), static_cast<int>(event.step_number)};
    }
  }

  const Network& network_;
  const CellGrid& grid_;
  const Memory& memory_;
  std::map<std::size_t, std::pair<int, int>> last_;
};

// --- one run and its explanation -------------------------------------------------------------

// The elements of its chunks that a run represents.
struct Elements {
  std::uint32_t begun = 0;  // number of chunks of a part that have them
  const char* words = "";
};

class DataCheck {
 public:
  DataCheck(const Network& network, const Chunking& chunking, Placement placement,
            FindingList& findings)
      : network_(network),
        chunking_(chunking),
        placement_(placement),
        findings_(findings),
        extent_(network.schedule, chunking),
        grid_(network.schedule, chunking),
        memory_(network.schedule, placement.in_place, grid_.per_chunk()) {
    totals_.resize(network.schedule.chunks, 0);
    for (int rank = 0; rank < network.schedule.rank_count(); ++rank) {
      const std::uint32_t chunks = chunks_in(network.schedule, rank, Buffer::input);
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        totals_[chunk] += Sums::of({Buffer::input, rank, chunk}).total;
      }
    }
  }

  // The first elements of all chunks behave alike, and so do the elements past the ragged chunk's
  // end.
  void run() {
    check({extent_.begun(), ""});
    if (extent_.ragged_elements > 0) {
      check({extent_.whole, ", in elements that the ragged last chunk lacks"});
    }
  }

 private:
  void check(const Elements& elements) {
    std::vector<WrongOutput> wrong;
    {
      DataRun<Sums> sums(network_, grid_, memory_, extent_, elements.begun);
      walk(network_, chunking_, sums);
      wrong = wrong_outputs(sums);
      if (wrong.empty()) compare_orders(sums);
    }
    if (findings_.is_full(FindingKind::wrong_data)) {
      findings_.omit(FindingKind::wrong_data, wrong.size());
    } else if (!wrong.empty()) {
      explain(wrong, elements);
    }
  }

  std::vector<WrongOutput> wrong_outputs(const DataRun<Sums>& sums) const {
    std::vector<WrongOutput> wrong;
    for (int rank = 0; rank < network_.schedule.rank_count(); ++rank) {
      const std::uint32_t chunks = chunks_in(network_.schedule, rank, Buffer::output);
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const Expected expected = expected_at(network_.schedule, rank, chunk);
        if (expected.is_any || !sums.exists(Buffer::output, chunk)) continue;
        const Sum sum = expected.rank == kNone
                            ? totals_[expected.chunk]
                            : Sums::of({Buffer::input, expected.rank, expected.chunk}).total;
        const std::size_t first = memory_.cell(rank, Buffer::output, chunk);
        for (std::uint32_t i = 0; i < memory_.cells_per_chunk(); ++i) {
          if (sums.value(first + i).total == sum) continue;
          wrong.push_back({rank, chunk, first + i});
          break;
        }
      }
    }
    return wrong;
  }

  // Every rank of an all_reduce has the same sums. Floating-point sums have the same bits only if
  // they are added in the same order.
  void compare_orders(const DataRun<Sums>& sums) {
    if (network_.schedule.collective != Collective::all_reduce) return;
    for (std::uint32_t chunk = 0; chunk < network_.schedule.chunks; ++chunk) {
      if (!sums.exists(Buffer::output, chunk)) continue;
      for (int rank = 1; rank < network_.schedule.rank_count(); ++rank) {
        for (std::uint32_t i = 0; i < memory_.cells_per_chunk(); ++i) {
          const auto order_at = [&](int at) {
            return sums.value(memory_.cell(at, Buffer::output, chunk) + i).order;
          };
          if (order_at(rank) == order_at(0)) continue;
          findings_.remark(
              fmt::format("ranks 0 and {} add the contributions to output chunk {} in different "
                          "orders; floating-point results differ between ranks in their last bits",
                          rank, chunk));
          return;
        }
      }
    }
  }

  void explain(const std::vector<WrongOutput>& wrong, const Elements& elements) {
    DataRun<Contributions> contributions(network_, grid_, memory_, extent_, elements.begun);
    walk(network_, chunking_, contributions);
    LastStores last_stores(network_, grid_, memory_, wrong);
    walk(network_, chunking_, last_stores);
    const std::size_t shown = std::min(wrong.size(), kFindingsShown);
    findings_.omit(FindingKind::wrong_data, wrong.size() - shown);
    for (const WrongOutput& output : std::span(wrong).first(shown)) {
      const auto [block, step] = last_stores.at(output.cell);
      const Expected expected = expected_at(network_.schedule, output.rank, output.chunk);
      Finding finding{
          FindingKind::wrong_data,
          fmt::format("wrong data: rank {} output chunk {} {}", output.rank, output.chunk,
                      describe_difference(expected_counts(network_.schedule, expected),
                                          *contributions.value(output.cell))),
          output.rank,
          kNone,
          kNone,
          step,
          kNone,
          kNone,
          kNone};
      if (block == kNone) {
        finding.sentence += "; no step stores to it";
      } else {
        const Network::Block& last = network_.blocks[static_cast<std::size_t>(block)];
        finding.block = last.number;
        finding.channel = last.program->channel;
        finding.sentence +=
            "; last stored to by " + describe_step(network_.schedule, last.rank, last.number, step);
      }
      findings_.add(std::move(finding), elements.words + std::string(placement_.words()));
    }
  }

  const Network& network_;
  const Chunking& chunking_;
  Placement placement_;
  FindingList& findings_;
  Extent extent_;
  CellGrid grid_;
  Memory memory_;
  std::vector<Sum> totals_;  // per input chunk, over all ranks
};

}  // namespace

void check_data(const Network& network, const Chunking& chunking, Placement placement,
                FindingList& findings) {
  DataCheck(network, chunking, placement, findings).run();
}

}  // namespace towpath::collective
