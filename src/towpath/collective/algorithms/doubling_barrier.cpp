// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Doubling barrier: log2(R) steps over the wire one after the other, S log2(R) bytes on the wire
// per rank, for the few bytes of a token. In each round, two ranks exchange their sums, which then
// stand for twice as many ranks. Where R is not a power of two, some ranks send theirs to a
// neighbour first and hear from it at the end: 2 steps more.
#include <bit>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// One rank's thread blocks of one channel, of which each waits for the one before.
struct Tokens {
  RankProgram& program;
  int channel;
  bool has_sum = false;  // in the output

  // Exchanges sums with the peer, or only receives one, or only sends the last one.
  void add(int peer, bool is_sending, bool is_receiving) {
    const auto chunk = static_cast<std::uint32_t>(channel);
    const Chunk own = has_sum ? output(chunk) : input(chunk);
    const std::uint32_t before = has_sum ? last_block(program) : 0;
    if (has_sum) program.blocks[before].steps.back().publishes = true;
    const auto last =
        static_cast<std::uint32_t>(has_sum ? program.blocks[before].steps.size() - 1 : 0);
    ThreadBlock& block =
        add_block(program, is_receiving ? peer : kNone, is_sending ? peer : kNone, channel);
    if (is_sending) block.steps.push_back(step(StepType::send, own));
    if (is_receiving) {
      block.steps.push_back(step(StepType::receive_reduce_copy, own, output(chunk)));
    }
    if (has_sum) block.steps.front() = after(before, last, block.steps.front());
    has_sum = true;
  }
};

void add_rank(Tokens tokens, int rank, int members, int folded) {
  const bool has_neighbour = rank < 2 * folded;
  if (has_neighbour && rank % 2 == 0) {
    const auto chunk = static_cast<std::uint32_t>(tokens.channel);
    add_block(tokens.program, rank + 1, rank + 1, tokens.channel).steps = {
        step(StepType::send, input(chunk)), step(StepType::receive, output(chunk))};
    return;
  }
  if (has_neighbour) tokens.add(rank - 1, false, true);
  const int number = has_neighbour ? rank / 2 : rank - folded;
  for (int distance = 1; distance < members; distance *= 2) {
    const int peer = number ^ distance;
    tokens.add(peer < folded ? 2 * peer + 1 : peer + folded, true, true);
  }
  if (has_neighbour) tokens.add(rank - 1, true, false);
}

Schedule make(const AlgorithmOptions& options) {
  Schedule schedule = schedule_without_blocks("doubling_barrier", Collective::barrier, options,
                                              static_cast<std::uint32_t>(options.channels));
  if (options.ranks == 1) return local_copy(std::move(schedule));
  const auto members = static_cast<int>(std::bit_floor(static_cast<std::uint32_t>(options.ranks)));
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      add_rank({schedule.ranks[static_cast<std::size_t>(rank)], channel}, rank, members,
               options.ranks - members);
    }
  }
  return schedule;
}

}  // namespace

constinit const Algorithm doubling_barrier{
    .name = "doubling_barrier",
    .collective = Collective::barrier,
    .make = make,
    .description = "sums of a token exchanged with ever farther ranks",
    .cost = "log2(R) steps, and 2 more where R is not a power of 2; S log2(R) bytes",
};

}  // namespace towpath::collective
