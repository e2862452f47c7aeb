// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "towpath/collective/algorithms/building.hpp"

namespace towpath::collective {
namespace {

// Halving-doubling all-reduce: 2 log2(R) sequential network steps, 2 S (R-1)/R wire bytes per rank.
// In each round of the first half, two ranks each send the half that the other sums. The
// second half distributes the sums in reverse order. If R is not a power of two, some ranks first
// send their input to a neighbour and receive the result at the end: 2 more steps of S bytes each.
// The second half has separate channels, so that thread blocks of both halves run concurrently.

// The largest power of two ranks.
int members_of(const AlgorithmOptions& options) {
  return static_cast<int>(std::bit_floor(index(options.ranks)));
}

// One rank's share of one channel. The members, a power of two, sum one of `chunks` chunks each.
struct Member {
  RankProgram& program;
  int channel;
  std::uint32_t first_chunk;
  std::uint32_t chunks;

  ThreadBlock& receive_from(int peer) const { return add_block(program, peer, kNone, channel); }
  ThreadBlock& send_to(int peer) const { return add_block(program, kNone, peer, channel); }

  // Adds steps to a thread block for `count` chunks starting at `chunk`.
  void add_steps(ThreadBlock& block, Step step, std::uint32_t chunk, std::uint32_t count) const {
    step.source_chunk = step.destination_chunk = first_chunk + chunk;
    for (; count > 0; count -= step.count) {
      step.count = std::min(count, kSegmentChunks);
      block.steps.push_back(step);
      step.source_chunk = step.destination_chunk = step.source_chunk + step.count;
    }
  }
};

// The thread blocks of the rank's last round. Later steps wait for both.
struct Round {
  std::uint32_t sending = 0;
  std::uint32_t receiving = 0;
  bool has_sent = false;
  bool has_received = false;
};

// Makes the first step of the thread block depend on all steps of the round.
void wait_for(const Member& member, const Round& round, ThreadBlock& block) {
  RankProgram& program = member.program;
  const auto await = [&](std::uint32_t awaited) {
    Steps& steps = program.blocks[awaited].steps;
    steps.back().publishes = true;
    return after(awaited, steps.size() - 1, Step{});
  };
  Step& first = block.steps.front();
  if (round.has_received) {
    const Step received = await(round.receiving);
    first = after(received.depends_on_block, received.depends_on_step, first);
    if (round.has_sent) block.steps.insert(block.steps.begin(), await(round.sending));
  }
}

// An exchange between two members. `send` and `receive` are templates, repeated over their ranges.
struct Exchange {
  Step send;
  Step receive;
  std::uint32_t given;
  std::uint32_t kept;
  std::uint32_t count;
};

Round add_round(const Member& member, int peer, const Round& before, const Exchange& exchange) {
  Round round{.has_sent = true, .has_received = true};
  ThreadBlock& sending = member.send_to(peer);
  member.add_steps(sending, exchange.send, exchange.given, exchange.count);
  wait_for(member, before, sending);
  round.sending = last_block(member.program);
  ThreadBlock& receiving = member.receive_from(peer);
  member.add_steps(receiving, exchange.receive, exchange.kept, exchange.count);
  if (reads_source(exchange.receive.type)) wait_for(member, before, receiving);
  round.receiving = last_block(member.program);
  return round;
}

// Sums and distributes. `number` is the rank's index among the members.
template <typename RankOf>
Round add_rounds(const Member& member, std::uint32_t number, Round last, int results_channel,
                 const RankOf& rank_of) {
  std::uint32_t begin = 0;
  for (std::uint32_t half = member.chunks / 2; half > 0; half /= 2) {
    const bool is_low = (number & half) == 0;
    const Chunk source = last.has_received ? output(0) : input(0);
    last = add_round(
        member, rank_of(number ^ half), last,
        {step(StepType::send, source), step(StepType::receive_reduce_copy, source, output(0)),
         is_low ? begin + half : begin, is_low ? begin : begin + half, half});
    if (!is_low) begin += half;
  }
  Member handing_out = member;
  handing_out.channel = results_channel;
  for (std::uint32_t size = 1; size < member.chunks; size *= 2) {
    const std::uint32_t own = number / size * size;
    last = add_round(handing_out, rank_of(number ^ size), last,
                     {step(StepType::send, output(0)), step(StepType::receive, output(0)), own,
                      own ^ size, size});
  }
  return last;
}

// Ranks below 2 * folded form pairs of neighbours. The odd rank participates for both.
void add_all_reduce_rank(int rank, const Member& member, int folded, int results_channel) {
  const bool has_neighbour = rank < 2 * folded;
  if (has_neighbour && rank % 2 == 0) {
    ThreadBlock& block = add_block(member.program, rank + 1, rank + 1, member.channel);
    member.add_steps(block, step(StepType::send, input(0)), 0, member.chunks);
    member.add_steps(block, step(StepType::receive, output(0)), 0, member.chunks);
    return;
  }
  Round last;
  if (has_neighbour) {
    member.add_steps(member.receive_from(rank - 1),
                     step(StepType::receive_reduce_copy, input(0), output(0)), 0, member.chunks);
    last = {.receiving = last_block(member.program), .has_received = true};
  }
  const auto rank_of = [folded](std::uint32_t number) {
    const auto signed_number = static_cast<int>(number);
    return signed_number < folded ? 2 * signed_number + 1 : signed_number + folded;
  };
  const int number = has_neighbour ? rank / 2 : rank - folded;
  last = add_rounds(member, number, last, results_channel, rank_of);
  if (!has_neighbour) return;
  ThreadBlock& block = member.send_to(rank - 1);
  member.add_steps(block, step(StepType::send, output(0)), 0, member.chunks);
  wait_for(member, last, block);
}

void build_halving_doubling_all_reduce(Schedule& schedule, const AlgorithmOptions& options) {
  const int members = members_of(options);
  take_two_channels_each(schedule);
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      const Member member{program_of(schedule, rank), channel,
                          static_cast<std::uint32_t>(channel * members),
                          static_cast<std::uint32_t>(members)};
      add_all_reduce_rank(rank, member, options.ranks - members, options.channels + channel);
    }
  }
}

// Doubling barrier: log2(R) sequential network steps, S log2(R) wire bytes per rank, with S the few
// bytes of a token. In each round, two ranks exchange their sums, doubling the number of ranks
// covered. If R is not a power of two, some ranks first send their token to a neighbour and receive
// the result at the end: 2 more steps.

// One rank's thread blocks of one channel. Each depends on the previous one.
struct Tokens {
  RankProgram& program;
  int channel;
  bool has_sum = false;  // in the output

  // Exchanges sums with the peer, or only receives a sum, or only sends the last one.
  void add(int peer, bool is_sending, bool is_receiving) {
    const Chunk own = has_sum ? output(channel) : input(channel);
    const std::uint32_t before = has_sum ? last_block(program) : 0;
    if (has_sum) program.blocks[before].steps.back().publishes = true;
    const std::size_t last = has_sum ? program.blocks[before].steps.size() - 1 : 0;
    ThreadBlock& block =
        add_block(program, is_receiving ? peer : kNone, is_sending ? peer : kNone, channel);
    if (is_sending) block.steps.push_back(step(StepType::send, own));
    if (is_receiving) {
      block.steps.push_back(step(StepType::receive_reduce_copy, own, output(channel)));
    }
    if (has_sum) block.steps.front() = after(before, last, block.steps.front());
    has_sum = true;
  }
};

void add_barrier_rank(Tokens tokens, int rank, int members, int folded) {
  const bool has_neighbour = rank < 2 * folded;
  if (has_neighbour && rank % 2 == 0) {
    add_block(tokens.program, rank + 1, rank + 1, tokens.channel).steps = {
        step(StepType::send, input(tokens.channel)),
        step(StepType::receive, output(tokens.channel))};
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

void build_doubling_barrier(Schedule& schedule, const AlgorithmOptions& options) {
  const int members = members_of(options);
  for (int channel = 0; channel < options.channels; ++channel) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      add_barrier_rank({program_of(schedule, rank), channel}, rank, members,
                       options.ranks - members);
    }
  }
}

}  // namespace

constinit const Algorithm halving_doubling_all_reduce{
    .name = "halving_doubling_all_reduce",
    .collective = Collective::all_reduce,
    .build = build_halving_doubling_all_reduce,
    .description =
        "halves exchanged with ever nearer ranks to be summed, and back to be handed out",
    .cost = "2log2(R) steps, 2S(R-1)/R bytes for powers of 2",
    .chunks =
        [](const AlgorithmOptions& options) {
          return std::int64_t{members_of(options)} * options.channels;
        },
};

constinit const Algorithm doubling_barrier{
    .name = "doubling_barrier",
    .collective = Collective::barrier,
    .build = build_doubling_barrier,
    .description = "sums of a token exchanged with ever farther ranks",
    .cost = "log2(R) steps, and 2 more where R is not a power of 2; S log2(R) bytes",
    .chunks = chunk_per_channel,
};

}  // namespace towpath::collective
