// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/pcie/host_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/sim/hardware_priority.hpp"

namespace towpath::pcie {

namespace {

constexpr std::uint64_t kLineBytes = PostedWrites::kLineBytes;
constexpr std::uint64_t kWordBytes = 4;
// Granularity at which bytes land in the chip's memory, or are read from it: each block at the time
// of its last byte.
constexpr std::uint64_t kLandingBytes = 4096;

constexpr std::string_view kCall = "call";
constexpr std::string_view kWindows = "allocating and configuring windows";
constexpr std::string_view kStores = "filling write-combining buffers";
constexpr std::string_view kUncachedStores = "uncached stores";
constexpr std::string_view kRegisters = "stores to registers";
constexpr std::string_view kStall = "waiting for posted writes to leave";
constexpr std::string_view kEarlierWrites = "waiting for earlier writes";
constexpr std::string_view kHost = "root complex and link";
constexpr std::string_view kTile = "PCIe tile";
constexpr std::string_view kHops = "NoC hops";
constexpr std::string_view kEndpoints = "NoC interfaces";
constexpr std::string_view kMemory = "DRAM";
constexpr std::string_view kTraffic = "traffic on the NoC";
// Number of boundaries of `unit` inside a range that begins `phase` behind one.
std::uint64_t cuts(std::uint64_t unit, std::uint64_t phase, std::uint64_t size_bytes) {
  return (phase % unit + size_bytes - 1) / unit;
}

std::uint64_t to_boundary(std::uint64_t address, std::uint64_t unit) {
  return unit - address % unit;
}

}  // namespace

HostLink::HostLink(sim::Simulation& simulation, std::shared_ptr<const machine::Host> host,
                   std::shared_ptr<const machine::Chip> chip, ChipMemory& memory,
                   const Options& options)
    : simulation_(simulation),
      host_(std::move(host)),
      chip_(std::move(chip)),
      memory_(memory),
      options_(options),
      windows_(chip_),
      posted_(*host_, *chip_, options.limits),
      buffers_(*host_, *chip_),
      dma_channels_free_(
          std::max(1, std::min(host_->driver.dma_channels, chip_->pcie.dma_channels))) {
  if (options.host_memory_channels < 0) {
    throw std::invalid_argument(
        fmt::format("host '{}' is asked for {} host memory channels; at least 0 are possible",
                    host_->name, options.host_memory_channels));
  }
}

void HostLink::check(machine::Coordinate tile, std::uint64_t address,
                     std::uint64_t size_bytes) const {
  const std::uint64_t memory = memory_bytes(*chip_, tile);
  if (size_bytes == 0) throw std::invalid_argument("a transfer of 0 bytes; at least 1 is moved");
  if (address > memory || size_bytes > memory - address) {
    throw std::invalid_argument(
        fmt::format("{} bytes at address {} of ({}, {}) are beyond its memory, which has {}",
                    size_bytes, address, tile.x, tile.y, memory));
  }
}

WindowNumber HostLink::configure_tlb(machine::Coordinate tile, std::uint64_t size_bytes,
                                     std::uint64_t address, Ordering ordering, Mapping mapping) {
  const WindowNumber number = windows_.allocate(size_bytes);
  try {
    windows_.configure(number, tile, address, ordering, mapping);
  } catch (const std::invalid_argument&) {
    windows_.free(number);
    throw;
  }
  simulation_.sleep(host_->driver.window_time);
  return number;
}

HostLink::Piece HostLink::next_piece(Account& account, machine::Coordinate tile,
                                     std::uint64_t address, std::uint64_t size_bytes,
                                     const TransferOptions& options) {
  std::optional<WindowNumber> number = windows_.find(tile, address);
  const bool is_dynamic = !number.has_value();
  if (is_dynamic) {
    number = windows_.allocate(options.window_bytes != 0 ? options.window_bytes
                                                         : chip_->pcie.dynamic_window_bytes);
    windows_.configure(*number, tile, address, options.ordering, options.mapping);
    account.spend(kWindows, host_->driver.window_time);
    ++account.transfer.windows;
  }
  const Window& window = windows_.window(*number);
  const std::uint64_t left = window.size_bytes - (address - window.address);
  const Piece piece{tile, address, std::min(size_bytes, left), window.ordering, window.mapping};
  if (is_dynamic) windows_.free(*number);
  return piece;
}

// --- windows whose registers software writes -----------------------------------------------------

Transfer HostLink::write_registers(std::uint64_t size_bytes) {
  const auto store = static_cast<std::uint64_t>(host_->core.uncached_store_bytes);
  Account account(simulation_, Mechanism::mmio);
  account.spend(kRegisters, host_->core.uncached_store_time *
                                static_cast<std::int64_t>((size_bytes + store - 1) / store));
  return account.finish(simulation_);
}

// A round trip to the PCIe tile.
Transfer HostLink::read_register() {
  Account account(simulation_, Mechanism::mmio);
  account.spend(kHost, host_->link.read_time);
  account.spend(kTile, chip_->pcie.tile_time);
  account.transfer.accesses = 1;
  return account.finish(simulation_);
}

HostLink::Piece HostLink::piece_of(const Window& window, std::uint64_t offset,
                                   std::uint64_t size_bytes) const {
  if (offset > window.size_bytes || size_bytes > window.size_bytes - offset) {
    throw std::invalid_argument(fmt::format("{} bytes at offset {} are beyond a window of {}",
                                            size_bytes, offset, window.size_bytes));
  }
  check(window.tile, window.address + offset, size_bytes);
  return {window.tile, window.address + offset, size_bytes, window.ordering, window.mapping};
}

Transfer HostLink::write_window(const Window& window, std::uint64_t offset,
                                std::span<const std::byte> data) {
  const Piece piece = piece_of(window, offset, data.size());
  Account account(simulation_, Mechanism::mmio);
  account.spend(kCall, host_->core.call_time);
  write_piece(account, piece, data);
  return account.finish(simulation_);
}

Transfer HostLink::read_window(const Window& window, std::uint64_t offset,
                               std::span<std::byte> to) {
  const Piece piece = piece_of(window, offset, to.size());
  Account account(simulation_, Mechanism::mmio);
  account.spend(kCall, host_->core.call_time);
  read_piece(account, piece, to, {});
  return account.finish(simulation_);
}

// --- writes --------------------------------------------------------------------------------------

Transfer HostLink::write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                                   std::uint64_t address, const TransferOptions& options) {
  check(tile, address, data.size());
  Account account(simulation_, Mechanism::mmio);
  account.spend(kCall, host_->core.call_time);
  while (!data.empty()) {
    const Piece piece = next_piece(account, tile, address, data.size(), options);
    write_piece(account, piece, data.first(piece.size_bytes));
    data = data.subspan(piece.size_bytes);
    address += piece.size_bytes;
  }
  return account.finish(simulation_);
}

// A copy of whole words reads a word before it writes part of it.
void HostLink::write_piece(Account& account, const Piece& piece, std::span<const std::byte> data) {
  Piece rest = piece;
  while (rest.size_bytes > 0) {
    Piece run = rest;
    if (host_->core.copies_words) {
      const std::uint64_t whole = rest.size_bytes - rest.size_bytes % kWordBytes;
      const bool is_partial = rest.address % kWordBytes != 0 || whole == 0;
      run.size_bytes =
          is_partial ? std::min(rest.size_bytes, to_boundary(rest.address, kWordBytes)) : whole;
      if (is_partial) read_loads(account, run, {}, {.unit = kWordBytes, .phase = run.address});
    }
    write_run(account, run, data.first(run.size_bytes));
    data = data.subspan(run.size_bytes);
    rest.address += run.size_bytes;
    rest.size_bytes -= run.size_bytes;
  }
}

void HostLink::write_run(Account& account, const Piece& piece, std::span<const std::byte> data) {
  if (shared_) return pass_lines(account, piece, data);
  const machine::HostCoreParameters& core = host_->core;
  const NocWay way = noc_way(*chip_, piece.tile);
  const bool combines = piece.mapping == Mapping::write_combining;
  const std::uint64_t unit =
      combines ? kLineBytes : static_cast<std::uint64_t>(core.uncached_store_bytes);
  Time stores;
  Time stalls;
  Time now = account.now();
  std::uint64_t landing_from = 0;
  for (std::uint64_t at = 0; at < piece.size_bytes;) {
    const std::uint64_t address = piece.address + at;
    const std::uint64_t size_bytes = std::min(piece.size_bytes - at, to_boundary(address, unit));
    const Time store =
        combines ? transfer_time(Bytes(size_bytes), core.store_rate) : core.uncached_store_time;
    const PostedWrites::Passed line = posted_.pass(now + store, size_bytes, way, piece.ordering);
    stores += store;
    stalls += line.taken - now - store;
    now = line.taken;
    at += size_bytes;
    if (at == piece.size_bytes || (piece.address + at) % kLandingBytes == 0) {
      land(line.landed, piece.tile, piece.address + landing_from,
           data.subspan(landing_from, at - landing_from));
      landing_from = at;
    }
  }
  account.spend(combines ? kStores : kUncachedStores, stores);
  account.spend(kStall, stalls);
}

void HostLink::land(Time when, machine::Coordinate tile, std::uint64_t address,
                    std::span<const std::byte> bytes) {
  if (!options_.carries_data) return;
  landings_.push_back({this, tile, address, {bytes.begin(), bytes.end()}, {}});
  landings_.back().place = std::prev(landings_.end());
  simulation_.at(when, &landed, &landings_.back(), sim::kHardwarePriority);
}

void HostLink::landed(void* landing) {
  auto& self = *static_cast<Landing*>(landing);
  self.link->memory_.write(self.tile, self.address, self.bytes);
  self.link->landings_.erase(self.place);
}

// --- reads ---------------------------------------------------------------------------------------

Transfer HostLink::read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                                    std::uint64_t address, const TransferOptions& options) {
  check(tile, address, to.size());
  Account account(simulation_, Mechanism::mmio);
  account.spend(kCall, host_->core.call_time);
  while (!to.empty()) {
    const Piece piece = next_piece(account, tile, address, to.size(), options);
    read_piece(account, piece, to.first(piece.size_bytes), options);
    to = to.subspan(piece.size_bytes);
    address += piece.size_bytes;
  }
  return account.finish(simulation_);
}

void HostLink::read_piece(Account& account, const Piece& piece, std::span<std::byte> to,
                          const TransferOptions& options) {
  const std::span<std::byte> bytes = options_.carries_data ? to : std::span<std::byte>();
  read_loads(account, piece, bytes, loads_of(piece, options));
}

HostLink::Loads HostLink::loads_of(const Piece& piece, const TransferOptions& options) const {
  const machine::HostCoreParameters& core = host_->core;
  if (options.load == Load::stream) {
    // Reads of lines overlap: a line is requested whenever another has arrived.
    if (piece.mapping == Mapping::write_combining) {
      return {kLineBytes, piece.address, false, core.stream_loads_outstanding};
    }
    return {static_cast<std::uint64_t>(core.stream_load_bytes), piece.address};
  }
  const auto load = static_cast<std::uint64_t>(core.load_bytes);
  if (core.copies_words) return {load, piece.address};
  // Loads are cut where the buffer's loads begin, and again at the window's lines.
  return {load, options.misalignment_bytes,
          options.misalignment_bytes % load != piece.address % load};
}

// Reads a piece, whose bytes are not asked for if `to` is empty.
void HostLink::read_loads(Account& account, const Piece& piece, std::span<std::byte> to,
                          const Loads& loads) {
  std::uint64_t count = cuts(loads.unit, loads.phase, piece.size_bytes) + 1;
  if (loads.are_cut_at_lines) count += cuts(kLineBytes, piece.address, piece.size_bytes);
  const auto overlapping = static_cast<std::uint64_t>(loads.overlapping);
  const std::uint64_t round_trips = (count + overlapping - 1) / overlapping;
  account.transfer.accesses += count;
  if (shared_) {
    read_over_noc(account, piece, to, loads);
    spend_round_trips(account, piece, round_trips);
    account.spend(kTraffic, simulation_.now() - account.now());
    return;
  }
  spend_wait_for_writes(account);
  spend_round_trips(account, piece, round_trips);
  if (to.empty()) return;
  simulation_.sleep_until(account.now());
  memory_.read(piece.tile, piece.address, to);
}

// Half of a round trip, from the core to the chip's NoC.
Time HostLink::one_way() const {
  return Time::from_ps(host_->link.read_time.ps() / 2 + chip_->pcie.tile_time.ps() / 2);
}

// Reads are not posted: the first one also waits for earlier writes.
void HostLink::spend_wait_for_writes(Account& account) const {
  const Time arrives = account.now() + one_way();
  if (posted_.all_done() > arrives) {
    account.spend(kEarlierWrites, posted_.all_done() - arrives);
  }
}

// Each of so many reads waits for the answer of the one before.
void HostLink::spend_round_trips(Account& account, const Piece& piece, std::uint64_t count) const {
  const NocWay way = noc_way(*chip_, piece.tile);
  const auto times = static_cast<std::int64_t>(count);
  account.spend(kHost, host_->link.read_time * times);
  account.spend(kTile, chip_->pcie.tile_time * times);
  account.spend(kHops, way.hops * times);
  account.spend(kEndpoints, way.read_endpoint * times);
  account.spend(kMemory, way.memory * times);
}

// --- over a NoC that kernels use too -------------------------------------------------------------

void HostLink::share_noc(noc::ChipNetwork& network) {
  if (!options_.limits.posted_writes || !options_.limits.noc) {
    throw std::invalid_argument(
        fmt::format("limits of the link of {} are switched off; that is possible only where its "
                    "NoC is idle",
                    chip_->name));
  }
  shared_ = std::make_unique<Shared>(network, *host_, buffers_, link_free_);
}

void HostLink::wait_for_writes() {
  if (shared_) return shared_->lines.wait_for_all();
  simulation_.sleep_until(std::max(simulation_.now(), posted_.all_done()));
}

void HostLink::pass_lines(Account& account, const Piece& piece, std::span<const std::byte> data) {
  const machine::HostCoreParameters& core = host_->core;
  const bool combines = piece.mapping == Mapping::write_combining;
  const std::uint64_t unit =
      combines ? kLineBytes : static_cast<std::uint64_t>(core.uncached_store_bytes);
  simulation_.sleep_until(account.now());
  Time stores;
  for (std::uint64_t at = 0; at < piece.size_bytes;) {
    const std::uint64_t address = piece.address + at;
    const std::uint64_t size_bytes = std::min(piece.size_bytes - at, to_boundary(address, unit));
    const Time store =
        combines ? transfer_time(Bytes(size_bytes), core.store_rate) : core.uncached_store_time;
    simulation_.sleep(store);
    stores += store;
    NocWrites::Write line{{piece.tile, address}, size_bytes, {}, piece.ordering};
    if (options_.carries_data) {
      const std::span<const std::byte> bytes = data.subspan(at, size_bytes);
      line.data.assign(bytes.begin(), bytes.end());
    }
    shared_->lines.pass(std::move(line));
    at += size_bytes;
  }
  account.spend(combines ? kStores : kUncachedStores, stores);
  account.spend(kStall, simulation_.now() - account.now());
}

void HostLink::read_over_noc(Account& account, const Piece& piece, std::span<std::byte> to,
                             const Loads& loads) {
  simulation_.sleep_until(account.now());
  const Time arrives = simulation_.now() + one_way();
  shared_->lines.wait_for_all();
  std::optional<Time> on_noc = std::max(simulation_.now(), arrives);
  account.spend(kEarlierWrites, *on_noc - arrives);
  NocReads reads(shared_->network, {loads.overlapping, one_way(), one_way()});
  for (std::uint64_t at = 0; at < piece.size_bytes; on_noc.reset()) {
    std::uint64_t size_bytes =
        std::min(piece.size_bytes - at, to_boundary(loads.phase + at, loads.unit));
    if (loads.are_cut_at_lines) {
      size_bytes = std::min(size_bytes, to_boundary(piece.address + at, kLineBytes));
    }
    reads.begin({piece.tile, piece.address + at}, size_bytes,
                to.empty() ? to : to.subspan(at, size_bytes), on_noc);
    at += size_bytes;
  }
  reads.finish();
}

}  // namespace towpath::pcie
