// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/machine.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "sentence.hpp"

namespace towpath::machine {
namespace {
using namespace literals;
using Route = std::vector<int>;

GpuCost some_cost() {
  GpuCost cost;
  for (ProtocolCost& protocol : cost.protocol) protocol.block_rate = 10_GBps;
  return cost;
}

// A machine in the making, with short words for what the tests vary.
class Draft {
 public:
  Draft() : builder_("draft") { builder_.set_gpu_cost(some_cost()); }
  int gpu(const char* name, bool forwards = false, int host = 0) {
    return builder_.add_device({name, DeviceKind::gpu, host, forwards});
  }
  int crossing(const char* name) {
    return builder_.add_device({name, DeviceKind::nvswitch, 0, true});
  }
  void link(int from, int to, Time latency) {
    builder_.add_link({from, to, LinkKind::nvlink, 10_GBps, latency, 0_ns});
  }
  void wire(int one, int other, Time latency) {
    link(one, other, latency);
    link(other, one, latency);
  }
  MachineBuilder& builder() { return builder_; }
  std::shared_ptr<const Machine> build() { return std::move(builder_).build(); }

 private:
  MachineBuilder builder_;
};

TEST(Machine, NumbersRanksInTheOrderGpusWereAdded) {
  Draft draft;
  const int crossing = draft.crossing("switch");
  const int first = draft.gpu("first", false, 3);
  const int second = draft.gpu("second", false, 4);
  draft.wire(first, crossing, 1_ns);
  draft.wire(second, crossing, 1_ns);
  const auto machine = draft.build();
  EXPECT_EQ(machine->ranks(), 2);
  EXPECT_EQ(machine->device_of_rank(0), first);
  EXPECT_EQ(machine->device_of_rank(1), second);
  EXPECT_EQ(machine->host_of_rank(1), 4);
}

TEST(Route, TakesTheLeastLatencyAlthoughItHasMoreLinks) {
  Draft draft;
  const int a = draft.gpu("a"), b = draft.gpu("b"), x = draft.crossing("x");
  draft.wire(a, b, 100_ns);  // links 0, 1
  draft.wire(a, x, 49_ns);   // links 2, 3
  draft.wire(x, b, 50_ns);   // links 4, 5
  EXPECT_EQ(draft.build()->route(0, 1), (Route{2, 4}));
}

TEST(Route, TakesFewerLinksWhenLatenciesAreEqual) {
  Draft draft;
  const int a = draft.gpu("a"), b = draft.gpu("b"), x = draft.crossing("x");
  draft.wire(a, x, 50_ns);
  draft.wire(x, b, 50_ns);
  draft.wire(a, b, 100_ns);  // links 4, 5
  EXPECT_EQ(draft.build()->route(0, 1), (Route{4}));
}

TEST(Route, TakesTheLowestLinkNumbersAmongEquals) {
  Draft draft;
  const int a = draft.gpu("a"), b = draft.gpu("b");
  const int x = draft.crossing("x"), y = draft.crossing("y");
  draft.link(a, x, 1_ns);  // 0
  draft.link(a, y, 1_ns);  // 1
  draft.link(y, b, 1_ns);  // 2: the lowest last link decides
  draft.link(x, b, 1_ns);  // 3
  draft.link(y, b, 1_ns);  // 4: parallel to 2
  draft.link(b, a, 1_ns);
  EXPECT_EQ(draft.build()->route(0, 1), (Route{1, 2}));
}

// Two leaves joined by four spines, with two GPUs at each.
std::shared_ptr<const Machine> leaves_and_spines(std::uint64_t seed) {
  Draft draft;
  std::vector<int> leaves;
  for (const char* leaf : {"leaf0", "leaf1"}) {
    leaves.push_back(draft.builder().add_device({leaf, DeviceKind::network_switch, -1, true}));
  }
  for (const char* spine : {"spine0", "spine1", "spine2", "spine3"}) {
    const int number = draft.builder().add_device({spine, DeviceKind::network_switch, -1, true});
    for (const int leaf : leaves) draft.wire(leaf, number, 1_ns);
  }
  for (const char* gpu : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    draft.wire(draft.gpu(gpu), leaves[gpu[0] < 'e' ? 0 : 1], 1_ns);
  }
  draft.builder().set_hash_seed(seed);
  return draft.build();
}

// The spine between two ranks.
int spine_of(const Machine& machine, int from, int to) {
  return machine.links()[static_cast<std::size_t>(machine.route(from, to).at(1))].to;
}

TEST(Route, BetweenSwitchesIsChosenByAHashOfItsEnds) {
  const auto machine = leaves_and_spines(0);
  const auto other_seed = leaves_and_spines(1);
  std::set<int> spines;
  int differ = 0;
  for (int from = 0; from < 4; ++from) {
    for (int to = 4; to < 8; ++to) {
      EXPECT_EQ(spine_of(*machine, from, to), spine_of(*machine, from, to));
      EXPECT_EQ(machine->route(from, to).size(), 4u);
      spines.insert(spine_of(*machine, from, to));
      differ += spine_of(*machine, from, to) != spine_of(*other_seed, from, to);
    }
  }
  EXPECT_EQ(spines.size(), 4u);
  EXPECT_GT(differ, 4);
}

TEST(Route, ToItselfIsEmpty) {
  Draft draft;
  draft.gpu("alone");
  EXPECT_TRUE(draft.build()->route(0, 0).empty());
}

TEST(Route, FollowsFreeLinksWithoutGoingAstray) {
  Draft draft;
  const int a = draft.gpu("a"), b = draft.gpu("b");
  const int x = draft.crossing("x"), y = draft.crossing("y");
  draft.wire(a, x, 0_ns);
  draft.wire(x, y, 0_ns);
  draft.wire(y, b, 0_ns);
  EXPECT_EQ(draft.build()->route(0, 1), (Route{0, 2, 4}));
}

TEST(Route, PassesOnlyThroughDevicesThatForward) {
  for (const bool forwards : {false, true}) {
    Draft draft;
    const int a = draft.gpu("a"), b = draft.gpu("b", forwards), c = draft.gpu("c");
    draft.wire(a, b, 1_ns);
    draft.wire(b, c, 1_ns);
    const auto machine = draft.build();
    EXPECT_EQ(machine->route(0, 1), (Route{0}));
    if (forwards) {
      EXPECT_EQ(machine->route(0, 2), (Route{0, 2}));
    } else {
      EXPECT_EQ(sentence_of([&] { machine->route(0, 2); }),
                "machine 'draft' has no path from rank 0 (a) to rank 2 (c)");
    }
  }
}

TEST(Route, RejectsARankThatIsNotThere) {
  Draft draft;
  draft.gpu("alone");
  const auto machine = draft.build();
  EXPECT_EQ(sentence_of([&] { machine->route(0, 1); }),
            "machine 'draft' has no rank 1; it has 0 to 0");
  EXPECT_THROW(machine->route(-1, 0), std::invalid_argument);
}

TEST(MachineBuilder, RejectsTwoDevicesOfOneName) {
  Draft draft;
  draft.gpu("a");
  EXPECT_EQ(sentence_of([&] { draft.crossing("a"); }), "machine 'draft' has two devices named 'a'");
}

TEST(MachineBuilder, RejectsImpossibleLinks) {
  Draft draft;
  const int a = draft.gpu("a"), b = draft.gpu("b");
  const Link good{a, b, LinkKind::nvlink, 10_GBps, 1_ns, 0_ns};
  const auto rejects = [&](auto change) {
    Link link = good;
    change(link);
    return !sentence_of([&] { draft.builder().add_link(link); }).empty();
  };
  EXPECT_TRUE(rejects([](Link& link) { link.to = 2; }));
  EXPECT_TRUE(rejects([](Link& link) { link.from = -1; }));
  EXPECT_TRUE(rejects([](Link& link) { link.to = link.from; }));
  EXPECT_TRUE(rejects([](Link& link) { link.rate = Rate(); }));
  EXPECT_TRUE(rejects([](Link& link) { link.latency = Time::from_ps(-1); }));
  EXPECT_TRUE(rejects([](Link& link) { link.message_overhead = Time::from_ps(-1); }));
  EXPECT_FALSE(rejects([](Link&) {}));
}

TEST(MachineBuilder, RejectsAGpuCostWithoutARate) {
  MachineBuilder builder("draft");
  GpuCost cost = some_cost();
  cost.protocol[1].block_rate = Rate();
  EXPECT_EQ(sentence_of([&] { builder.set_gpu_cost(cost); }),
            "machine 'draft', GPU cost: ll.block_rate_gb_per_s is 0; it must be 0.001 to 1000000");
}

TEST(MachineBuilder, RejectsAMachineWithoutGpu) {
  Draft draft;
  draft.crossing("x");
  EXPECT_EQ(sentence_of([&] { draft.build(); }),
            "machine 'draft' has no GPU; it needs at least one");
}

TEST(MachineBuilder, RejectsAMachineWithoutGpuCost) {
  MachineBuilder builder("free");
  builder.add_device({"a", DeviceKind::gpu, 0, false});
  EXPECT_EQ(sentence_of([&] { std::move(builder).build(); }),
            "machine 'free' has no costs of its GPUs");
}

TEST(MachineBuilder, RejectsAGpuThatNoOtherReaches) {
  Draft draft;
  const int a = draft.gpu("a"), b = draft.gpu("b"), c = draft.gpu("c"), x = draft.crossing("x");
  draft.wire(a, b, 1_ns);
  draft.wire(c, x, 1_ns);  // c reaches the switch and, through it, only itself
  EXPECT_EQ(sentence_of([&] { draft.build(); }), "machine 'draft': no other GPU can reach c");
}

TEST(MachineBuilder, RejectsAGpuThatOnlySendsAndNeverReceives) {
  Draft draft;
  const int a = draft.gpu("a"), b = draft.gpu("b");
  draft.link(a, b, 1_ns);
  EXPECT_EQ(sentence_of([&] { draft.build(); }), "machine 'draft': no other GPU can reach a");
}

}  // namespace
}  // namespace towpath::machine
