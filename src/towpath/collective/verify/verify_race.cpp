// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "towpath/causality/access_history.hpp"
#include "towpath/collective/verify/verify_checks.hpp"

// Race detection by vector clocks, as in FastTrack: an access carries the time of its thread block.
// A later one is ordered after it if its clock has reached that time. Clocks travel with slices and
// along dependencies, not with freed slots. Memory belongs to a rank, so only thread blocks that
// share a chunk with another of their rank, with at least one store, need a time. Rings over
// thousands of ranks need none. Order by dependencies within a rank needs no clocks from other
// ranks: a first pass does without them, and only ranks with unordered accesses are checked again
// with all clocks.

namespace towpath::collective {
namespace {

using causality::AccessHistory;
using causality::ClockPool;
using causality::TimedAccess;

// Limits of the clock words that a check copies and holds: some seconds and 2 GB.
constexpr std::uint64_t kClockWordsCopiedMax = 4'000'000'000;
constexpr std::uint64_t kClockWordsHeldMax = 500'000'000;

struct Accesses {
  bool reads = false;
  bool writes = false;
};

// Calls visit(buffer, chunk, Accesses) for each range of step.count chunks that `step` accesses. A
// reduction's read of its destination counts as part of its store.
template <typename Visit>
void for_each_range(const Step& step, Visit&& visit) {
  if (reads_source(step.type)) visit(step.source, step.source_chunk, Accesses{true, false});
  if (writes_destination(step.type)) {
    visit(step.destination, step.destination_chunk, Accesses{false, true});
  }
}

// The chunks that several thread blocks of a rank access, at least one with a store.
class SharedChunks {
 public:
  SharedChunks(const Network& network, const Memory& chunks)
      : shared_(chunks.cells(), kNone),
        chunks(chunks),
        is_sharing(network.blocks.size() + network.schedule.ranks.size(), false) {
    std::vector<Use> uses(chunks.cells());
    for_each_chunk(network, chunks, [&](std::uint32_t block, std::size_t chunk, Accesses accesses) {
      Use& use = uses[chunk];
      if (use.block == kNone) use.block = static_cast<std::int32_t>(block);
      use.is_shared |= use.block != static_cast<std::int32_t>(block);
      use.is_written |= accesses.writes;
    });
    for_each_chunk(network, chunks, [&](std::uint32_t block, std::size_t chunk, Accesses) {
      if (!uses[chunk].is_shared || !uses[chunk].is_written) return;
      if (shared_[chunk] == kNone) shared_[chunk] = count++;
      is_sharing[block] = true;
    });
  }

  // The number of a chunk among the shared ones, or kNone.
  std::int32_t number_of(std::size_t chunk) const { return shared_[chunk]; }

 private:
  struct Use {
    std::int32_t block = kNone;
    bool is_shared = false;
    bool is_written = false;
  };

  // Chunks of direct steps as a whole, and of the user of input and output, who may store to both
  // between two invocations.
  template <typename Visit>
  static void for_each_direct_chunk(const Network& network, const Memory& chunks, Visit&& visit) {
    const Schedule& schedule = network.schedule;
    for (std::uint32_t b = 0; b < network.blocks.size(); ++b) {
      const Network::Block& block = network.blocks[b];
      for (const Step& step : block.program->steps) {
        if (step.type != StepType::direct) continue;
        const Access& access = block.program->access(step);
        for (const auto* operands : {&access.sources, &access.destinations}) {
          for (const Operand& operand : *operands) {
            for (const int rank : ranks_of(schedule, block.rank, operand)) {
              for (const bool is_second : {false, true}) {
                if (is_second && !schedule.has_double_scratch) continue;
                const std::size_t first = chunks.cell(rank, operand, is_second);
                const Accesses accesses{operands == &access.sources,
                                        operands == &access.destinations};
                for (std::uint32_t i = 0; i < step.count; ++i) visit(b, first + i, accesses);
              }
            }
          }
        }
      }
    }
    for (int rank = 0; rank < schedule.rank_count(); ++rank) {
      const auto user =
          static_cast<std::uint32_t>(network.blocks.size()) + static_cast<std::uint32_t>(rank);
      for (const Buffer buffer : {Buffer::input, Buffer::output}) {
        for (std::uint32_t chunk = 0; chunk < chunks_in(schedule, rank, buffer); ++chunk) {
          visit(user, chunks.cell(rank, buffer, chunk), Accesses{false, true});
        }
      }
    }
  }

  template <typename Visit>
  static void for_each_chunk(const Network& network, const Memory& chunks, Visit&& visit) {
    if (network.is_one_sided()) for_each_direct_chunk(network, chunks, visit);
    for (std::uint32_t b = 0; b < network.blocks.size(); ++b) {
      for (const Step& step : network.blocks[b].program->steps) {
        for_each_range(step, [&](Buffer buffer, std::uint32_t chunk, Accesses accesses) {
          const std::size_t first = chunks.cell(network.blocks[b].rank, buffer, chunk);
          for (std::uint32_t i = 0; i < step.count; ++i) visit(b, first + i, accesses);
        });
      }
    }
  }

  std::vector<std::int32_t> shared_;  // per chunk

 public:
  const Memory& chunks;  // numbering of all chunks, shared or not
  std::int32_t count = 0;
  std::vector<bool> is_sharing;  // per block, then per rank for the user of its buffers
};

enum class Reach : std::uint8_t { rank, everywhere };  // range of clocks

class RaceCheck : public Visitor {
 public:
  // Checks only the ranks in `suspects`.
  RaceCheck(const Network& network, const Chunking& chunking, const SharedChunks& shared,
            const std::vector<bool>& suspects, Reach reach)
      : network_(network),
        chunking_(chunking),
        chunks_(shared.chunks),
        shared_(shared),
        reach_(reach),
        grid_(network.schedule, chunking),
        extent_(network.schedule, chunking),
        cells_per_chunk_(grid_.per_chunk()),
        cell_elements_((chunking.nominal(1, 0) + cells_per_chunk_ - 1) / cells_per_chunk_),
        invocations_(!network.is_one_sided()               ? 1
                     : network.schedule.has_double_scratch ? 3
                                                           : 2),
        own_(network.blocks.size() + network.schedule.ranks.size(), kNone),
        races_(suspects.size(), false) {
    std::uint32_t place = 0;
    int rank = kNone;
    for (std::size_t b = 0; b < own_.size(); ++b) {
      if (reach == Reach::rank && rank_of(b) != rank) place = 0;
      rank = rank_of(b);
      if (!shared.is_sharing[b] || !suspects[static_cast<std::size_t>(rank)]) continue;
      own_[b] = static_cast<std::int32_t>(place++);
      clock_length_ = std::max<std::size_t>(clock_length_, place);
    }
    note_dependencies();
  }

  // True if its clocks are within the limits.
  bool is_feasible() const {
    const std::uint64_t slices =
        step_count(network_.schedule) * cells_per_chunk_ * static_cast<std::uint64_t>(invocations_);
    std::uint64_t in_flight = 0;
    if (reach_ == Reach::everywhere) {
      for (const Network::Connection& connection : network_.connections) {
        in_flight += connection.slots;
      }
    }
    // Usually not all signals are in flight at once, but all may be.
    const std::uint64_t raised = network_.is_one_sided() ? slices : 0;
    const std::uint64_t held = own_.size() + depended_.size() + in_flight + raised;
    return slices * clock_length_ <= kClockWordsCopiedMax &&
           held * clock_length_ <= kClockWordsHeldMax;
  }

  // Returns the ranks with races, and adds the races to `findings`, if given.
  std::vector<bool> run(FindingList* findings, Placement placement) {
    findings_ = findings;
    placement_ = placement;
    clocks_.resize(own_.size() * clock_length_, 0);
    pool_ = ClockPool(clock_length_);
    histories_.resize(static_cast<std::size_t>(shared_.count) * cells_per_chunk_);
    if (reach_ == Reach::everywhere) in_flight_.resize(network_.connections.size());
    for (std::size_t b = 0; b < own_.size(); ++b) tick(b);
    for (int rank = 0; network_.is_one_sided() && rank < network_.schedule.rank_count(); ++rank) {
      let_user_in(rank);
    }
    walk(network_, chunking_, *this, invocations_);
    return races_;
  }

  void on_raise(std::uint32_t block, std::uint32_t counter, std::uint64_t n) {
    const auto [raised, is_new] = raised_.emplace(std::pair(counter, n), 0);
    if (is_new) {
      raised->second = pool_.copy_of(clock_of(block));
    } else {
      pool_.join(pool_.at(raised->second), clock_of(block));
    }
    tick(block);
  }

  void on_take(std::uint32_t block, std::uint32_t counter, std::uint64_t n) {
    pool_.join(clock_of(block), pool_.at(raised_.at({counter, n})));
  }

  void on_invocation_end(int rank, int) {
    if (!network_.is_one_sided()) return;
    ++invocation_[static_cast<std::size_t>(rank)];
    std::uint32_t* user = clock_of(user_of(rank));
    for_each_block(rank, [&](std::uint32_t block) { pool_.join(user, clock_of(block)); });
    let_user_in(rank);
  }

  void on_slice(const SliceEvent& event) {
    if (event.access != nullptr) return record_direct(event);
    std::uint32_t* clock = clock_of(event.block);
    const bool travels = reach_ == Reach::everywhere;
    if (travels && event.incoming != kNone) {
      const std::uint32_t number = in_flight_[static_cast<std::size_t>(event.incoming)].pop();
      pool_.join(clock, pool_.at(number));
      pool_.release(number);
    }
    if (own_[event.block] != kNone) record(event);
    if (travels && event.outgoing != kNone) {
      in_flight_[static_cast<std::size_t>(event.outgoing)].push(pool_.copy_of(clock));
      tick(event.block);
    }
  }

  void on_dependency(std::uint32_t block, std::uint32_t on_block, std::uint32_t on_step) {
    pool_.join(clock_of(block), pool_.at(depended_.at(key(on_block, on_step))));
  }

  void on_completion(std::uint32_t block, std::uint32_t step) {
    if (!network_.blocks[block].program->steps[step].publishes) return;
    const auto found = depended_.find(key(block, step));
    if (found == depended_.end()) return;
    found->second = pool_.copy_of(clock_of(block));
    tick(block);
  }

 private:
  struct Chunk {
    Buffer buffer;
    std::uint32_t number;
    int holder = kNone;  // the owner of the memory, if a direct step accesses it
  };
  static std::uint64_t key(std::uint32_t block, std::uint32_t step) {
    return (std::uint64_t{block} << 32) | step;
  }

  void note_dependencies() {
    for (const Network::Block& block : network_.blocks) {
      for (const Step& step : block.program->steps) {
        if (step.depends_on_block == kNone) continue;
        depended_[key(network_.block_of(block.rank, step.depends_on_block),
                      static_cast<std::uint32_t>(step.depends_on_step))] = 0;
      }
    }
  }

  int rank_of(std::size_t block) const {
    const std::size_t blocks = network_.blocks.size();
    return block < blocks ? network_.blocks[block].rank : static_cast<int>(block - blocks);
  }

  // The user of a rank's buffers, as one more thread block.
  std::uint32_t user_of(int rank) const {
    return static_cast<std::uint32_t>(network_.blocks.size()) + static_cast<std::uint32_t>(rank);
  }

  template <typename Visit>
  void for_each_block(int rank, const Visit& visit) const {
    const auto at = static_cast<std::size_t>(rank);
    for (std::uint32_t b = network_.first_block[at]; b < network_.first_block[at + 1]; ++b)
      visit(b);
  }

  // Between two invocations the user may store to input and output, and read both.
  void let_user_in(int rank) {
    const std::uint32_t user = user_of(rank);
    if (own_[user] != kNone) {
      const SliceEvent event{user};
      for (const Buffer buffer : {Buffer::input, Buffer::output}) {
        const std::uint32_t chunks = chunks_in(network_.schedule, rank, buffer);
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
          const std::int32_t number = shared_.number_of(chunks_.cell(rank, buffer, chunk));
          if (number == kNone) continue;
          for (std::uint32_t cell = 0; cell < cells_per_chunk_; ++cell) {
            access(event, history_of(number, cell), {buffer, chunk}, true);
          }
        }
      }
      tick(user);
    }
    for_each_block(rank, [&](std::uint32_t block) { pool_.join(clock_of(block), clock_of(user)); });
  }

  AccessHistory& history_of(std::int32_t number, std::uint32_t cell) {
    return histories_[static_cast<std::size_t>(number) * cells_per_chunk_ + cell];
  }

  void record_direct(const SliceEvent& event) {
    if (own_[event.block] == kNone) return;
    const Access& access = *event.access;
    const int own = network_.blocks[event.block].rank;
    const bool is_second = walked_invocation(own) % 2 == 1 && network_.schedule.has_double_scratch;
    for (const auto* operands : {&access.sources, &access.destinations}) {
      for (const Operand& operand : *operands) {
        const CellSpan span = grid_.span(operand, *event.step, event.piece);
        for (const int rank : ranks_of(network_.schedule, own, operand)) {
          const std::size_t base = chunks_.cell(rank, operand, is_second);
          for (std::uint32_t i = span.first; i < span.first + span.cells; ++i) {
            const std::uint32_t offset = i / cells_per_chunk_;
            const std::int32_t number = shared_.number_of(base + offset);
            if (number == kNone || !all_exist(event, offset)) continue;
            this->access(event, history_of(number, i % cells_per_chunk_),
                         {operand.buffer, operand.chunk + offset, rank},
                         operands == &access.destinations);
          }
        }
      }
    }
  }

  bool all_exist(const SliceEvent& event, std::uint32_t offset) const {
    const auto does = [&](const Operand& operand) {
      const std::uint32_t chunk = (operand.chunk + offset) % extent_.chunks_per_part;
      return operand.buffer == Buffer::scratch || chunk < extent_.begun();
    };
    const Access& access = *event.access;
    return std::all_of(access.sources.begin(), access.sources.end(), does) &&
           std::all_of(access.destinations.begin(), access.destinations.end(), does);
  }

  int walked_invocation(int rank) const { return invocation_[static_cast<std::size_t>(rank)]; }

  std::uint32_t* clock_of(std::size_t block) { return clocks_.data() + block * clock_length_; }

  void tick(std::size_t block) {
    if (own_[block] != kNone) ++clock_of(block)[own_[block]];
  }

  bool exists(Buffer buffer, std::uint32_t chunk, std::uint32_t cell) const {
    if (buffer == Buffer::scratch) return true;
    const std::uint32_t in_part = chunk % extent_.chunks_per_part;
    if (in_part != extent_.whole) return in_part < extent_.whole;
    return extent_.ragged_elements > cell * cell_elements_;
  }

  void record(const SliceEvent& event) {
    for (std::uint32_t i = event.first_cell; i < event.first_cell + event.cells; ++i) {
      record_cell(event, i / cells_per_chunk_, i % cells_per_chunk_);
    }
  }

  // If a gather works in place, its copy of the part of the rank stores the same values again.
  bool is_copy_onto_itself(const Step& step, int rank) const {
    return step.type == StepType::copy &&
           chunks_.cell(rank, step.source, step.source_chunk) ==
               chunks_.cell(rank, step.destination, step.destination_chunk);
  }

  // Chunk `offset` of the step's ranges.
  void record_cell(const SliceEvent& event, std::uint32_t offset, std::uint32_t cell) {
    bool is_whole = true;
    for_each_range(*event.step, [&](Buffer buffer, std::uint32_t first, Accesses) {
      is_whole = is_whole && exists(buffer, first + offset, cell);
    });
    const int rank = network_.blocks[event.block].rank;
    if (!is_whole || is_copy_onto_itself(*event.step, rank)) return;
    for_each_range(*event.step, [&](Buffer buffer, std::uint32_t first, Accesses accesses) {
      const std::int32_t number = shared_.number_of(chunks_.cell(rank, buffer, first + offset));
      if (number == kNone) return;
      access(event, history_of(number, cell), {buffer, first + offset}, accesses.writes);
    });
  }

  TimedAccess access_now(const SliceEvent& event) {
    return {static_cast<std::int32_t>(event.block), clock_of(event.block)[own_[event.block]],
            event.step_number};
  }

  void access(const SliceEvent& event, AccessHistory& history, Chunk chunk, bool stores) {
    const std::uint32_t* const clock = clock_of(event.block);
    const auto is_ordered = [&](const TimedAccess& earlier) {
      return earlier.time <= clock[own_[static_cast<std::size_t>(earlier.agent)]];
    };
    const auto unordered = [&](const TimedAccess& earlier, bool earlier_stores) {
      report(event, stores, earlier, earlier_stores, chunk);
    };
    if (stores) {
      history.store(access_now(event), is_ordered, unordered);
    } else {
      history.load(access_now(event), is_ordered, unordered);
    }
  }

  std::string place_of(std::uint32_t block, int step) const {
    if (block >= network_.blocks.size()) {
      return fmt::format("the user of rank {}'s buffers before and after the call", rank_of(block));
    }
    const Network::Block& at = network_.blocks[block];
    return describe_step(network_.schedule, at.rank, at.number, step);
  }

  static const char* verb(bool is_store) { return is_store ? "stores to" : "reads"; }

  void report(const SliceEvent& event, bool stores, const TimedAccess& other, bool other_stores,
              Chunk chunk) {
    const bool is_user = event.block >= network_.blocks.size();
    const auto other_number = static_cast<std::uint32_t>(other.agent);
    // If one access is the user's, the message names the step first.
    const std::uint32_t first = is_user ? other_number : event.block;
    const int step = static_cast<int>(is_user ? other.step : event.step_number);
    const std::uint32_t second = is_user ? event.block : other_number;
    const int other_step = static_cast<int>(is_user ? event.step_number : other.step);
    if (is_user) std::swap(stores, other_stores);
    const int holder = is_user && chunk.holder == kNone ? rank_of(event.block) : chunk.holder;
    races_[static_cast<std::size_t>(rank_of(first))] = true;
    if (findings_ == nullptr) return;
    if (findings_->is_full(FindingKind::race)) return findings_->omit(FindingKind::race, 1);
    const bool is_second_user = second >= network_.blocks.size();
    const Network::Block& block = network_.blocks[first];
    const std::string where =
        holder == kNone || holder == block.rank ? "" : fmt::format(" of rank {}", holder);
    findings_->add(
        {FindingKind::race,
         fmt::format("race: {} {} {} chunk {}{}, and nothing orders it with {}, which {} the same "
                     "memory",
                     place_of(first, step), verb(stores), name_of(chunk.buffer), chunk.number,
                     where, place_of(second, other_step),
                     is_second_user ? "may touch" : verb(other_stores)),
         block.rank, block.number, block.program->channel, step, rank_of(second),
         is_second_user ? kNone : network_.blocks[second].number,
         is_second_user ? kNone : other_step},
        placement_.words());
  }

  const Network& network_;
  const Chunking& chunking_;
  const Memory& chunks_;
  const SharedChunks& shared_;
  Reach reach_;
  CellGrid grid_;
  Extent extent_;
  std::uint32_t cells_per_chunk_;
  std::uint64_t cell_elements_;  // in a chunk's first cell
  std::size_t clock_length_ = 0;
  int invocations_;
  std::vector<int> invocation_ = std::vector<int>(network_.schedule.ranks.size(), 0);  // per rank
  std::vector<std::int32_t> own_;  // per block and user: its index in a clock, or kNone
  std::vector<bool> races_;        // per rank
  FindingList* findings_ = nullptr;
  Placement placement_;
  std::vector<std::uint32_t> clocks_;  // per block
  ClockPool pool_{0};
  std::vector<Queue<std::uint32_t>> in_flight_;  // per connection: a clock with each slice
  std::unordered_map<std::uint64_t, std::uint32_t> depended_;  // step depended on -> its clock
  // (counter, n-th raise) -> merged clock of the raisers
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> raised_;
  std::vector<AccessHistory> histories_;  // per cell of the shared chunks
};

std::string chunk_words(std::uint32_t first, std::uint32_t count) {
  if (count == 1) return fmt::format("chunk {}", first);
  return fmt::format("chunks {} to {}", first, first + count - 1);
}

// A step with overlapping but different source and destination reads data that it has already
// stored, or not, depending on the order.
void check_overlaps(const Network& network, const Memory& chunks, Placement placement,
                    FindingList& findings) {
  for (const Network::Block& block : network.blocks) {
    const Steps& steps = block.program->steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const Step& step = steps[s];
      if (!reads_source(step.type) || !writes_destination(step.type)) continue;
      const std::size_t source = chunks.cell(block.rank, step.source, step.source_chunk);
      const std::size_t destination =
          chunks.cell(block.rank, step.destination, step.destination_chunk);
      if (source == destination || source >= destination + step.count ||
          destination >= source + step.count) {
        continue;
      }
      const int number = static_cast<int>(s);
      findings.add(
          {FindingKind::race,
           fmt::format("race: {} reads {} {} and stores to {} {}, which overlap",
                       describe_step(network.schedule, block.rank, block.number, number),
                       name_of(step.source), chunk_words(step.source_chunk, step.count),
                       name_of(step.destination), chunk_words(step.destination_chunk, step.count)),
           block.rank, block.number, block.program->channel, number, block.rank, block.number,
           number},
          placement.words());
    }
  }
}

}  // namespace

void check_races(const Network& network, const Chunking& chunking, Placement placement,
                 FindingList& findings, Verdict& verdict) {
  const Memory chunks(network.schedule, placement.in_place, 1);
  check_overlaps(network, chunks, placement, findings);
  const SharedChunks shared(network, chunks);
  if (shared.count == 0) return;
  std::vector<bool> suspects(network.schedule.ranks.size(), true);
  // If other ranks reach a rank's memory, an order within ranks is not sufficient.
  if (!network.is_one_sided()) {
    RaceCheck within_ranks(network, chunking, shared, suspects, Reach::rank);
    if (within_ranks.is_feasible()) suspects = within_ranks.run(nullptr, placement);
    if (std::find(suspects.begin(), suspects.end(), true) == suspects.end()) return;
  }
  RaceCheck check(network, chunking, shared, suspects, Reach::everywhere);
  if (check.is_feasible()) {
    check.run(&findings, placement);
  } else {
    verdict.not_checked.push_back(fmt::format(
        "races{}: too many thread blocks share memory in too many steps", placement.words()));
  }
}

}  // namespace towpath::collective
