// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "fabric_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fabrics.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/tenstorrent/metalium/kernel_fabric.hpp"
#include "towpath/tenstorrent/metalium/source_run.hpp"

namespace towpath::tenstorrent::kernels {

using machine::Coordinate;
using metalium::KernelFabric;
using metalium::PlacedKernel;
using sim::Random;
using tenstorrent::Hazard;

namespace {

constexpr noc::Cycle kCyclesMax = 20'000'000;

// Where a flow's words and bytes are, in the L1 of its workers.
constexpr const char* kCommon = R"(
#include <cstring>
#include "fabric/fabric_edm_packet_header.hpp"
#include "tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp"
#include "tt_metal/fabric/hw/inc/packet_header_pool.h"
#include "tt_metal/fabric/hw/inc/tt_fabric_api.h"
using namespace tt::tt_fabric;
enum Mistake : uint32_t { kNone, kNoClose, kOverwrites, kDoesNotWait, kClearsLate, kKeepsBuffers };
constexpr uint32_t kStaging = 0x20000, kBuffers = 0x30000, kWord = 0x50000;
static size_t next_argument;
static uint32_t argument() { return get_arg_val<uint32_t>(next_argument++); }
struct Flow {
  uint32_t route, x, y, form, is_cleared, slots, messages, size, content, cycles, mistake, mistaken;
};
static Flow flow;
static WorkerToFabricEdmSender connection;
static volatile tt_l1_ptr PACKET_HEADER_TYPE* header;
static volatile tt_l1_ptr uint32_t* word() {
  return reinterpret_cast<volatile tt_l1_ptr uint32_t*>(uintptr_t(kWord));
}
static uint64_t there(uint32_t address) { return get_noc_addr(flow.x, flow.y, address); }
static bool is_mistaken(uint32_t message, uint32_t mistake) {
  return flow.mistake == mistake && message == flow.mistaken;
}
static void begin() {
  flow = {argument(), argument(), argument(), argument(), argument(), argument(),
          argument(), argument(), argument(), argument(), argument(), argument()};
  using Sender = WorkerToFabricEdmSender;
  connection = Sender::build_from_args<ProgrammableCoreType::TENSIX>(next_argument);
  connection.open();
  header = PacketHeaderPool::allocate_header();
#ifdef FABRIC_2D
  fabric_set_unicast_route(header, flow.route, 0);
#else
  header->to_chip_unicast(flow.route);
#endif
}
static void end() {
  if (flow.mistake == kNoClose) {
    noc_async_write_barrier();
  } else {
    connection.close();
  }
}
static void send_header() {
  connection.send_payload_flush_blocking_from_address((uint32_t)header, sizeof(PACKET_HEADER_TYPE));
}
static uint32_t word_of(uint32_t message, uint32_t number) {
  uint32_t x = flow.content + message * 0x9e3779b9u + number * 0x85ebca6bu;
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
  return x;
}
)";

constexpr const char* kSender = R"(
static void fill(uint32_t message) {
  uint32_t words[512];
  for (uint32_t i = 0; i < flow.size / 4; ++i) words[i] = word_of(message, i);
  std::memcpy(reinterpret_cast<void*>(uintptr_t(kStaging)), words, flow.size);
}
static void send(uint32_t message) {
  const uint32_t buffer = kBuffers + message % flow.slots * 2048;
  if (flow.form == 0) {
    header->to_noc_fused_unicast_write_atomic_inc(
        {there(buffer), there(kWord), 1, message % 2 == 0}, flow.size);
  } else if (flow.form == 1) {
    header->to_noc_unicast_write({there(buffer)}, flow.size);
  } else {
    const uint16_t half = flow.size / 32 * 16;
    header->to_noc_fused_unicast_scatter_write_atomic_inc(
        {{there(buffer), there(buffer + half)}, there(kWord), {half}, 1}, flow.size);
  }
  connection.wait_for_empty_write_slot();
  connection.send_payload_without_header_non_blocking_from_address(kStaging, flow.size);
  send_header();
  if (flow.form != 1) return;
  header->to_noc_unicast_atomic_inc({there(kWord), 1, true});
  connection.wait_for_empty_write_slot();
  send_header();
}
void kernel_main() {
  begin();
  for (uint32_t message = 0; message < flow.messages; ++message) {
    riscv_wait(flow.cycles);
    fill(message);
    if (message >= flow.slots && !is_mistaken(message, kOverwrites)) {
      noc_semaphore_wait_min(word(), message - flow.slots + 1);
    }
    send(message);
  }
  end();
}
)";

constexpr const char* kReceiver = R"(
static void check(uint32_t message) {
  uint32_t words[512];
  const uint32_t buffer = kBuffers + message % flow.slots * 2048;
  std::memcpy(words, reinterpret_cast<const void*>(uintptr_t(buffer)), flow.size);
  for (uint32_t i = 0; i < flow.size / 4; ++i) {
    if (words[i] != word_of(message, i)) {
      DeviceTimestampedData("wrong", message);
      return;
    }
  }
}
static void free_buffer() {
  header->to_noc_unicast_atomic_inc({there(kWord), 1, false});
  connection.wait_for_empty_write_slot();
  send_header();
}
void kernel_main() {
  begin();
  for (uint32_t message = 0; message < flow.messages; ++message) {
    if (!is_mistaken(message, kDoesNotWait)) {
      noc_semaphore_wait_min(word(), flow.is_cleared ? 1 : message + 1);
    }
    check(message);
    riscv_wait(flow.cycles);
    const bool clears_late = is_mistaken(message, kClearsLate);
    if (flow.is_cleared && !clears_late) noc_semaphore_set(word(), 0);
    if (flow.mistake != kKeepsBuffers || message < flow.mistaken) free_buffer();
    if (clears_late) noc_semaphore_set(word(), 0);
  }
  end();
}
)";

bool chance(Random& random, double probability) { return random.uniform() < probability; }
std::uint32_t pick(Random& random, std::uint32_t first, std::uint32_t last) {
  return static_cast<std::uint32_t>(random.between(first, last));
}

std::shared_ptr<const machine::ChipCluster> cluster_of(const FabricPlan& plan) {
  return machine::chips_on_grid(plan.columns, plan.rows, plan.has_rings, plan.links);
}
metalium::FabricMode mode_of(const FabricPlan& plan) { return {plan.is_mesh, plan.has_rings}; }

// The fabric of a plan, without kernels.
struct Probe {
  explicit Probe(const FabricPlan& plan)
      : cluster(cluster_of(plan), {.finds_hazards = false}), fabric(cluster, mode_of(plan)) {}
  Cluster cluster;
  KernelFabric fabric;
};

Coordinate any_worker(Random& random) {
  return {static_cast<int>(random.below(4)), static_cast<int>(random.below(4))};
}

FabricFlow random_flow(Random& random) {
  FabricFlow flow;
  flow.form = static_cast<FabricFlow::Form>(random.below(3));
  flow.is_cleared = chance(random, 0.3);
  flow.slots = flow.is_cleared ? 1 : pick(random, 1, 4);
  flow.messages = pick(random, 1, 8);
  flow.size_bytes = 32 * pick(random, 1, 64);
  flow.content = static_cast<std::uint32_t>(random.bits());
  if (chance(random, 0.5)) flow.sender_cycles = pick(random, 0, 3000);
  if (chance(random, 0.5)) flow.receiver_cycles = pick(random, 0, 3000);
  return flow;
}

// What flows have taken: channels of routers, and workers.
class Taken {
 public:
  Taken(const FabricPlan& plan, const KernelFabric& fabric) : plan_(plan), fabric_(fabric) {
    for (const FabricFlow& flow : plan.flows) take(flow);
  }
  bool is_free(const FabricFlow& flow) const {
    return !channels_.contains(channel(flow.from, flow.to, flow.plane)) &&
           !channels_.contains(channel(flow.to, flow.from, flow.plane)) &&
           is_free(flow.from, flow.sender) && is_free(flow.to, flow.receiver);
  }
  bool is_free(int chip, Coordinate worker) const { return !workers_.contains({chip, worker}); }
  void take(const FabricFlow& flow) {
    channels_.insert(channel(flow.from, flow.to, flow.plane));
    channels_.insert(channel(flow.to, flow.from, flow.plane));
    workers_.insert({flow.from, flow.sender});
    workers_.insert({flow.to, flow.receiver});
  }

 private:
  std::pair<int, std::uint32_t> channel(int from, int to, int plane) const {
    return {from, fabric_.channel_to(from, to, plane)};
  }
  const FabricPlan& plan_;
  const KernelFabric& fabric_;
  std::set<std::pair<int, std::uint32_t>> channels_;
  std::set<std::pair<int, Coordinate>> workers_;
};

// Without turns, both are in one row or in one column.
bool are_reachable(const FabricPlan& plan, int one, int other) {
  return one != other && (plan.is_mesh || one / plan.columns == other / plan.columns ||
                          one % plan.columns == other % plan.columns);
}

int hops_between(const FabricPlan& plan, int from, int to) {
  const auto along = [&](int one, int other, int size) {
    const int hops = std::abs(one - other);
    return plan.has_rings && size > 2 ? std::min(hops, size - hops) : hops;
  };
  return along(from % plan.columns, to % plan.columns, plan.columns) +
         along(from / plan.columns, to / plan.columns, plan.rows);
}

// As many as asked for, and fewer where there is no room.
void add_flows(FabricPlan& plan, Random& random, std::uint32_t count) {
  const Probe probe(plan);
  Taken taken(plan, probe.fabric);
  const auto chips = static_cast<std::uint64_t>(plan.columns * plan.rows);
  for (std::uint32_t tries = 0; tries < 20 * count && plan.flows.size() < count; ++tries) {
    FabricFlow flow = random_flow(random);
    flow.from = static_cast<int>(random.below(chips));
    flow.to = static_cast<int>(random.below(chips));
    flow.plane = static_cast<int>(random.below(static_cast<std::uint64_t>(plan.links)));
    flow.sender = any_worker(random);
    flow.receiver = any_worker(random);
    if (!are_reachable(plan, flow.from, flow.to) || !taken.is_free(flow)) continue;
    taken.take(flow);
    plan.flows.push_back(flow);
  }
}

std::uint32_t number_of(Mistake mistake) {
  switch (mistake) {
    case Mistake::missing_teardown: return 1;
    case Mistake::source_overwritten: return 2;
    case Mistake::sync_before_payload: return 3;
    case Mistake::semaphore_cleared_after_notification: return 4;
    case Mistake::buffer_chain_too_small: return 5;
    default: return 0;
  }
}

// --- running ------------------------------------------------------------------------------------

PlacedKernel kernel_of(const FabricPlan& plan, const machine::Chip& chip, const FabricFlow& flow,
                       bool is_receiver) {
  const bool is_mistaken = flow.is_receivers_mistake == is_receiver;
  const int here = is_receiver ? flow.to : flow.from;
  const int far = is_receiver ? flow.from : flow.to;
  const Coordinate far_core = is_receiver ? flow.sender : flow.receiver;
  const Coordinate far_tile = chip.worker(far_core.x, far_core.y);
  const auto word = [](auto value) { return static_cast<std::uint32_t>(value); };
  PlacedKernel kernel{
      .chip = here,
      .core = is_receiver ? flow.receiver : flow.sender,
      .source = {.file = is_receiver ? "receiver.cpp" : "sender.cpp",
                 .text = std::string(kCommon) + (is_receiver ? kReceiver : kSender)},
      .runtime_args = {word(plan.is_mesh ? far : hops_between(plan, here, far)), word(far_tile.x),
                       word(far_tile.y), word(flow.form), word(flow.is_cleared), flow.slots,
                       flow.messages, flow.size_bytes, flow.content,
                       is_receiver ? flow.receiver_cycles : flow.sender_cycles,
                       is_mistaken ? number_of(flow.mistake) : 0, flow.mistaken_message}};
  kernel.connections.push_back({kernel.runtime_args.size(), far, flow.plane});
  return kernel;
}

Core core_of(const FabricFlow& flow, const machine::Chip& chip, bool is_receiver) {
  const Coordinate core = is_receiver ? flow.receiver : flow.sender;
  return {is_receiver ? flow.to : flow.from, chip.worker(core.x, core.y)};
}

}  // namespace

FabricPlan random_fabric_plan(std::uint64_t seed) {
  Random random(seed, "fabric programs");
  FabricPlan plan;
  plan.seed = seed;
  plan.columns = static_cast<int>(pick(random, 2, 4));
  plan.rows = chance(random, 0.5) ? 1 : 2;
  plan.links = static_cast<int>(pick(random, 1, 2));
  plan.has_rings = plan.columns > 2 && chance(random, 0.4);
  plan.is_mesh = plan.rows > 1 && chance(random, 0.6);
  if (chance(random, 0.8)) plan.start_skew_cycles = random.between(0, 2000);
  if (chance(random, 0.8)) plan.program_skew_cycles = random.between(0, 20'000);
  if (chance(random, 0.15)) plan.frame_loss = 0.1 * random.uniform();
  add_flows(plan, random, pick(random, 1, 6));
  return plan;
}

std::string FabricPlan::describe() const {
  std::string text = fmt::format("seed {}: {} x {} chips, {} links{}, {}", seed, columns, rows,
                                 links, has_rings ? " with rings" : "", is_mesh ? "mesh" : "lines");
  for (const FabricFlow& flow : flows) {
    text +=
        fmt::format("; {} to {} on plane {}: form {}{}, {} slots, {} messages of {}", flow.from,
                    flow.to, flow.plane, static_cast<int>(flow.form),
                    flow.is_cleared ? " cleared" : "", flow.slots, flow.messages, flow.size_bytes);
  }
  return text;
}

Expected inject(FabricPlan& plan, Mistake mistake, std::uint64_t seed) {
  Random random(seed, fmt::format("mistake over the fabric {}", name_of(mistake)));
  FabricFlow& flow = plan.flows[random.below(plan.flows.size())];
  const machine::Chip chip = *cluster_of(plan)->chips.front().chip;
  flow.mistake = mistake;
  Expected expected{std::string(name_of(mistake)), {}};
  switch (mistake) {
    case Mistake::missing_teardown: flow.is_receivers_mistake = chance(random, 0.5); break;
    case Mistake::source_overwritten:
      flow.messages = flow.slots + pick(random, 1, 4);
      flow.mistaken_message = pick(random, flow.slots, flow.messages - 1);
      break;
    case Mistake::sync_before_payload: flow.is_receivers_mistake = true; break;
    case Mistake::semaphore_cleared_after_notification:
      flow.is_receivers_mistake = flow.is_cleared = true;
      flow.slots = 1;
      flow.messages = pick(random, 2, 6);
      flow.mistaken_message = pick(random, 0, flow.messages - 2);
      break;
    case Mistake::two_workers_on_one_channel: {
      const Probe probe(plan);
      const Taken taken(plan, probe.fabric);
      do flow.second_sender = any_worker(random);
      while (!taken.is_free(flow.from, flow.second_sender));
      expected.cores = {core_of(flow, chip, false),
                        {flow.from, chip.worker(flow.second_sender.x, flow.second_sender.y)}};
      return expected;
    }
    case Mistake::buffer_chain_too_small:
      flow.is_receivers_mistake = true;
      flow.mistaken_message = pick(random, 0, 3);
      flow.messages = flow.mistaken_message + flow.slots + pick(random, 1, 3);
      expected.cores = {core_of(flow, chip, true), core_of(flow, chip, false)};
      expected.names_all = true;
      return expected;
    default: return {"none", {}};
  }
  expected.cores = {core_of(flow, chip, flow.is_receivers_mistake)};
  return expected;
}

Outcome run(const FabricPlan& plan) {
  const auto cluster = cluster_of(plan);
  const machine::Chip& chip = *cluster->chips.front().chip;
  metalium::SourceProgram program{
      .kernels = {},
      .options = {.seed = plan.seed,
                  .start_skew_cycles = plan.start_skew_cycles,
                  .program_skew_cycles = plan.program_skew_cycles,
                  .cycles_max = kCyclesMax,
                  .link_faults = std::vector<ethernet::LinkFaults>(
                      cluster->links.size(), {.frame_loss = plan.frame_loss})},
      .fabric = mode_of(plan)};
  for (const FabricFlow& flow : plan.flows) {
    for (const bool is_receiver : {false, true}) {
      program.kernels.push_back(kernel_of(plan, chip, flow, is_receiver));
    }
    if (flow.mistake != Mistake::two_workers_on_one_channel) continue;
    program.kernels.push_back(kernel_of(plan, chip, flow, false));
    program.kernels.back().core = flow.second_sender;
  }
  return outcome_of([&] {
    const metalium::SourceResult result = run_source_program(cluster, program);
    return std::ranges::none_of(result.log.values,
                                [](const auto& value) { return value.name == "wrong"; });
  });
}

}  // namespace towpath::tenstorrent::kernels
