// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "schedules.hpp"
#include "sentence.hpp"

namespace towpath::collective {
namespace {
using namespace samples;

std::string complaint(const Schedule& schedule) {
  return sentence_of<ScheduleError>([&] { check_structure(schedule); });
}

TEST(Schedule, NamesGoThereAndBack) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
        Collective::broadcast, Collective::reduce, Collective::all_to_all}) {
    EXPECT_EQ(collective_from(name_of(collective)), collective);
  }
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    EXPECT_EQ(protocol_from(name_of(protocol)), protocol);
  }
  EXPECT_EQ(collective_from("all-reduce"), std::nullopt);
  EXPECT_EQ(name_of(StepType::receive_reduce_copy_send), "receive_reduce_copy_send");
  EXPECT_EQ(name_of(StepType::nop), "nop");
}

TEST(Schedule, PartsAreOneRanksShareOfTheArray) {
  const Schedule gather = ring_all_gather(4, 2);
  EXPECT_EQ(chunks_in(gather, 1, Buffer::input), 2u);
  EXPECT_EQ(chunks_in(gather, 1, Buffer::output), 8u);
  EXPECT_EQ(shared_chunk(gather, 1, Buffer::input, 1), 3u);
  EXPECT_EQ(shared_chunk(gather, 1, Buffer::output, 3), 3u);
  const Schedule scatter = ring_reduce_scatter(3);
  EXPECT_EQ(chunks_in(scatter, 2, Buffer::output), 2u);
  EXPECT_EQ(shared_chunk(scatter, 2, Buffer::output, 0), 4u);
  EXPECT_EQ(chunks_in(two_shot_all_reduce(3, 2), 0, Buffer::scratch), 4u);
}

TEST(Schedule, CountsItsSteps) {
  // Per rank: send, 2 * 3 that pass on, one that ends, for each of two channels.
  EXPECT_EQ(step_count(ring_all_reduce(4, 2)), 4u * 2 * 7);
}

struct Mistake {
  const char* says;
  std::function<void(Schedule&)> make;
};

ThreadBlock& only_nops(ThreadBlock& block) {
  for (Step& step : block.steps) step.type = StepType::nop;
  return block;
}

// Each on a two-shot all-reduce of three ranks: on rank 1, thread blocks 0 and 1 serve the peers 0
// and 2, thread block 2 reduces.
std::vector<Mistake> mistakes() {
  const auto block = [](Schedule& s, std::size_t b) -> ThreadBlock& {
    return s.ranks[1].blocks[b];
  };
  const auto step = [=](Schedule& s, std::size_t b, std::size_t i) -> Step& {
    return block(s, b).steps[i];
  };
  return {
      {"it has no ranks", [](Schedule& s) { s.ranks.clear(); }},
      {"0 chunks", [](Schedule& s) { s.chunks = 0; }},
      {"needs a multiple of 3 chunks, not 4",
       [](Schedule& s) {
         s.collective = Collective::all_to_all;
         s.chunks = 4;
       }},
      {"its root is rank 3 of 3", [](Schedule& s) { s.root = 3; }},
      {"neither in place nor out of place",
       [](Schedule& s) { s.in_place = s.out_of_place = false; }},
      {"its send peer is rank 1", [=](Schedule& s) { block(s, 0).send_peer = 1; }},
      {"its receive peer is rank 3", [=](Schedule& s) { block(s, 0).receive_peer = 3; }},
      {"its channel is 1", [=](Schedule& s) { block(s, 0).channel = 1; }},
      {"another thread block of the rank also sends to rank 2",
       [=](Schedule& s) { block(s, 2).send_peer = 2; }},
      {"another thread block of the rank also receives from rank 2",
       [=](Schedule& s) { block(s, 2).receive_peer = 2; }},
      {"it is a send, but its thread block has no send peer",
       [=](Schedule& s) { block(s, 0).send_peer = kNone; }},
      {"it is a receive, but its thread block has no receive peer",
       [=](Schedule& s) { block(s, 0).receive_peer = kNone; }},
      {"its count is 0", [=](Schedule& s) { step(s, 0, 0).count = 0; }},
      {"its source is chunk 3 of the input buffer, which has 3",
       [=](Schedule& s) { step(s, 0, 0).source_chunk = 3; }},
      {"its source is chunk 4294967295 of",
       [=](Schedule& s) { step(s, 0, 0).source_chunk = UINT32_MAX; }},
      {"its destination is chunk 2 of the scratch buffer, which has 2",
       [=](Schedule& s) { step(s, 0, 1).destination_chunk = 2; }},
      {"its source is chunks 1 to 3 of the input buffer, which has 3",
       [=](Schedule& s) {
         step(s, 0, 0).source_chunk = 1;
         step(s, 0, 0).count = 3;
       }},
      {"it depends on thread block 7", [=](Schedule& s) { step(s, 0, 2).depends_on_block = 7; }},
      {"it depends on step 9 of thread block 2, which has 4 steps",
       [=](Schedule& s) { step(s, 0, 2).depends_on_step = 9; }},
      {"it depends on its own thread block",
       [=](Schedule& s) { step(s, 0, 2) = after(step(s, 0, 2), 0, 1); }},
      {"which does not publish its completion",
       [=](Schedule& s) { step(s, 2, 3).publishes = false; }},
      {"where no thread block receives from rank 1",
       [](Schedule& s) { only_nops(s.ranks[0].blocks[0]).receive_peer = kNone; }},
      {"where no thread block sends to rank 1",
       [](Schedule& s) { only_nops(s.ranks[0].blocks[0]).send_peer = kNone; }},
  };
}

TEST(CheckStructure, NamesEachMistake) {
  for (const Mistake& mistake : mistakes()) {
    Schedule schedule = two_shot_all_reduce(3, 1);
    ASSERT_EQ(complaint(schedule), "");
    mistake.make(schedule);
    EXPECT_NE(complaint(schedule).find(mistake.says), std::string::npos)
        << "expected: " << mistake.says << "\nfound: " << complaint(schedule);
  }
}

TEST(CheckStructure, NamesThePlace) {
  Schedule schedule = two_shot_all_reduce(3, 1);
  schedule.ranks[1].blocks[0].steps[1].destination_chunk = 2;
  EXPECT_EQ(complaint(schedule),
            "schedule 'test', rank 1, thread block 0, step 1: its destination is chunk 2 of the "
            "scratch buffer, which has 2");
}

TEST(Fingerprint, DiffersWhenAnyFieldButTheNameDoes) {
  const std::vector<std::function<void(Schedule&)>> changes = {
      [](Schedule& s) { s.collective = Collective::reduce; },
      [](Schedule& s) { s.protocol = Protocol::ll; },
      [](Schedule& s) { s.channels = 2; },
      [](Schedule& s) { s.chunks = 9; },
      [](Schedule& s) { s.root = 1; },
      [](Schedule& s) { s.in_place = false; },
      [](Schedule& s) { s.out_of_place = false; },
      [](Schedule& s) { s.size_bytes_min = 1; },
      [](Schedule& s) { s.size_bytes_max = 1; },
      [](Schedule& s) { s.rendezvous = Rendezvous::peers; },
      [](Schedule& s) { s.notification = Notification::attached; },
      [](Schedule& s) { s.notification = Notification::deferred; },
      [](Schedule& s) { s.ranks.emplace_back(); },
      [](Schedule& s) { s.ranks[2].input_chunks = 1; },
      [](Schedule& s) { s.ranks[2].output_chunks = 1; },
      [](Schedule& s) { s.ranks[2].scratch_chunks = 1; },
      [](Schedule& s) { s.ranks[2].blocks.emplace_back(); },
      [](Schedule& s) { s.ranks[2].blocks[1].send_peer = kNone; },
      [](Schedule& s) { s.ranks[2].blocks[1].receive_peer = kNone; },
      [](Schedule& s) { s.ranks[2].blocks[1].channel = 1; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps.pop_back(); },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].type = StepType::nop; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].source = Buffer::output; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].destination = Buffer::input; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].publishes = false; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].source_chunk = 1; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].destination_chunk = 2; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].count = 2; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].depends_on_block = 0; },
      [](Schedule& s) { s.ranks[2].blocks[1].steps[1].depends_on_step = 0; },
      [](Schedule& s) { std::swap(s.ranks[1], s.ranks[2]); },
  };
  Schedule schedule = two_shot_all_reduce(3, 1);
  std::set<std::uint64_t> fingerprints = {fingerprint(schedule)};
  for (const auto& change : changes) {
    Schedule changed = schedule;
    change(changed);
    EXPECT_TRUE(fingerprints.insert(fingerprint(changed)).second);
  }
  schedule.name = "another";
  EXPECT_FALSE(fingerprints.insert(fingerprint(schedule)).second);
}

}  // namespace
}  // namespace towpath::collective
