// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/shared_slots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

// Every interleaving of two ranks that run through some steps with fewer slots than steps. The
// pieces are those that processors interleave: each loads or stores one word that the ranks share,
// or the bytes that it guards. What they may reorder is ruled out by release and acquire.

namespace towpath::live {
namespace {

constexpr std::uint32_t kStamp = 5;

// One rank's program counter and what it needs to go on.
struct Rank {
  std::uint64_t step = 1;
  int piece = 0;
};

enum class Reads : std::uint8_t { both, only_rank_1 };

struct Scene {
  Reads reads;
  std::uint64_t slots;
  std::uint64_t steps;
};

class World {
 public:
  explicit World(Scene scene) : scene_(scene), slots_{make(0), make(1)} {
    for (auto& bytes : memory_) bytes.assign(SharedSlots::bytes(2, scene.slots), std::byte{0});
    slots_[0] = make(0);
    slots_[1] = make(1);
  }

  bool is_over() const { return ranks_[0].step > scene_.steps && ranks_[1].step > scene_.steps; }

  // Does the next piece of a rank; false where it has to wait, or is through.
  bool advance(int self) {
    Rank& rank = ranks_[static_cast<std::size_t>(self)];
    SharedSlots& slots = slots_[static_cast<std::size_t>(self)];
    const int peer = 1 - self;
    const bool writes = scene_.reads == Reads::both || self == 0;
    const bool reads = scene_.reads == Reads::both || self == 1;
    if (rank.step > scene_.steps) return false;
    if (rank.piece == 0 && !writes) rank.piece = 2;
    if (rank.piece == 2 && !reads) rank.piece = 4;
    switch (rank.piece) {
      case 0:  // a slot that is free stays so
        if (!slots.is_free(rank.step)) return false;
        *slots.inline_bytes(rank.step) = value(self, rank.step);
        *slots.slot(rank.step) = value(self, rank.step);
        break;
      case 1: slots.publish(rank.step, kStamp); break;
      case 2:
        if (!slots.has_arrived(peer, rank.step, kStamp)) return false;
        break;
      case 3:
        EXPECT_EQ(*slots.inline_bytes(peer, rank.step), value(peer, rank.step));
        EXPECT_EQ(*slots.slot(peer, rank.step), value(peer, rank.step));
        break;
      default:
        slots.end(rank.step);
        ++rank.step;
        rank.piece = 0;
        return true;
    }
    ++rank.piece;
    return true;
  }

 private:
  static std::byte value(int rank, std::uint64_t step) {
    return static_cast<std::byte>(static_cast<std::uint64_t>(rank) * 100 + step);
  }
  SharedSlots make(int rank) {
    return SharedSlots(rank, {memory_[0].data(), memory_[1].data()}, scene_.slots);
  }

  Scene scene_;
  std::array<std::vector<std::byte>, 2> memory_;
  std::array<SharedSlots, 2> slots_;
  std::array<Rank, 2> ranks_;
};

// Runs through the choices so far, then takes rank 0 first wherever both can go on. Leaves in
// `choices` what to try next; false where all were tried.
struct Explorer {
  std::vector<std::uint8_t> choices;
  std::vector<bool> was_free;  // whether the other rank could have gone on, too

  void run(Scene scene) {
    World world(scene);
    was_free.clear();
    for (std::size_t turn = 0; !world.is_over(); ++turn) {
      if (turn == choices.size()) choices.push_back(0);
      const bool did = world.advance(choices[turn]);
      // A rank that cannot go on changes nothing: the other one's turn.
      if (!did) {
        ASSERT_TRUE(world.advance(1 - choices[turn])) << "neither rank can go on";
      }
      was_free.push_back(did);
    }
    choices.resize(was_free.size());
  }
  bool next() {
    while (!choices.empty() && (choices.back() == 1 || !was_free[choices.size() - 1])) {
      choices.pop_back();
      was_free.pop_back();
    }
    if (choices.empty()) return false;
    choices.back() = 1;
    return true;
  }
};

std::uint64_t explore(Scene scene, std::uint64_t most) {
  Explorer explorer;
  std::uint64_t runs = 0;
  do {
    explorer.run(scene);
    ++runs;
  } while (!testing::Test::HasFailure() && runs < most && explorer.next());
  return runs;
}

TEST(SharedSlots, NoInterleavingShowsBytesOfAnotherStep) {
  constexpr std::uint64_t kMost = 1'000'000;
  for (const Scene scene : {Scene{Reads::only_rank_1, 2, 3}, Scene{Reads::both, 1, 2}}) {
    const std::uint64_t runs = explore(scene, kMost);
    EXPECT_GT(runs, 100U);
    EXPECT_LT(runs, kMost) << "not all were tried";
  }
}

TEST(SharedSlots, AnotherStampIsAMismatch) {
  std::vector<std::byte> first(SharedSlots::bytes(2)), second(SharedSlots::bytes(2));
  SharedSlots writer(0, {first.data(), second.data()}), reader(1, {first.data(), second.data()});
  EXPECT_FALSE(reader.has_arrived(0, 1, 7));
  writer.publish(1, 7);
  EXPECT_TRUE(reader.has_arrived(0, 1, 7));
  EXPECT_THROW(reader.has_arrived(0, 1, 8), Mismatch);
}

TEST(SharedSlots, ASlotIsFreeOnceAllHaveEndedItsStep) {
  std::vector<std::byte> first(SharedSlots::bytes(2)), second(SharedSlots::bytes(2));
  SharedSlots writer(0, {first.data(), second.data()}), reader(1, {first.data(), second.data()});
  EXPECT_TRUE(writer.is_free(SharedSlots::kSlots));
  EXPECT_FALSE(writer.is_free(SharedSlots::kSlots + 1));
  reader.end(1);
  EXPECT_TRUE(writer.is_free(SharedSlots::kSlots + 1));
  EXPECT_FALSE(writer.is_free(SharedSlots::kSlots + 2));
}

}  // namespace
}  // namespace towpath::live
