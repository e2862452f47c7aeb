// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "schedules.hpp"

#include <algorithm>

namespace towpath::collective::samples {
namespace {

constexpr Buffer kInput = Buffer::input;
constexpr Buffer kOutput = Buffer::output;
constexpr Buffer kScratch = Buffer::scratch;

std::uint32_t wrapped(int value, int modulus) {
  return static_cast<std::uint32_t>(((value % modulus) + modulus) % modulus);
}

// The thread block's place among those that a rank has, one for each peer.
int block_for(int rank, int peer) { return peer < rank ? peer : peer - 1; }

// One ring's part in `schedule`: `direction` is 1 or -1.
struct Ring {
  int ranks;
  int channel;
  int direction;

  ThreadBlock& add(Schedule& schedule, int rank) const {
    return add_block(schedule, rank, static_cast<int>(wrapped(rank + direction, ranks)),
                     static_cast<int>(wrapped(rank - direction, ranks)), channel);
  }
  // The part that `rank` handles `distance` hops after its own.
  std::uint32_t part(int rank, int distance) const {
    return wrapped(rank - direction * distance, ranks);
  }
};

}  // namespace

Step make_step(StepType type, Chunk source, Chunk destination, std::uint32_t count) {
  Step step;
  step.type = type;
  step.source = source.buffer;
  step.source_chunk = source.number;
  step.destination = destination.buffer;
  step.destination_chunk = destination.number;
  step.count = count;
  step.publishes = true;
  return step;
}

Step after(Step step, int block, int on_step) {
  step.depends_on_block = block;
  step.depends_on_step = on_step;
  return step;
}

Schedule empty_schedule(Collective collective, int ranks, std::uint32_t chunks) {
  Schedule schedule;
  schedule.name = "test";
  schedule.collective = collective;
  schedule.chunks = chunks;
  schedule.in_place = true;
  schedule.ranks.resize(static_cast<std::size_t>(ranks));
  return schedule;
}

ThreadBlock& add_block(Schedule& schedule, int rank, int send_peer, int receive_peer, int channel) {
  schedule.channels = std::max(schedule.channels, static_cast<std::uint32_t>(channel) + 1);
  auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
  blocks.push_back({send_peer, receive_peer, channel, {}});
  return blocks.back();
}

Schedule ring_all_reduce(int ranks, int channels) {
  Schedule schedule =
      empty_schedule(Collective::all_reduce, ranks, static_cast<std::uint32_t>(ranks * channels));
  for (int channel = 0; channel < channels; ++channel) {
    const Ring ring{ranks, channel, channel % 2 == 0 ? 1 : -1};
    for (int rank = 0; rank < ranks; ++rank) {
      Steps& steps = ring.add(schedule, rank).steps;
      const auto add = [&](StepType type, int distance) {
        const auto chunk = ring.part(rank, distance) + static_cast<std::uint32_t>(channel * ranks);
        steps.push_back(make_step(type, {kInput, chunk}, {kOutput, chunk}));
      };
      add(StepType::send, 0);
      for (int i = 1; i < ranks - 1; ++i) add(StepType::receive_reduce_send, i);
      add(StepType::receive_reduce_copy_send, ranks - 1);
      for (int i = 0; i < ranks - 2; ++i) add(StepType::receive_copy_send, i);
      add(StepType::receive, ranks - 2);
    }
  }
  return schedule;
}

Schedule ring_all_gather(int ranks, int channels) {
  Schedule schedule =
      empty_schedule(Collective::all_gather, ranks, static_cast<std::uint32_t>(ranks * channels));
  for (int rank = 0; rank < ranks; ++rank) {
    for (int channel = 0; channel < channels; ++channel) {
      const Ring ring{ranks, channel, channel % 2 == 0 ? 1 : -1};
      const auto piece = static_cast<std::uint32_t>(channel);
      Steps& steps = ring.add(schedule, rank).steps;
      const auto output = [&](int distance) {
        return ring.part(rank, distance) * static_cast<std::uint32_t>(channels) + piece;
      };
      steps.push_back(make_step(StepType::copy, {kInput, piece}, {kOutput, output(0)}));
      steps.push_back(make_step(StepType::send, {kInput, piece}, {kOutput, 0}));
      for (int i = 1; i < ranks; ++i) {
        const StepType type = i < ranks - 1 ? StepType::receive_copy_send : StepType::receive;
        steps.push_back(make_step(type, {kInput, 0}, {kOutput, output(i)}));
      }
    }
  }
  return schedule;
}

Schedule ring_reduce_scatter(int ranks) {
  Schedule schedule =
      empty_schedule(Collective::reduce_scatter, ranks, static_cast<std::uint32_t>(ranks) * 2);
  const Ring ring{ranks, 0, 1};
  for (int rank = 0; rank < ranks; ++rank) {
    Steps& steps = ring.add(schedule, rank).steps;
    for (std::uint32_t half = 0; half < 2; ++half) {
      for (int i = 1; i <= ranks; ++i) {
        const StepType type = i == 1       ? StepType::send
                              : i == ranks ? StepType::receive_reduce_copy
                                           : StepType::receive_reduce_send;
        steps.push_back(make_step(type, {kInput, ring.part(rank, i) * 2 + half}, {kOutput, half}));
      }
    }
  }
  return schedule;
}

Schedule two_shot_all_reduce(int ranks, std::uint32_t count) {
  const auto n = static_cast<std::uint32_t>(ranks);
  Schedule schedule = empty_schedule(Collective::all_reduce, ranks, n * count);
  const int reducer = ranks - 1;  // the thread block after those for the peers
  for (int rank = 0; rank < ranks; ++rank) {
    schedule.ranks[static_cast<std::size_t>(rank)].scratch_chunks = (n - 1) * count;
    const std::uint32_t own = static_cast<std::uint32_t>(rank) * count;
    // A nop for each peer but the last, whose receive the first reduction waits for itself.
    std::vector<Step> reductions = {
        make_step(StepType::copy, {kInput, own}, {kOutput, own}, count)};
    for (int peer = 0; peer < ranks - 2; ++peer) {
      reductions.push_back(after(make_step(StepType::nop, {kInput, 0}, {kInput, 0}, 0), peer, 1));
    }
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      const int block = block_for(rank, peer);
      const std::uint32_t slot = static_cast<std::uint32_t>(block) * count;
      const std::uint32_t theirs = static_cast<std::uint32_t>(peer) * count;
      Steps& steps = add_block(schedule, rank, peer, peer).steps;
      steps.push_back(make_step(StepType::send, {kInput, theirs}, {kInput, 0}, count));
      steps.push_back(make_step(StepType::receive, {kInput, 0}, {kScratch, slot}, count));
      steps.push_back(after(make_step(StepType::send, {kOutput, own}, {kInput, 0}, count), reducer,
                            2 * (ranks - 1) - 1));
      steps.push_back(make_step(StepType::receive, {kInput, 0}, {kOutput, theirs}, count));
      Step reduction = make_step(StepType::reduce, {kScratch, slot}, {kOutput, own}, count);
      if (block == 0) reduction = after(reduction, ranks - 2, 1);
      reductions.push_back(reduction);
    }
    add_block(schedule, rank, kNone, kNone).steps = std::move(reductions);
  }
  return schedule;
}

Schedule pairwise_all_to_all(int ranks, std::uint32_t count) {
  Schedule schedule = stepwise_all_to_all(ranks, count);
  for (RankProgram& program : schedule.ranks) {
    for (ThreadBlock& block : program.blocks) {
      // The first step of each kind stands for all.
      auto end = std::unique(block.steps.begin(), block.steps.end(),
                             [](const Step& a, const Step& b) { return a.type == b.type; });
      block.steps.erase(end, block.steps.end());
      for (Step& step : block.steps) step.count = count;
    }
  }
  return schedule;
}

Schedule stepwise_all_to_all(int ranks, std::uint32_t count) {
  Schedule schedule =
      empty_schedule(Collective::all_to_all, ranks, static_cast<std::uint32_t>(ranks) * count);
  schedule.in_place = false;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint32_t own = static_cast<std::uint32_t>(rank) * count;
    for (int peer = 0; peer < ranks; ++peer) {
      const std::uint32_t theirs = static_cast<std::uint32_t>(peer) * count;
      if (peer == rank) {
        Steps& steps = add_block(schedule, rank, kNone, kNone, 1).steps;
        for (std::uint32_t i = 0; i < count; ++i) {
          steps.push_back(make_step(StepType::copy, {kInput, own + i}, {kOutput, own + i}));
        }
        continue;
      }
      Steps& steps = add_block(schedule, rank, peer, peer).steps;
      for (std::uint32_t i = 0; i < count; ++i) {
        steps.push_back(make_step(StepType::send, {kInput, theirs + i}, {kInput, 0}));
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        steps.push_back(make_step(StepType::receive, {kInput, 0}, {kOutput, theirs + i}));
      }
    }
  }
  return schedule;
}

Schedule chain_broadcast(int ranks, std::uint32_t chunks) {
  Schedule schedule = empty_schedule(Collective::broadcast, ranks, chunks);
  schedule.root = 1;
  for (int i = 0; i < ranks; ++i) {
    const int rank = (i + schedule.root) % ranks;
    const int next = i == ranks - 1 ? kNone : (rank + 1) % ranks;
    const int previous = i == 0 ? kNone : (rank + ranks - 1) % ranks;
    Steps& steps = add_block(schedule, rank, next, previous).steps;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      if (i == 0) {
        steps.push_back(make_step(StepType::send, {kInput, chunk}, {kInput, 0}));
        steps.push_back(make_step(StepType::copy, {kInput, chunk}, {kOutput, chunk}));
      } else {
        steps.push_back(make_step(next == kNone ? StepType::receive : StepType::receive_copy_send,
                                  {kInput, 0}, {kOutput, chunk}));
      }
    }
  }
  return schedule;
}

Schedule relayed_all_gather(int ranks) {
  Schedule schedule =
      empty_schedule(Collective::all_gather, ranks, static_cast<std::uint32_t>(ranks));
  const Ring ring{ranks, 0, 1};
  for (int rank = 0; rank < ranks; ++rank) {
    add_block(schedule, rank, kNone, static_cast<int>(ring.part(rank, 1)));
    add_block(schedule, rank, static_cast<int>(ring.part(rank, -1)), kNone);
    auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    blocks[1].steps.push_back(make_step(StepType::send, {kInput, 0}, {kInput, 0}));
    for (int i = 1; i < ranks; ++i) {
      const std::uint32_t chunk = ring.part(rank, i);
      blocks[0].steps.push_back(make_step(StepType::receive, {kInput, 0}, {kOutput, chunk}));
      if (i == ranks - 1) break;
      blocks[1].steps.push_back(
          after(make_step(StepType::send, {kOutput, chunk}, {kInput, 0}), 0, i - 1));
    }
    blocks[1].steps.push_back(
        make_step(StepType::copy, {kInput, 0}, {kOutput, static_cast<std::uint32_t>(rank)}));
  }
  return schedule;
}

Schedule one_slot_reduce(int ranks, std::uint32_t chunks) {
  Schedule schedule = empty_schedule(Collective::reduce, ranks, chunks);
  const int adder = ranks - 1;
  for (int peer = 1; peer < ranks; ++peer) {
    Steps& sent = add_block(schedule, peer, 0, kNone).steps;
    Steps& received = add_block(schedule, 0, kNone, peer).steps;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      sent.push_back(make_step(StepType::send, {kInput, chunk}, {kInput, 0}));
      Step receive = make_step(StepType::receive, {kInput, 0},
                               {kScratch, static_cast<std::uint32_t>(peer - 1)});
      // In the adder, each chunk is a copy and a reduction for each peer.
      if (chunk > 0) receive = after(receive, adder, static_cast<int>(chunk - 1) * ranks + peer);
      received.push_back(receive);
    }
  }
  schedule.ranks[0].scratch_chunks = static_cast<std::uint32_t>(ranks - 1);
  Steps& steps = add_block(schedule, 0, kNone, kNone).steps;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    steps.push_back(make_step(StepType::copy, {kInput, chunk}, {kOutput, chunk}));
    for (int peer = 1; peer < ranks; ++peer) {
      steps.push_back(
          after(make_step(StepType::reduce, {kScratch, static_cast<std::uint32_t>(peer - 1)},
                          {kOutput, chunk}),
                peer - 1, static_cast<int>(chunk)));
    }
  }
  return schedule;
}

Schedule there_and_back_all_reduce(int ranks, std::uint32_t chunks) {
  Schedule schedule = empty_schedule(Collective::all_reduce, ranks, chunks);
  const int last = ranks - 1;
  for (int rank = 0; rank < ranks; ++rank) {
    const int next = rank == last ? kNone : rank + 1;
    add_block(schedule, rank, next, rank - 1, 0);
    add_block(schedule, rank, rank - 1, next, 1);
    auto& blocks = schedule.ranks[static_cast<std::size_t>(rank)].blocks;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const StepType there = rank == 0      ? StepType::send
                             : rank == last ? StepType::receive_reduce_copy
                                            : StepType::receive_reduce_send;
      const StepType back = rank == 0      ? StepType::receive
                            : rank == last ? StepType::send
                                           : StepType::receive_copy_send;
      blocks[0].steps.push_back(make_step(there, {kInput, chunk}, {kOutput, chunk}));
      blocks[1].steps.push_back(make_step(back, {kOutput, chunk}, {kOutput, chunk}));
      if (rank == last)
        blocks[1].steps.back() = after(blocks[1].steps.back(), 0, static_cast<int>(chunk));
    }
  }
  return schedule;
}

}  // namespace towpath::collective::samples
