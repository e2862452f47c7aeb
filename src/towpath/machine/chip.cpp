// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/machine/chip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "towpath/machine/checks.hpp"

namespace towpath::machine {

namespace {

// Wide enough for every chip, small enough that a sum of many cycles fits in an int.
constexpr int kSideMax = 64;
constexpr int kVirtualChannelClassesMax = 4;  // a VC's number has two bits for its class
constexpr int kInitiatorsMax = 4;             // as many as noc::kInitiatorsMax
constexpr int kTransactionIdsMax = 16;        // an id has four bits
constexpr int kTxQueuesMax = 16;
constexpr int kAlignmentMax = 4096;
constexpr int kPcieGenerationMax = 6;
constexpr int kPcieLanesMax = 32;
// Flits and credits on their way are kept in a wheel with a slot per cycle.
constexpr int kLinkCyclesMax = 60;

class ChipChecks : public Checks {
 public:
  explicit ChipChecks(const Chip& chip)
      : Checks(fmt::format("chip '{}'", chip.name)), chip_(chip) {}

  void shape() const {
    number("width", chip_.width, 1, kSideMax);
    number("height", chip_.height, 1, kSideMax);
    const std::size_t expected = static_cast<std::size_t>(chip_.width * chip_.height);
    if (chip_.tiles.size() != expected) {
      fail("has {} tiles; a grid of {} x {} has {}", chip_.tiles.size(), chip_.width, chip_.height,
           expected);
    }
  }

  void figures() const {
    if (chip_.clock < Frequency::from_mhz(1)) {
      fail("clock is {} Hz; it must be at least 1 MHz", chip_.clock.hz());
    }
    memory("l1_bytes", chip_.l1_bytes);
    if (!chip_.ethernet_cores.empty()) {
      memory("ethernet_l1_bytes", chip_.ethernet_l1_bytes);
      ethernet(chip_.ethernet);
      ethernet_software(chip_.ethernet_software);
    }
    router(chip_.router);
    niu(chip_.niu);
    if (!chip_.dram_groups.empty()) dram(chip_.dram);
    if (chip_.has_host_link()) pcie(chip_.pcie);
    software(chip_.software);
    alignment(chip_.alignment);
  }

 private:
  using Checks::rate;

  void rate(const char* field, BytesPerCycle rate) const {
    if (rate == BytesPerCycle() || rate.value() > kBytesPerCycleMax) {
      fail("{} is {} bytes per cycle; it must be positive, {} at most", field, rate.value(),
           kBytesPerCycleMax);
    }
  }

  void power_of_two(const char* field, int value) const {
    Checks::power_of_two(field, value, kAlignmentMax);
  }

  void router(const RouterFigures& router) const {
    number("router.flit_bytes", router.flit_bytes, 1, kAlignmentMax);
    number("router.packet_data_flits_max", router.packet_data_flits_max, 1, kCountMax);
    number("router.hop_cycles", router.hop_cycles, 1, kLinkCyclesMax);
    number("router.niu_to_router_cycles", router.niu_to_router_cycles, 1, kLinkCyclesMax);
    number("router.router_to_niu_cycles", router.router_to_niu_cycles, 1, kLinkCyclesMax);
    number("router.credit_return_cycles", router.credit_return_cycles, 1, kLinkCyclesMax);
    number("router.classes", router.classes, 1, kVirtualChannelClassesMax);
    number("router.pool_flits", router.pool_flits, 0, kCountMax);
    number("router.pool_flits_per_vc_max", router.pool_flits_per_vc_max, 0, router.pool_flits);
    number("router.vc_release_cycles", router.vc_release_cycles, 1, kLinkCyclesMax);
    number("router.pool_flits_reserved", router.pool_flits_reserved, 0, router.pool_flits);
  }

  void niu(const NiuFigures& niu) const {
    number("niu.initiators", niu.initiators, 1, kInitiatorsMax);
    number("niu.transaction_ids", niu.transaction_ids, 1, kTransactionIdsMax);
    number("niu.outstanding_per_id_max", niu.outstanding_per_id_max, 1, kCountMax);
    number("niu.request_cycles", niu.request_cycles, 0, kCyclesMax);
    number("niu.read_response_cycles", niu.read_response_cycles, 0, kCyclesMax);
    number("niu.acknowledge_cycles", niu.acknowledge_cycles, 0, kCyclesMax);
    rate("niu.port_rate", niu.port_rate);
    rate("niu.request_stream_rate", niu.request_stream_rate);
    number("niu.request_streams", niu.request_streams, 1, kCountMax);
    rate("niu.response_stream_rate", niu.response_stream_rate);
    number("niu.backoff_cycles_min", niu.backoff_cycles_min, 1, kCyclesMax);
    number("niu.backoff_cycles_max", niu.backoff_cycles_max, niu.backoff_cycles_min, kCyclesMax);
  }

  void dram(const DramFigures& dram) const {
    number("dram.channels_per_group", dram.channels_per_group, 1, kCountMax);
    rate("dram.channel_rate", dram.channel_rate);
    number("dram.read_cycles", dram.read_cycles, 0, kCyclesMax);
    number("dram.write_cycles", dram.write_cycles, 0, kCyclesMax);
    memory("dram.channel_bytes", dram.channel_bytes);
  }

  void software(const SoftwareFigures& software) const {
    const std::pair<const char*, int> calls[] = {
        {"software.write_cycles", software.write_cycles},
        {"software.read_cycles", software.read_cycles},
        {"software.write_with_state_cycles", software.write_with_state_cycles},
        {"software.read_with_state_cycles", software.read_with_state_cycles},
        {"software.read_held_up_cycles", software.read_held_up_cycles},
        {"software.set_state_cycles", software.set_state_cycles},
        {"software.multicast_cycles", software.multicast_cycles},
        {"software.inline_write_cycles", software.inline_write_cycles},
        {"software.atomic_cycles", software.atomic_cycles},
        {"software.call_cycles", software.call_cycles},
        {"software.write_destination_cycles", software.write_destination_cycles},
        {"software.read_destination_cycles", software.read_destination_cycles},
    };
    for (const auto& [field, cycles] : calls) number(field, cycles, 0, kCyclesMax);
    number("software.poll_cycles", software.poll_cycles, 1, kCyclesMax);
    number("software.reduce_bytes_per_cycle", software.reduce_bytes_per_cycle, 1, kCyclesMax);
    number("software.reduce_latency_cycles", software.reduce_latency_cycles, 0, kCyclesMax);
  }

  void ethernet(const EthernetFigures& ethernet) const {
    number("ethernet.tx_queues", ethernet.tx_queues, 1, kTxQueuesMax);
    number("ethernet.tx_queues_for_kernels", ethernet.tx_queues_for_kernels, 1, ethernet.tx_queues);
    number("ethernet.queue_commands_max", ethernet.queue_commands_max, 1, kCountMax);
    time("ethernet.command_time", ethernet.command_time);
    rate("ethernet.read_rate", ethernet.read_rate);
    power_of_two("ethernet.word_bytes", ethernet.word_bytes);
    number("ethernet.frame_payload_bytes_max", ethernet.frame_payload_bytes_max,
           ethernet.word_bytes, kCountMax);
    number("ethernet.frame_overhead_bytes", ethernet.frame_overhead_bytes, 0, kCountMax);
    rate("ethernet.line_rate", ethernet.line_rate);
    time("ethernet.path_time", ethernet.path_time);
    number("ethernet.frames_unacknowledged_max", ethernet.frames_unacknowledged_max, 1, kCountMax);
    // At zero, frames would be sent again and again at one point in time.
    time("ethernet.resend_timeout", ethernet.resend_timeout, Time::from_ns(1));
    time("ethernet.training_time", ethernet.training_time);
  }

  void ethernet_software(const EthernetSoftwareFigures& software) const {
    number("ethernet_software.send_cycles", software.send_cycles, 0, kCyclesMax);
    number("ethernet_software.poll_cycles", software.poll_cycles, 1, kCyclesMax);
    number("ethernet_software.routing_firmware_cycles", software.routing_firmware_cycles, 0,
           kCyclesMax);
    number("ethernet_software.fabric_loop_cycles", software.fabric_loop_cycles, 1, kCyclesMax);
    number("ethernet_software.fabric_send_cycles", software.fabric_send_cycles, 0, kCyclesMax);
    number("ethernet_software.fabric_receive_cycles", software.fabric_receive_cycles, 0,
           kCyclesMax);
    number("ethernet_software.fabric_cores", software.fabric_cores, 1, 2);
    number("ethernet_software.fabric_payload_bytes", software.fabric_payload_bytes, 64, 65'472);
  }

  void pcie(const PcieFigures& pcie) const {
    number("pcie.generation", pcie.generation, 1, kPcieGenerationMax);
    number("pcie.lanes", pcie.lanes, 1, kPcieLanesMax);
    std::uint64_t last_bytes = 0;
    for (const WindowSize& window : pcie.windows) {
      memory("pcie.windows.size_bytes", window.size_bytes);
      if (window.size_bytes <= last_bytes) fail("pcie.windows are not listed smallest first");
      last_bytes = window.size_bytes;
      number("pcie.windows.count", window.count, 1, kCountMax);
      number("pcie.windows.reserved", window.reserved, 0, window.count);
    }
    window_of("pcie.dynamic_window_bytes", pcie.dynamic_window_bytes);
    window_of("pcie.dma_window_bytes", pcie.dma_window_bytes);
    time("pcie.tile_time", pcie.tile_time);
    memory("pcie.posted_buffer_bytes", pcie.posted_buffer_bytes);
    number("pcie.writes_outstanding", pcie.writes_outstanding, 1, kCountMax);
    time("pcie.strict_time", pcie.strict_time);
    power_of_two("pcie.axi_burst_bytes", pcie.axi_burst_bytes);
    number("pcie.dma_reads_outstanding", pcie.dma_reads_outstanding, 1, kCountMax);
    power_of_two("pcie.dma_alignment_bytes", pcie.dma_alignment_bytes);
    memory("pcie.dma_transfer_bytes_max", pcie.dma_transfer_bytes_max);
  }

  void window_of(const char* field, std::uint64_t size_bytes) const {
    for (const WindowSize& window : chip_.pcie.windows) {
      if (window.size_bytes == size_bytes) return;
    }
    fail("{} is {}, and it has no windows of that size", field, size_bytes);
  }

  void alignment(const Alignment& alignment) const {
    power_of_two("alignment.l1_bytes", alignment.l1_bytes);
    power_of_two("alignment.dram_read_bytes", alignment.dram_read_bytes);
    power_of_two("alignment.dram_write_bytes", alignment.dram_write_bytes);
  }

  const Chip& chip_;
};

// The tiles of each group, row by row.
std::vector<std::vector<Coordinate>> dram_groups_of(const Chip& chip) {
  const ChipChecks checks(chip);
  std::vector<std::vector<Coordinate>> groups;
  for (std::size_t number = 0; number < chip.tiles.size(); ++number) {
    const Tile& tile = chip.tiles[number];
    const Coordinate at = chip.coordinate_of(static_cast<int>(number));
    const bool is_dram = tile.kind == TileKind::dram;
    const int group_max = chip.width * chip.height - 1;
    if (is_dram != (tile.dram_group >= 0) || tile.dram_group > group_max) {
      checks.fail(
          "the {} tile {}-{} is of DRAM group {}; DRAM tiles have one, from 0 to {}, and "
          "no others",
          name_of(tile.kind), at.x, at.y, tile.dram_group, group_max);
    }
    if (!is_dram) continue;
    const std::size_t group = static_cast<std::size_t>(tile.dram_group);
    if (groups.size() <= group) groups.resize(group + 1);
    groups[group].push_back(at);
  }
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].empty()) {
      checks.fail("DRAM group {} has no tile; groups are numbered without gaps", group);
    }
  }
  return groups;
}

// A list of groups chooses the order of tiles within them and nothing else.
void check_dram_groups(const Chip& chip, const std::vector<std::vector<Coordinate>>& of_tiles) {
  std::vector<std::vector<Coordinate>> listed = chip.dram_groups;
  for (std::vector<Coordinate>& group : listed) {
    std::sort(group.begin(), group.end(), [](Coordinate one, Coordinate other) {
      return std::pair(one.y, one.x) < std::pair(other.y, other.x);
    });
  }
  if (listed.size() != of_tiles.size()) {
    ChipChecks(chip).fail("lists {} DRAM groups; its tiles are of {}", listed.size(),
                          of_tiles.size());
  }
  for (std::size_t group = 0; group < listed.size(); ++group) {
    if (listed[group] != of_tiles[group]) {
      ChipChecks(chip).fail("DRAM group {} lists other tiles than those that are of it", group);
    }
  }
}

// Row by row.
std::vector<Coordinate> tiles_of_kind(const Chip& chip, TileKind kind) {
  std::vector<Coordinate> tiles;
  for (std::size_t number = 0; number < chip.tiles.size(); ++number) {
    if (chip.tiles[number].kind == kind) {
      tiles.push_back(chip.coordinate_of(static_cast<int>(number)));
    }
  }
  return tiles;
}

// A list of Ethernet cores chooses their channels and nothing else.
void check_ethernet_cores(const Chip& chip, const std::vector<Coordinate>& of_tiles) {
  const ChipChecks checks(chip);
  for (std::size_t channel = 0; channel < chip.ethernet_cores.size(); ++channel) {
    const Coordinate at = chip.ethernet_cores[channel];
    if (!chip.holds(at) || chip.tile(at).kind != TileKind::ethernet) {
      checks.fail("Ethernet channel {} is at {}-{}, which is no Ethernet tile", channel, at.x,
                  at.y);
    }
    const auto same = std::find(chip.ethernet_cores.begin(), chip.ethernet_cores.end(), at);
    const auto first = static_cast<std::size_t>(same - chip.ethernet_cores.begin());
    if (first != channel) {
      checks.fail("Ethernet channels {} and {} are both at {}-{}; each tile has one", first,
                  channel, at.x, at.y);
    }
  }
  if (chip.ethernet_cores.size() != of_tiles.size()) {
    checks.fail("lists {} Ethernet channels; it has {} Ethernet tiles", chip.ethernet_cores.size(),
                of_tiles.size());
  }
}

std::vector<Coordinate> workers_of(const Chip& chip) {
  std::vector<Coordinate> workers = tiles_of_kind(chip, TileKind::worker);
  if (workers.empty()) ChipChecks(chip).fail("has no worker; it needs at least one");
  return workers;
}

// Workers per row. The logical grid has no gaps, so each row must have the columns of the first.
int worker_columns_of(const Chip& chip, const std::vector<Coordinate>& workers) {
  const auto second_row = std::find_if(workers.begin(), workers.end(), [&](Coordinate worker) {
    return worker.y != workers.front().y;
  });
  const std::size_t columns = static_cast<std::size_t>(second_row - workers.begin());
  for (std::size_t number = 0; number < workers.size(); ++number) {
    const int row = workers[number - number % columns].y;
    const bool is_last_of_row =
        number + 1 == workers.size() || workers[number + 1].y != workers[number].y;
    if (workers[number].y != row || workers[number].x != workers[number % columns].x ||
        is_last_of_row != (number % columns == columns - 1)) {
      ChipChecks(chip).fail(
          "row {} has workers in other columns than row {}; rows with workers must have the same",
          row, workers.front().y);
    }
  }
  return static_cast<int>(columns);
}

}  // namespace

std::string_view name_of(TileKind kind) {
  switch (kind) {
    case TileKind::worker: return "worker";
    case TileKind::dram: return "dram";
    case TileKind::ethernet: return "ethernet";
    case TileKind::pcie: return "pcie";
    case TileKind::arc: return "arc";
    case TileKind::router_only: return "router_only";
    case TileKind::harvested: return "harvested";
  }
  return "unknown";
}

Coordinate Chip::worker(int logical_x, int logical_y) const {
  if (logical_x < 0 || logical_x >= worker_columns || logical_y < 0 || logical_y >= worker_rows()) {
    ChipChecks(*this).fail("has no worker ({}, {}); its logical grid is {} x {}, from (0, 0)",
                           logical_x, logical_y, worker_columns, worker_rows());
  }
  return workers[static_cast<std::size_t>(logical_y * worker_columns + logical_x)];
}

std::shared_ptr<const Chip> build_chip(Chip chip) {
  const ChipChecks checks(chip);
  checks.shape();
  std::vector<std::vector<Coordinate>> groups = dram_groups_of(chip);
  if (chip.dram_groups.empty()) {
    chip.dram_groups = std::move(groups);
  } else {
    check_dram_groups(chip, groups);
  }
  const std::vector<Coordinate> workers = workers_of(chip);
  if (!chip.workers.empty() && chip.workers != workers) {
    checks.fail("lists {} workers in another order or place than its tiles have them",
                chip.workers.size());
  }
  const int columns = worker_columns_of(chip, workers);
  if (chip.worker_columns != 0 && chip.worker_columns != columns) {
    checks.fail("worker_columns is {}; its tiles have {}", chip.worker_columns, columns);
  }
  chip.workers = workers;
  chip.worker_columns = columns;
  std::vector<Coordinate> ethernet_cores = tiles_of_kind(chip, TileKind::ethernet);
  if (chip.ethernet_cores.empty()) {
    chip.ethernet_cores = std::move(ethernet_cores);
  } else {
    check_ethernet_cores(chip, ethernet_cores);
  }
  chip.pcie_tiles = tiles_of_kind(chip, TileKind::pcie);
  checks.figures();
  return std::make_shared<const Chip>(std::move(chip));
}

}  // namespace towpath::machine
