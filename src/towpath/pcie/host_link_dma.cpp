// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "towpath/pcie/host_link.hpp"

// Transfers without a core of the host: by the DMA engine, or by a core of the chip.

namespace towpath::pcie {

namespace {

constexpr std::string_view kCall = "call";
constexpr std::string_view kChannel = "waiting for a channel of the DMA engine";
constexpr std::string_view kCopy = "copying to or from the bounce buffer";
constexpr std::string_view kSetUp = "setting the engine up and noticing its end";
constexpr std::string_view kLatency = "latency of the first bytes";
constexpr std::string_view kStream = "bytes on their way";

}  // namespace

std::string HostLink::dma_obstacle(Direction direction) const {
  if (options_.host_memory_channels == 0) {
    return "no DMA buffer was allocated: the host gives the chip 0 host memory channels";
  }
  try {
    check_dma(*chip_, direction, 0, 0);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

Rate HostLink::bounce_rate(Direction direction, std::uint64_t size_bytes) const {
  const machine::HostDriverParameters& driver = host_->driver;
  const bool fits = size_bytes + std::min(size_bytes, driver.bounce_bytes) <= driver.cache_bytes;
  if (direction == Direction::to_device) {
    return fits ? driver.bounce_write_rate : driver.bounce_write_rate_uncached;
  }
  return fits ? driver.bounce_read_rate : driver.bounce_read_rate_uncached;
}

// --- channels of the engine ----------------------------------------------------------------------

void HostLink::take_dma_channel(Account& account) {
  simulation_.sleep_until(account.now());
  if (dma_channels_free_ > 0) {
    --dma_channels_free_;
    return;
  }
  sim::Process* const self = simulation_.current();
  dma_waiting_.push_back(self);
  while (std::ranges::find(dma_waiting_, self) != dma_waiting_.end()) {
    simulation_.suspend("a channel of the DMA engine");
  }
  account.spend(kChannel, simulation_.now() - account.now());
}

// Hands the channel to the transfer that has waited longest.
void HostLink::give_dma_channel() {
  if (dma_waiting_.empty()) {
    ++dma_channels_free_;
    return;
  }
  sim::Process& next = *dma_waiting_.front();
  dma_waiting_.pop_front();
  simulation_.wake(next);
}

// --- parts of a transfer -------------------------------------------------------------------------

// Moves the transfer part by part; the driver waits for each.
template <typename HostBytes>
Transfer HostLink::run_dma(const DmaPath& path, const TransferOptions& options,
                           HostBytes host_bytes) {
  const machine::HostDriverParameters& driver = host_->driver;
  const Stream stream = dma_stream(*host_, *chip_, noc_way(*chip_, path.tile), path.direction,
                                   {.ordering = options.ordering, .limits = options_.limits});
  const std::uint64_t window = chip_->pcie.dma_window_bytes;
  const std::uint64_t part_max = path.bounces ? std::min(driver.bounce_bytes, window) : window;
  const auto copy = [&](std::uint64_t size_bytes) {
    return path.bounces
               ? transfer_time(Bytes(size_bytes), bounce_rate(path.direction, path.size_bytes))
               : Time();
  };
  Account account(simulation_, Mechanism::dma);
  account.spend(kCall, host_->core.call_time);
  take_dma_channel(account);
  for (std::uint64_t at = 0; at < path.size_bytes;) {
    const DmaPart part{path, at, std::min(part_max, path.size_bytes - at), stream,
                       options.ordering};
    if (path.direction == Direction::to_device) account.spend(kCopy, copy(part.size_bytes));
    account.spend(kSetUp, driver.dma_time);
    auto bytes = host_bytes(at, options_.carries_data ? part.size_bytes : 0);
    move_part(account, part, bytes);
    if (path.direction == Direction::from_device) account.spend(kCopy, copy(part.size_bytes));
    at += part.size_bytes;
  }
  simulation_.sleep_until(account.now());
  give_dma_channel();
  return account.finish(simulation_);
}

void HostLink::move_part(Account& account, const DmaPart& part, std::span<const std::byte> from) {
  simulation_.sleep_until(account.now());
  if (shared_) move_over_noc(part, from);
  spend_stream(account, part);
  if (shared_ || from.empty()) return;
  simulation_.sleep_until(account.now());
  memory_.write(part.address().tile, part.address().offset, from);
}

void HostLink::move_part(Account& account, const DmaPart& part, std::span<std::byte> to) {
  simulation_.sleep_until(account.now());
  if (shared_) move_over_noc(part, to);
  spend_stream(account, part);
  if (shared_ || to.empty()) return;
  simulation_.sleep_until(account.now());
  memory_.read(part.address().tile, part.address().offset, to);
}

// The bytes of a part follow those of another channel: what limits the rate of one, the engine, the
// link or the tile, they have in common.
void HostLink::spend_stream(Account& account, const DmaPart& part) {
  if (shared_) {
    const Time spent = simulation_.now() - account.now();
    account.spend(kLatency, std::min(part.stream.latency, spent));
    account.spend(kStream, simulation_.now() - account.now());
    return;
  }
  Time& free = link_free(part.path.direction);
  const Time first = account.now() + part.stream.latency;
  const Time begins = std::max(first, free);
  free = begins + (part.stream.time_of(part.size_bytes) - part.stream.latency);
  account.spend(kLatency, part.stream.latency);
  account.spend(kStream, free - first);
}

// --- over a NoC that kernels use too -------------------------------------------------------------

// The engine reads the host's memory in requests, a fixed number at a time: each keeps its place
// until its bytes have left for the NoC, in bursts. Strictly ordered, no request is written before
// the one before it is done.
void HostLink::move_over_noc(const DmaPart& part, std::span<const std::byte> from) {
  const auto request = static_cast<std::uint64_t>(host_->link.read_request_bytes_max);
  const auto burst = static_cast<std::uint64_t>(chip_->pcie.axi_burst_bytes);
  const std::size_t bursts_of_request = (request + burst - 1) / burst;
  const auto requests_max = static_cast<std::size_t>(host_->link.device_reads_outstanding);
  const bool is_strict = part.ordering == Ordering::strict;
  const Rate rate = answer_rate(*host_, *chip_);
  const Time answer = host_->link.read_time + chip_->pcie.tile_time + translation_time(*host_);
  Time& free = link_free(part.path.direction);
  sim::Process& self = *simulation_.current();
  NocWrites writes(shared_->network, Time(), [&] { simulation_.wake(self); });
  const auto wait_until_at_most = [&](std::size_t count, auto pending) {
    while (pending() > count) simulation_.suspend("bytes of a DMA transfer");
  };
  for (std::uint64_t at = 0; at < part.size_bytes; at += request) {
    wait_until_at_most((requests_max - 1) * bursts_of_request, [&] { return writes.waiting(); });
    const std::uint64_t end = std::min(part.size_bytes, at + request);
    free = std::max(free, simulation_.now() + answer);
    for (std::uint64_t begin = at; begin < end; begin += burst) {
      const std::uint64_t size_bytes = std::min(burst, end - begin);
      NocWrites::Write write{{part.path.tile, part.address().offset + begin},
                             size_bytes,
                             {},
                             is_strict ? Ordering::standard : part.ordering,
                             is_strict && begin == at};
      if (!from.empty()) {
        const std::span<const std::byte> bytes = from.subspan(begin, size_bytes);
        write.data.assign(bytes.begin(), bytes.end());
      }
      free += transfer_time(Bytes(size_bytes), rate);
      writes.arrive(free, std::move(write));
    }
  }
  wait_until_at_most(0, [&] { return writes.unfinished(); });
}

// The engine reads the tile's memory in payloads, a fixed number at a time, and sends each to the
// host as it comes. Strictly ordered, a read is on the NoC when the one before it is answered.
void HostLink::move_over_noc(const DmaPart& part, std::span<std::byte> to) {
  const auto payload = static_cast<std::uint64_t>(host_->link.payload_bytes_max);
  const bool is_strict = part.ordering == Ordering::strict;
  const Time half = Time::from_ps(chip_->pcie.tile_time.ps() / 2);
  const Rate rate = write_rate(*host_, *chip_);
  Time& free = link_free(part.path.direction);
  const auto came = [&](std::uint64_t size_bytes) {
    free = std::max(free, simulation_.now()) + transfer_time(Bytes(size_bytes), rate);
  };
  NocReads::Way way{chip_->pcie.dma_reads_outstanding, half, half};
  if (is_strict) way = {1, Time(), Time()};
  if (is_strict) simulation_.sleep(half);
  NocReads reads(shared_->network, way, came);
  for (std::uint64_t at = 0; at < part.size_bytes; at += payload) {
    const std::uint64_t size_bytes = std::min(payload, part.size_bytes - at);
    reads.begin({part.path.tile, part.address().offset + at}, size_bytes,
                to.empty() ? to : to.subspan(at, size_bytes));
  }
  reads.finish();
  const Time last = std::max(free, simulation_.now()) + (is_strict ? half : Time());
  simulation_.sleep_until(last + translation_time(*host_) +
                          Time::from_ps(host_->link.read_time.ps() / 2));
}

// --- through the bounce buffer -------------------------------------------------------------------

// Moves to the device if the host's bytes are const, from it otherwise. The processor moves them if
// the engine cannot.
template <typename Byte>
Transfer HostLink::bounce(std::span<Byte> bytes, machine::Coordinate tile, std::uint64_t address,
                          const TransferOptions& options) {
  constexpr bool kWrites = std::is_const_v<Byte>;
  constexpr Direction kDirection = kWrites ? Direction::to_device : Direction::from_device;
  check(tile, address, bytes.size());
  if (std::string obstacle = dma_obstacle(kDirection); !obstacle.empty()) {
    Transfer transfer;
    if constexpr (kWrites) transfer = write_to_device(bytes, tile, address, options);
    if constexpr (!kWrites) transfer = read_from_device(bytes, tile, address, options);
    transfer.asked = Mechanism::dma;
    transfer.obstacle = std::move(obstacle);
    return transfer;
  }
  check_dma(*chip_, kDirection, address, bytes.size());
  return run_dma({kDirection, true, tile, address, bytes.size()}, options,
                 [&](std::uint64_t at, std::uint64_t part) { return bytes.subspan(at, part); });
}

Transfer HostLink::dma_write_to_device(std::span<const std::byte> data, machine::Coordinate tile,
                                       std::uint64_t address, const TransferOptions& options) {
  return bounce(data, tile, address, options);
}

Transfer HostLink::dma_read_from_device(std::span<std::byte> to, machine::Coordinate tile,
                                        std::uint64_t address, const TransferOptions& options) {
  return bounce(to, tile, address, options);
}

// --- buffers that the device reaches -------------------------------------------------------------

std::size_t HostLink::add_buffer(std::uint64_t size_bytes) {
  if (size_bytes == 0) throw std::invalid_argument("a buffer of 0 bytes; at least 1 is pinned");
  if (options_.host_memory_channels == 0) {
    throw std::invalid_argument(
        fmt::format("host '{}' gives {} no memory for DMA: it has 0 host memory channels, and "
                    "needs at least 1",
                    host_->name, chip_->name));
  }
  const std::size_t number = buffers_.add(size_bytes);
  buffers_.at(number).map_time = map_time(*host_, size_bytes);
  return number;
}

std::size_t HostLink::pin(std::uint64_t size_bytes) {
  const std::size_t number = add_buffer(size_bytes);
  simulation_.sleep(buffers_.at(number).map_time);
  return number;
}

void HostLink::check_contiguous(std::uint64_t size_bytes) const {
  if (!host_->memory.has_iommu && size_bytes > host_->page_bytes()) {
    throw std::invalid_argument(fmt::format(
        "a buffer of {} bytes is not contiguous for the device: host '{}' has no IOMMU, and its "
        "pages have {} bytes",
        size_bytes, host_->name, host_->page_bytes()));
  }
}

std::size_t HostLink::take_pinned_buffer(std::uint64_t size_bytes) {
  check_contiguous(size_bytes);
  const std::size_t number = add_buffer(size_bytes);
  if (options_.carries_data) buffers_.at(number).bytes.resize(size_bytes);
  return number;
}

std::size_t HostLink::allocate_sysmem_buffer(std::uint64_t size_bytes) {
  check_contiguous(size_bytes);
  const std::size_t number = pin(size_bytes);
  if (options_.carries_data) buffers_.at(number).bytes.resize(size_bytes);
  return number;
}

std::size_t HostLink::map_sysmem_buffer(std::span<std::byte> memory) {
  if (!host_->memory.has_iommu) {
    throw std::invalid_argument(
        fmt::format("memory of a program cannot be mapped for the device: host '{}' has no IOMMU, "
                    "so allocate a buffer instead",
                    host_->name));
  }
  const std::size_t number = pin(memory.size());
  buffers_.at(number).programs_own = memory;
  return number;
}

void HostLink::unmap_sysmem_buffer(std::size_t number) {
  SysmemBuffer& buffer = sysmem_buffer(number);
  if (!buffer.is_mapped) {
    throw std::invalid_argument(fmt::format("sysmem buffer {} is not mapped", number));
  }
  buffer.is_mapped = false;
  buffer.programs_own = {};
  simulation_.sleep(unmap_time(*host_, buffer.size_bytes));
}

void HostLink::check_buffer(const BufferRange& range, machine::Coordinate tile,
                            std::uint64_t address) {
  const auto& [number, offset, size_bytes] = range;
  const SysmemBuffer& buffer = sysmem_buffer(number);
  if (!buffer.is_mapped) {
    throw std::invalid_argument(
        fmt::format("sysmem buffer {} is not mapped, so the device cannot reach it", number));
  }
  if (offset > buffer.size_bytes || size_bytes > buffer.size_bytes - offset) {
    throw std::invalid_argument(
        fmt::format("{} bytes at offset {} are beyond sysmem buffer {}, which has {}", size_bytes,
                    offset, number, buffer.size_bytes));
  }
  check(tile, address, size_bytes);
}

Transfer HostLink::dma_write_to_device(const BufferRange& from, machine::Coordinate tile,
                                       std::uint64_t address, const TransferOptions& options) {
  check_buffer(from, tile, address);
  check_dma(*chip_, Direction::to_device, address | from.offset, from.size_bytes);
  return run_dma({Direction::to_device, false, tile, address, from.size_bytes}, options,
                 [&](std::uint64_t at, std::uint64_t part) -> std::span<const std::byte> {
                   if (part == 0) return {};
                   return buffers_.at(from.buffer).memory().subspan(from.offset + at, part);
                 });
}

Transfer HostLink::dma_read_from_device(const BufferRange& to, machine::Coordinate tile,
                                        std::uint64_t address, const TransferOptions& options) {
  check_buffer(to, tile, address);
  check_dma(*chip_, Direction::from_device, address | to.offset, to.size_bytes);
  return run_dma({Direction::from_device, false, tile, address, to.size_bytes}, options,
                 [&](std::uint64_t at, std::uint64_t part) -> std::span<std::byte> {
                   if (part == 0) return {};
                   return buffers_.at(to.buffer).memory().subspan(to.offset + at, part);
                 });
}

// --- by a core of the chip -----------------------------------------------------------------------

Transfer HostLink::by_device(Direction direction, machine::Coordinate tile,
                             std::uint64_t size_bytes) {
  Account account(simulation_, Mechanism::noc);
  const Stream stream =
      device_stream(*host_, *chip_, noc_way(*chip_, tile), direction, options_.limits);
  account.spend(kLatency, stream.latency);
  account.spend(kStream, stream.time_of(size_bytes) - stream.latency);
  return account.finish(simulation_);
}

Transfer HostLink::noc_write_to_host(const BufferRange& to, machine::Coordinate tile,
                                     std::uint64_t address) {
  check_buffer(to, tile, address);
  Transfer transfer = by_device(Direction::from_device, tile, to.size_bytes);
  if (options_.carries_data) {
    const std::span<std::byte> bytes = buffers_.at(to.buffer).memory();
    memory_.read(tile, address, bytes.subspan(to.offset, to.size_bytes));
  }
  return transfer;
}

Transfer HostLink::noc_read_from_host(const BufferRange& from, machine::Coordinate tile,
                                      std::uint64_t address) {
  check_buffer(from, tile, address);
  Transfer transfer = by_device(Direction::to_device, tile, from.size_bytes);
  if (options_.carries_data) {
    const std::span<const std::byte> bytes = buffers_.at(from.buffer).memory();
    memory_.write(tile, address, bytes.subspan(from.offset, from.size_bytes));
  }
  return transfer;
}

}  // namespace towpath::pcie
