// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/algorithms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <span>
#include <tuple>

#include "towpath/collective/schedule/chunking.hpp"

namespace towpath::collective {
namespace {

using Word = std::uint64_t;
using Words = std::vector<Word>;
using Operation = Word (*)(Word, Word);

Word sum(Word a, Word b) { return a + b; }
// Commutes but does not associate, as floating-point addition: the order of operands is visible.
Word mix(Word a, Word b) { return (a + b) * 0x9E3779B97F4A7C15u ^ (a & b); }

// Runs a schedule step by step, in a random order of thread blocks, over FIFOs without end.
class SequentialRun {
 public:
  SequentialRun(const Schedule& schedule, const Chunking& chunking, bool in_place,
                Operation operation, unsigned seed)
      : schedule_(schedule), chunking_(chunking), operation_(operation), random_(seed) {
    for (int rank = 0; rank < schedule.rank_count(); ++rank) add_memory(rank, in_place);
  }

  std::span<Word> input(int rank) { return memory_[index(rank)].buffers[0]; }
  std::span<Word> output(int rank) { return memory_[index(rank)].buffers[1]; }

  // Whether every thread block came to its end.
  bool run() {
    struct Place {
      int rank;
      std::size_t block;
    };
    std::vector<Place> places;
    for (int rank = 0; rank < schedule_.rank_count(); ++rank) {
      const std::size_t blocks = schedule_.ranks[index(rank)].blocks.size();
      done_.emplace_back(blocks, 0);
      for (std::size_t block = 0; block < blocks; ++block) places.push_back({rank, block});
    }
    bool moved = true;
    while (moved) {
      moved = false;
      std::shuffle(places.begin(), places.end(), random_);
      for (const Place& place : places) {
        // A thread block goes on for as long as it can, or for one step: both find missing waits.
        const bool is_greedy = random_() % 2 == 0;
        while (advance(place.rank, place.block)) {
          moved = true;
          if (!is_greedy) break;
        }
      }
    }
    for (const Place& place : places) {
      const auto steps = schedule_.ranks[index(place.rank)].blocks[place.block].steps.size();
      if (done_[index(place.rank)][place.block] < steps * chunking_.iterations()) return false;
    }
    for (const auto& [connection, fifo] : fifos_) {
      if (!fifo.empty()) return false;
    }
    return true;
  }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  struct Memory {
    Words first, second, scratch;
    std::span<Word> buffers[kBuffers];
  };

  std::uint64_t buffer_elements(int rank, Buffer buffer) const {
    return chunks_in(schedule_, rank, buffer) < schedule_.chunks ? chunking_.part_elements()
                                                                 : chunking_.elements();
  }

  void add_memory(int rank, bool in_place) {
    Memory& memory = memory_.emplace_back();
    const std::uint64_t in = buffer_elements(rank, Buffer::input);
    const std::uint64_t out = buffer_elements(rank, Buffer::output);
    memory.scratch.resize(chunking_.scratch_elements(schedule_.ranks[index(rank)].scratch_chunks));
    memory.buffers[2] = memory.scratch;
    memory.first.resize(in_place ? std::max(in, out) : in);
    memory.second.resize(in_place ? 0 : out);
    const std::span<Word> whole = memory.first;
    const std::size_t part = index(rank) * chunking_.part_elements();
    memory.buffers[0] = in < whole.size() ? whole.subspan(part, in) : whole;
    memory.buffers[1] = !in_place            ? std::span<Word>(memory.second)
                        : out < whole.size() ? whole.subspan(part, out)
                                             : whole;
  }

  std::span<Word> at(int rank, Buffer buffer, std::uint32_t chunk, std::uint32_t count,
                     std::uint64_t iteration) {
    const Range range = chunking_.range(buffer, chunk, count, iteration);
    return memory_[index(rank)].buffers[static_cast<int>(buffer)].subspan(range.offset,
                                                                          range.count);
  }

  bool is_ready(int rank, const ThreadBlock& block, const Step& step, std::uint64_t iteration) {
    if (step.depends_on_block != kNone) {
      const auto dependency = index(step.depends_on_block);
      const auto steps = schedule_.ranks[index(rank)].blocks[dependency].steps.size();
      if (done_[index(rank)][dependency] <= iteration * steps + index(step.depends_on_step)) {
        return false;
      }
    }
    return !receives(step.type) || fifos_[{block.receive_peer, rank, block.channel}].size() >=
                                       chunking_.transfers(step.count);
  }

  bool advance(int rank, std::size_t b) {
    const ThreadBlock& block = schedule_.ranks[index(rank)].blocks[b];
    std::size_t& done = done_[index(rank)][b];
    if (done >= block.steps.size() * chunking_.iterations()) return false;
    const std::uint64_t iteration = done / block.steps.size();
    const Step& step = block.steps[done % block.steps.size()];
    if (!is_ready(rank, block, step, iteration)) return false;
    for (std::uint32_t first = 0; first < step.count; first += chunking_.chunks_per_transfer()) {
      Step transfer = step;
      transfer.source_chunk += first;
      transfer.destination_chunk += first;
      transfer.count = std::min(step.count - first, chunking_.chunks_per_transfer());
      execute(rank, block, transfer, iteration);
    }
    ++done;
    return true;
  }

  void execute(int rank, const ThreadBlock& block, const Step& step, std::uint64_t iteration) {
    Words value;
    if (receives(step.type)) {
      auto& fifo = fifos_[{block.receive_peer, rank, block.channel}];
      value = fifo.front();
      fifo.pop_front();
    }
    if (reads_source(step.type)) {
      const auto source = at(rank, step.source, step.source_chunk, step.count, iteration);
      if (receives(step.type)) {
        combine(value, source);
      } else {
        value.assign(source.begin(), source.end());
      }
    }
    if (writes_destination(step.type)) {
      const auto destination =
          at(rank, step.destination, step.destination_chunk, step.count, iteration);
      if (step.type == StepType::reduce) {
        Words left(destination.begin(), destination.end());
        combine(left, value);
        value = left;
      }
      std::copy_n(value.begin(), std::min(value.size(), destination.size()), destination.begin());
    }
    if (sends(step.type)) fifos_[{rank, block.send_peer, block.channel}].push_back(value);
  }

  void combine(Words& left, std::span<const Word> right) const {
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      left[i] = operation_(left[i], right[i]);
    }
  }

  const Schedule& schedule_;
  Chunking chunking_;
  Operation operation_;
  std::mt19937 random_;
  std::deque<Memory> memory_;
  std::vector<std::vector<std::size_t>> done_;
  std::map<std::tuple<int, int, int>, std::deque<Words>> fifos_;
};

Word input_word(int rank, std::size_t element) {
  return (static_cast<Word>(rank) + 1) * 1'000'003u + element * 7'919u;
}

Word reduced_word(int ranks, std::size_t element, Operation operation) {
  Word value = input_word(0, element);
  for (int rank = 1; rank < ranks; ++rank) value = operation(value, input_word(rank, element));
  return value;
}

// What the output of `rank` must hold at `element`, for a sum.
Word expected_word(const Schedule& schedule, int rank, std::size_t element, std::size_t part) {
  const int ranks = schedule.rank_count();
  const int owner = static_cast<int>(element / part);
  switch (schedule.collective) {
    case Collective::all_reduce:
    case Collective::reduce: return reduced_word(ranks, element, sum);
    case Collective::broadcast: return input_word(schedule.root, element);
    case Collective::all_gather: return input_word(owner, element % part);
    case Collective::reduce_scatter:
      return reduced_word(ranks, static_cast<std::size_t>(rank) * part + element, sum);
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return input_word(owner, static_cast<std::size_t>(rank) * part + element % part);
    case Collective::barrier: return reduced_word(ranks, element, sum);
    case Collective::gather: return input_word(owner, element % part);
    case Collective::scatter:
      return input_word(schedule.root, static_cast<std::size_t>(rank) * part + element);
    case Collective::send_recv: {
      const auto sender = std::ranges::find(schedule.pattern, static_cast<std::uint32_t>(rank));
      return input_word(static_cast<int>(sender - schedule.pattern.begin()), element);
    }
  }
  return 0;
}

void fill_inputs(const Schedule& schedule, SequentialRun& run) {
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    const auto input = run.input(rank);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = input_word(rank, i);
  }
}

// Empty when the schedule computes its collective, otherwise where it does not.
std::string mistake_of(const Schedule& schedule, std::uint64_t elements,
                       std::uint64_t element_bytes, bool in_place, unsigned seed) {
  check_structure(schedule);
  SequentialRun run(schedule, {schedule, elements, element_bytes}, in_place, sum, seed);
  fill_inputs(schedule, run);
  if (!run.run()) return "does not come to its end";
  const std::size_t part = elements / schedule.ranks.size();
  for (int rank = 0; rank < schedule.rank_count(); ++rank) {
    const bool is_for_root =
        schedule.collective == Collective::reduce || schedule.collective == Collective::gather;
    if (is_for_root && rank != schedule.root) continue;
    const auto output = run.output(rank);
    for (std::size_t i = 0; i < output.size(); ++i) {
      if (output[i] != expected_word(schedule, rank, i, std::max<std::size_t>(part, 1))) {
        return "rank " + std::to_string(rank) + ", element " + std::to_string(i);
      }
    }
    const auto input = run.input(rank);
    for (std::size_t i = 0; !in_place && i < input.size(); ++i) {
      if (input[i] != input_word(rank, i)) return "input of rank " + std::to_string(rank);
    }
  }
  return "";
}

// 16-byte elements, so that LL's transfers hold 2,048.
constexpr std::uint64_t kElementBytes = 16;

class EveryAlgorithm : public testing::TestWithParam<Algorithm> {};

TEST_P(EveryAlgorithm, IsRightOnOneToNineRanksInPlaceAndOutOfPlace) {
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    for (int ranks = 1; ranks <= 9; ++ranks) {
      for (int channels = 1; channels <= 4; ++channels) {
        AlgorithmOptions options;
        options.ranks = ranks;
        options.channels = channels;
        options.protocol = protocol;
        if (has_root(GetParam().collective)) options.root = ranks - 1;
        const Schedule schedule = GetParam()(options);
        EXPECT_EQ(schedule.collective, GetParam().collective);
        EXPECT_EQ(schedule.name, GetParam().name);
        // 13 elements per granule leave a ragged end in nearly every chunk.
        const std::uint64_t elements = element_granularity(schedule) * 13;
        for (const bool in_place : {false, true}) {
          EXPECT_EQ(mistake_of(schedule, elements, kElementBytes, in_place,
                               static_cast<unsigned>(ranks * channels)),
                    "")
              << ranks << " ranks, " << channels << " channels, in place " << in_place;
        }
      }
    }
  }
}

TEST_P(EveryAlgorithm, IsRightWhenChunksAreWalkedInSeveralIterations) {
  AlgorithmOptions options;
  options.ranks = 4;
  options.channels = 2;
  options.protocol = Protocol::ll;
  options.chunks_per_channel = 2;
  const Schedule schedule = GetParam()(options);
  const std::uint64_t elements = schedule.chunks * 5'000ull;
  ASSERT_EQ(Chunking(schedule, elements, kElementBytes).iterations(), 3u);
  for (unsigned seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(mistake_of(schedule, elements, kElementBytes, seed % 2 == 0, seed), "");
  }
}

TEST_P(EveryAlgorithm, IsRightWhenTheArrayIsSmallerThanItsChunks) {
  AlgorithmOptions options;
  options.ranks = 5;
  options.channels = 3;
  const Schedule schedule = GetParam()(options);
  const std::uint64_t elements = element_granularity(schedule);
  for (const bool in_place : {false, true}) {
    EXPECT_EQ(mistake_of(schedule, elements, kElementBytes, in_place, 1), "");
  }
}

TEST_P(EveryAlgorithm, IsRightOnRailRings) {
  AlgorithmOptions options;
  options.ranks = 12;
  options.channels = 4;
  options.gpus_per_host = 4;
  if (has_root(GetParam().collective)) options.root = 5;
  options.rings = rail_rings(3, 4, 4);
  const Schedule schedule = GetParam()(options);
  EXPECT_EQ(mistake_of(schedule, schedule.chunks * 3ull, kElementBytes, true, 1), "");
}

TEST_P(EveryAlgorithm, PublishesAStepExactlyWhenAnotherDependsOnIt) {
  AlgorithmOptions options;
  options.ranks = 6;
  options.channels = 2;
  const Schedule schedule = GetParam()(options);
  for (const RankProgram& program : schedule.ranks) {
    std::set<std::pair<int, int>> published;
    std::set<std::pair<int, int>> awaited;
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      const auto& steps = program.blocks[b].steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        if (steps[s].publishes) published.insert({static_cast<int>(b), static_cast<int>(s)});
        if (steps[s].depends_on_block != kNone) {
          awaited.insert({steps[s].depends_on_block, steps[s].depends_on_step});
        }
      }
    }
    EXPECT_EQ(published, awaited);
  }
}

TEST_P(EveryAlgorithm, RefusesOptionsOutOfRange) {
  const auto refuses = [](auto change) {
    AlgorithmOptions options;
    options.ranks = 4;
    options.channels = 2;
    change(options);
    EXPECT_THROW(GetParam()(options), std::invalid_argument);
  };
  refuses([](AlgorithmOptions& options) { options.ranks = 0; });
  refuses([](AlgorithmOptions& options) { options.ranks = kRanksMax + 1; });
  refuses([](AlgorithmOptions& options) { options.channels = kChannelsMax + 1; });
  refuses([](AlgorithmOptions& options) { options.root = 4; });
  refuses([](AlgorithmOptions& options) { options.gpus_per_host = 3; });
  refuses([](AlgorithmOptions& options) { options.chunks_per_channel = 0; });
  refuses([](AlgorithmOptions& options) { options.reducers = 0; });
  refuses([](AlgorithmOptions& options) { options.columns = -1; });
  refuses([](AlgorithmOptions& options) { options.columns = 3; });
  refuses([](AlgorithmOptions& options) { options.columns = 8; });
  refuses([](AlgorithmOptions& options) { options.rings = {{0, 1, 2, 3}}; });
  refuses([](AlgorithmOptions& options) { options.rings = {{0, 1, 2, 3}, {0, 1, 2, 2}}; });
  refuses([](AlgorithmOptions& options) { options.rings = {{0, 1, 2, 3}, {0, 1, 2}}; });
  refuses([](AlgorithmOptions& options) { options.rings = {{0, 1, 2, 3}, {0, 1, 2, 4}}; });
}

// Those with one-sided steps are in one_sided_test.cpp.
std::vector<Algorithm> fifo_algorithms() {
  std::vector<Algorithm> found;
  std::ranges::copy_if(algorithms(), std::back_inserter(found),
                       [](const Algorithm& algorithm) { return algorithm.reach == Reach::fifo; });
  return found;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAlgorithm, testing::ValuesIn(fifo_algorithms()),
                         [](const auto& info) { return std::string(info.param.name); });

class AllReduce : public testing::TestWithParam<Algorithm> {};

TEST_P(AllReduce, GivesEveryRankTheSameBitsWhenTheOperationDoesNotAssociate) {
  AlgorithmOptions options;
  options.ranks = 7;
  options.channels = 2;
  const Schedule schedule = GetParam()(options);
  SequentialRun run(schedule, {schedule, 101, kElementBytes}, false, mix, 3);
  fill_inputs(schedule, run);
  ASSERT_TRUE(run.run());
  const Words first(run.output(0).begin(), run.output(0).end());
  for (int rank = 1; rank < options.ranks; ++rank) {
    EXPECT_EQ(Words(run.output(rank).begin(), run.output(rank).end()), first);
  }
}

std::vector<Algorithm> all_reduces() {
  std::vector<Algorithm> found = fifo_algorithms();
  std::erase_if(found, [](const Algorithm& algorithm) {
    return algorithm.collective != Collective::all_reduce;
  });
  return found;
}
INSTANTIATE_TEST_SUITE_P(Algorithms, AllReduce, testing::ValuesIn(all_reduces()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OneShotAllReduce, CombinesInTheOrderOfRanks) {
  AlgorithmOptions options;
  options.ranks = 6;
  const Schedule schedule = one_shot_all_reduce(options);
  SequentialRun run(schedule, {schedule, 10, kElementBytes}, true, mix, 1);
  fill_inputs(schedule, run);
  ASSERT_TRUE(run.run());
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(run.output(4)[i], reduced_word(6, i, mix));
}

// Bytes on the wire, in chunks that all ranks send.
std::size_t chunks_sent(const Schedule& schedule) {
  std::size_t count = 0;
  for (const RankProgram& program : schedule.ranks) {
    for (const ThreadBlock& block : program.blocks) {
      for (const Step& step : block.steps) count += sends(step.type) ? step.count : 0;
    }
  }
  return count;
}

TEST(Algorithms, SendTheBytesThatTheirCostSays) {
  AlgorithmOptions options;
  options.ranks = 6;
  options.channels = 3;
  const auto of_array = [&](const char* name) {
    const Schedule schedule = make_schedule(name, options);
    return static_cast<double>(chunks_sent(schedule)) / schedule.chunks;
  };
  // All ranks together, so R times what one rank sends.
  EXPECT_DOUBLE_EQ(of_array("ring_all_reduce"), 2.0 * 5);
  EXPECT_DOUBLE_EQ(of_array("one_shot_all_reduce"), 6.0 * 5);
  EXPECT_DOUBLE_EQ(of_array("two_shot_all_reduce"), 2.0 * 5);
  EXPECT_DOUBLE_EQ(of_array("tree_all_reduce"), 2.0 * 5);
  EXPECT_DOUBLE_EQ(of_array("ring_all_gather"), 5);
  EXPECT_DOUBLE_EQ(of_array("all_pairs_all_gather"), 5);
  EXPECT_DOUBLE_EQ(of_array("ring_reduce_scatter"), 5);
  EXPECT_DOUBLE_EQ(of_array("half_ring_reduce_scatter"), 5);
  EXPECT_DOUBLE_EQ(of_array("all_pairs_reduce_scatter"), 5);
  EXPECT_DOUBLE_EQ(of_array("ring_broadcast"), 5);
  EXPECT_DOUBLE_EQ(of_array("ring_reduce"), 5);
  EXPECT_DOUBLE_EQ(of_array("tree_broadcast"), 5);
  EXPECT_DOUBLE_EQ(of_array("tree_reduce"), 5);
  EXPECT_DOUBLE_EQ(of_array("all_pairs_all_to_all"), 5);
  EXPECT_DOUBLE_EQ(of_array("double_binary_tree_all_reduce"), 2.0 * 5);
  EXPECT_DOUBLE_EQ(of_array("hierarchical_all_reduce"), 2.0 * 5);
  EXPECT_DOUBLE_EQ(of_array("simple_ring_all_reduce"), 2.0 * 5);
  // 4 of 6 ranks exchange halves; the other 2 give away what they have and get the result.
  EXPECT_DOUBLE_EQ(of_array("halving_doubling_all_reduce"), 2.0 * 3 + 2.0 * 2);
  EXPECT_DOUBLE_EQ(of_array("bruck_all_gather"), 5);
  EXPECT_DOUBLE_EQ(of_array("pat_all_gather"), 5);
  EXPECT_DOUBLE_EQ(of_array("pat_reduce_scatter"), 5);
  // The offsets 1 to 5 have 1 + 1 + 2 + 1 + 2 bits.
  EXPECT_DOUBLE_EQ(of_array("bruck_all_to_all"), 7);
  EXPECT_DOUBLE_EQ(of_array("direct_gather"), 5.0 / 6);
  EXPECT_DOUBLE_EQ(of_array("direct_scatter"), 5.0 / 6);
  // Below the root, 1 to 5 have 1, 2, 1, 2, 1 ranks on their way up.
  EXPECT_DOUBLE_EQ(of_array("binomial_gather"), 7.0 / 6);
  EXPECT_DOUBLE_EQ(of_array("binomial_scatter"), 7.0 / 6);
  EXPECT_DOUBLE_EQ(of_array("all_pairs_all_to_all_v"), 5);
  EXPECT_DOUBLE_EQ(of_array("direct_send_recv"), 6);
  EXPECT_DOUBLE_EQ(of_array("doubling_barrier"), 4 * 2 + 2 * 2);
}

TEST(Algorithms, ARootIsRefusedWhereThereIsNone) {
  AlgorithmOptions options;
  options.ranks = 4;
  options.root = 3;
  for (const Algorithm& algorithm : algorithms()) {
    if (has_root(algorithm.collective)) {
      EXPECT_EQ(algorithm(options).root, 3) << algorithm.name;
    } else {
      EXPECT_THROW(algorithm(options), std::invalid_argument) << algorithm.name;
    }
  }
}

TEST(Algorithms, UnknownNameIsRefusedWithThoseThatExist) {
  try {
    make_schedule("butterfly", {});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("ring_all_reduce, one_shot"), std::string::npos);
  }
}

TEST(Algorithms, RefuseASizeThatIsNotForMemory) {
  AlgorithmOptions options;
  options.ranks = 16'384;
  EXPECT_THROW(all_pairs_all_to_all(options), std::invalid_argument);
  EXPECT_EQ(step_count(ring_all_reduce(options)), 16'384u * (2 * 16'384 - 1));  // one list
}

TEST(RingAllReduce, TakesTwoStepsPerRankLessOne) {
  AlgorithmOptions options;
  options.ranks = 8;
  options.channels = 2;
  const Schedule schedule = ring_all_reduce(options);
  for (const RankProgram& program : schedule.ranks) {
    ASSERT_EQ(program.blocks.size(), 2u);
    EXPECT_EQ(program.blocks[0].steps.size(), 2u * 8 - 1);
  }
  EXPECT_EQ(schedule.chunks, 16u);
}

}  // namespace
}  // namespace towpath::collective
