// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "towpath/collective/schedule/chunking.hpp"

namespace towpath::collective {
namespace {

constexpr int kInvocations = 2;

using Elements = std::vector<std::uint64_t>;

struct Message {
  Elements data;  // nominal length
  std::uint32_t slots = 0;
};

struct Fifo {
  std::deque<Message> messages;
  std::uint32_t free_slots = 0;
};

enum class Moment : std::uint8_t { read, store, notify };

struct BlockState {
  int rank = 0;
  const ThreadBlock* program = nullptr;
  Fifo* incoming = nullptr;
  Fifo* outgoing = nullptr;
  std::uint64_t iteration = 0;
  std::uint32_t step = 0;
  std::uint32_t chunk = 0;  // of the step: where the current transfer begins
  std::uint32_t slice = 0;
  Moment moment = Moment::read;
  Elements result;                   // read and combined, not yet stored or sent
  std::uint64_t present = 0;         // elements of it that all ranges hold
  std::uint64_t finished_steps = 0;  // of this invocation
};

struct RankState {
  std::vector<std::size_t> blocks;  // numbers in the interpreter's list
  Elements input, output, scratch;  // in place, input and output are one: `output`
  int invocation = 0;
};

class Interpreter {
 public:
  Interpreter(const Schedule& schedule, std::uint64_t elements, std::uint64_t element_bytes,
              bool in_place, std::uint64_t seed)
      : schedule_(schedule),
        chunking_(schedule, elements, element_bytes),
        in_place_(in_place),
        random_(seed),
        by_priority_(seed % 2 == 1) {
    make_inputs();
    make_ranks();
    for (BlockState& block : blocks_) connect(block);
    for (RankState& rank : ranks_) begin_invocation(rank);
    for (std::size_t b = 0; b < blocks_.size(); ++b) order_.push_back(b);
    std::shuffle(order_.begin(), order_.end(), random_);
  }

  Interpretation run() {
    for (RankState& rank : ranks_) end_invocation_if_finished(rank);
    while (failure_.outcome == Outcome::correct && move_one()) {
    }
    if (failure_.outcome != Outcome::correct) return failure_;
    for (const RankState& rank : ranks_) {
      if (rank.invocation < kInvocations) return {Outcome::hang, "no thread block can move"};
    }
    for (const auto& [ends, fifo] : fifos_) {
      if (!fifo.messages.empty()) return {Outcome::mismatch, "a message is left over"};
    }
    return {};
  }

 private:
  // --- set-up ---------------------------------------------------------------------------------

  std::uint64_t part() const { return chunking_.part_elements(); }
  std::uint64_t input_elements() const {
    return schedule_.collective == Collective::all_gather ? part() : chunking_.elements();
  }
  std::uint64_t output_elements() const {
    return schedule_.collective == Collective::reduce_scatter ? part() : chunking_.elements();
  }

  Elements random_elements(std::uint64_t count) {
    Elements elements(count);
    for (std::uint64_t& element : elements) element = random_();
    return elements;
  }

  void make_inputs() {
    for (int invocation = 0; invocation < kInvocations; ++invocation) {
      std::vector<Elements> of_ranks;
      for (int r = 0; r < schedule_.rank_count(); ++r) {
        of_ranks.push_back(random_elements(input_elements()));
      }
      inputs_.push_back(std::move(of_ranks));
    }
  }

  void make_ranks() {
    for (int r = 0; r < schedule_.rank_count(); ++r) {
      const RankProgram& program = schedule_.ranks[static_cast<std::size_t>(r)];
      RankState rank;
      rank.output = random_elements(in_place_ ? chunking_.elements() : output_elements());
      rank.scratch = random_elements(chunking_.scratch_elements(program.scratch_chunks));
      for (const ThreadBlock& block : program.blocks) {
        rank.blocks.push_back(blocks_.size());
        BlockState state;
        state.rank = r;
        state.program = &block;
        blocks_.push_back(state);
      }
      ranks_.push_back(std::move(rank));
    }
  }

  void connect(BlockState& block) {
    const ThreadBlock& program = *block.program;
    const auto fifo = [&](int from, int to) {
      Fifo& found = fifos_[{from, to, program.channel}];
      found.free_slots = chunking_.fifo().slots;
      return &found;
    };
    if (program.send_peer != kNone) block.outgoing = fifo(block.rank, program.send_peer);
    if (program.receive_peer != kNone) block.incoming = fifo(program.receive_peer, block.rank);
  }

  // --- memory ---------------------------------------------------------------------------------

  std::uint64_t* base(int r, Buffer buffer) {
    RankState& rank = ranks_[static_cast<std::size_t>(r)];
    if (buffer == Buffer::scratch) return rank.scratch.data();
    if (!in_place_) return buffer == Buffer::input ? rank.input.data() : rank.output.data();
    const bool is_one_part =
        (buffer == Buffer::input ? input_elements() : output_elements()) < chunking_.elements();
    return rank.output.data() + (is_one_part ? static_cast<std::uint64_t>(r) * part() : 0);
  }

  void begin_invocation(RankState& rank) {
    const auto r = static_cast<std::size_t>(&rank - ranks_.data());
    const Elements& fresh = inputs_[static_cast<std::size_t>(rank.invocation)][r];
    if (in_place_) {
      std::copy(fresh.begin(), fresh.end(), base(static_cast<int>(r), Buffer::input));
    } else {
      rank.input = fresh;
    }
    for (const std::size_t b : rank.blocks) {
      blocks_[b].iteration = 0;
      blocks_[b].finished_steps = 0;
    }
  }

  bool is_finished(const BlockState& block) const {
    return block.program->steps.empty() || block.iteration == chunking_.iterations();
  }

  void end_invocation_if_finished(RankState& rank) {
    while (rank.invocation < kInvocations &&
           std::all_of(rank.blocks.begin(), rank.blocks.end(),
                       [&](std::size_t b) { return is_finished(blocks_[b]); })) {
      check(rank);
      if (++rank.invocation < kInvocations) begin_invocation(rank);
    }
  }

  // --- one moment -----------------------------------------------------------------------------

  bool move_one() {
    if (blocks_.empty()) return false;
    if (!by_priority_ || random_() % 32 == 0) {
      std::swap(order_[random_() % order_.size()], order_[random_() % order_.size()]);
    }
    const std::size_t first = by_priority_ ? 0 : random_() % order_.size();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      BlockState& block = blocks_[order_[(first + i) % order_.size()]];
      if (!can_move(block)) continue;
      move(block);
      return true;
    }
    return false;
  }

  std::uint32_t transfer_chunks(const BlockState& block) const {
    const Step& step = block.program->steps[block.step];
    return std::min(step.count - block.chunk, chunking_.chunks_per_transfer());
  }

  bool is_local(const Step& step) const { return !receives(step.type) && !sends(step.type); }

  // The slice at which a thread block is; in a local step, the transfer as a whole.
  Slice current_slice(const BlockState& block) const {
    const std::uint64_t nominal = chunking_.nominal(transfer_chunks(block), block.iteration);
    if (is_local(block.program->steps[block.step])) return {0, nominal, 0};
    return chunking_.slice(nominal, block.slice);
  }

  bool can_move(const BlockState& block) const {
    if (is_finished(block)) return false;
    if (block.moment != Moment::read) return true;
    const Step& step = block.program->steps[block.step];
    if (step.depends_on_block != kNone) {
      const RankState& rank = ranks_[static_cast<std::size_t>(block.rank)];
      const auto on = static_cast<std::size_t>(step.depends_on_block);
      const BlockState& other = blocks_[rank.blocks[on]];
      const std::uint64_t needed = block.iteration * other.program->steps.size() +
                                   static_cast<std::uint64_t>(step.depends_on_step) + 1;
      if (other.finished_steps < needed) return false;
    }
    if (receives(step.type) && block.incoming->messages.empty()) return false;
    return !sends(step.type) || block.outgoing->free_slots >= current_slice(block).slots;
  }

  void move(BlockState& block) {
    const Step& step = block.program->steps[block.step];
    if (step.type == StepType::nop) return end_step(block);
    if (block.moment == Moment::read) {
      read(block, step);
      block.moment = writes_destination(step.type) ? Moment::store : Moment::notify;
    } else if (block.moment == Moment::store) {
      store(block, step);
      block.moment = Moment::notify;
    } else {
      notify(block, step);
      block.moment = Moment::read;
      end_slice(block, step);
    }
  }

  struct Place {
    std::uint64_t* data = nullptr;
    std::uint64_t present = 0;
  };
  Place place(const BlockState& block, Buffer buffer, std::uint32_t chunk) {
    const Range range =
        chunking_.range(buffer, chunk + block.chunk, transfer_chunks(block), block.iteration);
    const Slice slice = current_slice(block);
    const std::uint64_t skipped = std::min(slice.offset, range.count);
    return {base(block.rank, buffer) + range.offset + skipped,
            std::min(slice.count, range.count - skipped)};
  }

  void read(BlockState& block, const Step& step) {
    const Slice slice = current_slice(block);
    block.result = random_elements(slice.count);
    block.present = slice.count;
    Elements sum(slice.count, 0);
    const auto add = [&](const std::uint64_t* data, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) sum[i] += data[i];
    };
    if (receives(step.type)) {
      const Message& message = block.incoming->messages.front();
      if (message.data.size() != slice.count || message.slots != slice.slots) {
        failure_ = {Outcome::mismatch, "a message has another size than its receiver expects"};
        return;
      }
      add(message.data.data(), slice.count);
    }
    if (reads_source(step.type)) {
      const Place source = place(block, step.source, step.source_chunk);
      block.present = std::min(block.present, source.present);
      add(source.data, source.present);
    }
    if (writes_destination(step.type)) {
      const Place destination = place(block, step.destination, step.destination_chunk);
      block.present = std::min(block.present, destination.present);
      if (step.type == StepType::reduce) add(destination.data, destination.present);
    }
    std::copy_n(sum.begin(), block.present, block.result.begin());
    if (sends(step.type)) block.outgoing->free_slots -= slice.slots;
  }

  void store(BlockState& block, const Step& step) {
    std::copy_n(block.result.begin(), block.present,
                place(block, step.destination, step.destination_chunk).data);
  }

  void notify(BlockState& block, const Step& step) {
    if (receives(step.type)) {
      block.incoming->free_slots += block.incoming->messages.front().slots;
      block.incoming->messages.pop_front();
    }
    if (sends(step.type)) {
      block.outgoing->messages.push_back({std::move(block.result), current_slice(block).slots});
    }
  }

  void end_slice(BlockState& block, const Step& step) {
    const std::uint32_t chunks = transfer_chunks(block);
    const std::uint32_t slices =
        is_local(step) ? 1 : chunking_.slices(chunking_.nominal(chunks, block.iteration));
    if (++block.slice < slices) return;
    block.slice = 0;
    block.chunk += chunks;
    if (block.chunk == step.count) end_step(block);
  }

  void end_step(BlockState& block) {
    block.chunk = 0;
    ++block.finished_steps;
    if (++block.step < block.program->steps.size()) return;
    block.step = 0;
    ++block.iteration;
    end_invocation_if_finished(ranks_[static_cast<std::size_t>(block.rank)]);
  }

  // --- what must come out ---------------------------------------------------------------------

  // Element i of rank r's output, told element by element.
  std::uint64_t expected(const std::vector<Elements>& inputs, std::size_t r,
                         std::uint64_t i) const {
    const auto sum = [&](std::uint64_t place) {
      std::uint64_t total = 0;
      for (const Elements& input : inputs) total += input[place];
      return total;
    };
    switch (schedule_.collective) {
      case Collective::all_reduce:
      case Collective::reduce: return sum(i);
      case Collective::reduce_scatter: return sum(r * part() + i);
      case Collective::all_gather: return inputs[i / part()][i % part()];
      case Collective::all_to_all: return inputs[i / part()][r * part() + i % part()];
      case Collective::broadcast: return inputs[static_cast<std::size_t>(schedule_.root)][i];
      case Collective::gather: return inputs[i / part()][i % part()];
      case Collective::scatter:
        return inputs[static_cast<std::size_t>(schedule_.root)][r * part() + i];
      case Collective::all_to_all_v: return inputs[i / part()][r * part() + i % part()];
      case Collective::send_recv: {
        const auto sender = std::ranges::find(schedule_.pattern, static_cast<std::uint32_t>(r));
        return inputs[static_cast<std::size_t>(sender - schedule_.pattern.begin())][i];
      }
      case Collective::barrier: return sum(i);
    }
    return 0;
  }

  void check(const RankState& rank) {
    const auto r = static_cast<std::size_t>(&rank - ranks_.data());
    const std::vector<Elements>& inputs = inputs_[static_cast<std::size_t>(rank.invocation)];
    if (!in_place_ && rank.input != inputs[r]) {
      failure_ = {Outcome::input_changed, fmt::format("rank {}'s input is not what it was", r)};
    }
    const bool is_for_root =
        schedule_.collective == Collective::reduce || schedule_.collective == Collective::gather;
    if (is_for_root && static_cast<int>(r) != schedule_.root) return;
    const std::uint64_t* output = base(static_cast<int>(r), Buffer::output);
    for (std::uint64_t i = 0; i < output_elements(); ++i) {
      if (output[i] == expected(inputs, r, i)) continue;
      failure_ = {Outcome::wrong_data, fmt::format("rank {}'s output element {} is wrong after "
                                                   "invocation {}",
                                                   r, i, rank.invocation)};
      return;
    }
  }

  const Schedule& schedule_;
  Chunking chunking_;
  bool in_place_;
  std::mt19937_64 random_;
  bool by_priority_;                           // run who comes first in order_ while it can
  std::vector<std::vector<Elements>> inputs_;  // [invocation][rank]
  std::vector<RankState> ranks_;
  std::vector<BlockState> blocks_;
  std::map<std::tuple<int, int, int>, Fifo> fifos_;  // (sender, receiver, channel)
  std::vector<std::size_t> order_;
  Interpretation failure_;
};

}  // namespace

Interpretation interpret(const Schedule& schedule, std::uint64_t elements,
                         std::uint64_t element_bytes, bool in_place, std::uint64_t seed) {
  return Interpreter(schedule, elements, element_bytes, in_place, seed).run();
}

}  // namespace towpath::collective
