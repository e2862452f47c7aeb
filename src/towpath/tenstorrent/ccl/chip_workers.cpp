// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/ccl/chip_workers.hpp"

#include <algorithm>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/noc/router/torus.hpp"
#include "towpath/tenstorrent/ccl/worker_costs.hpp"

namespace towpath::tenstorrent::ccl {

using fabric::Direction;

namespace {

// Workers of a chip for Moves inside it. Chosen here, without a source.
constexpr int kLocalWorkers = 4;

using Workers = std::vector<std::unique_ptr<UnicastWorker>>;

std::uint64_t queued_bytes(const std::unique_ptr<UnicastWorker>& worker) {
  return worker->queued_bytes();
}
std::uint64_t parts_taken(const std::unique_ptr<UnicastWorker>& worker) {
  return worker->parts_taken();
}

}  // namespace

ChipWorkers::ChipWorkers(fabric::Fabric& fabric, int place, std::uint64_t payload_bytes_max)
    : fabric_(fabric),
      place_(place),
      payload_bytes_max_(payload_bytes_max),
      pages_(fabric.device(place).chip(), payload_bytes_max),
      staging_(pages_.pages() / 2, pages_.pages() / 2),
      by_direction_(fabric::kDirections) {
  const std::vector<machine::Coordinate>& cores = fabric.device(place).chip().workers;
  free_cores_.assign(cores.begin(), cores.end() - 1);  // the last one counts arrivals
  for (Direction direction = 0; direction < fabric::kDirections; ++direction) {
    for (int plane = 0; plane < fabric.topology().planes(); ++plane) {
      if (!fabric.topology().end(place, direction, plane)) continue;
      by_direction_[direction].push_back(create_worker(fabric.port(place, direction, plane)));
    }
  }
  for (int i = 0; i < kLocalWorkers; ++i) local_.push_back(create_worker(std::nullopt));
}

// On the free core nearest to its router.
std::unique_ptr<UnicastWorker> ChipWorkers::create_worker(std::optional<fabric::RouterPort> port) {
  const machine::Chip& chip = fabric_.device(place_).chip();
  const auto nearest = std::ranges::min_element(free_cores_, {}, [&](machine::Coordinate core) {
    return port ? noc::hops(chip, core, port->tile, UnicastWorker::kWriterNoc) : 0;
  });
  const machine::Coordinate core = *nearest;
  free_cores_.erase(nearest);
  return std::make_unique<UnicastWorker>(
      fabric_.program(place_), pages_,
      UnicastWorker::Config{core, std::move(port), payload_bytes_max_});
}

void ChipWorkers::create_multicast_workers() {
  for (int plane = 0; plane < fabric_.topology().planes(); ++plane) create_multicast_worker(plane);
}

// On the free core nearest to both of its routers.
void ChipWorkers::create_multicast_worker(int plane) {
  const machine::Chip& chip = fabric_.device(place_).chip();
  MulticastWorker::Config config;
  config.payload_bytes_max = payload_bytes_max_;
  for (int way = 0; way < kWays; ++way) {
    const Direction direction = fabric::direction_of(0, way == 1);
    if (!fabric_.topology().end(place_, direction, plane)) continue;
    config.ports[index(way)] = fabric_.port(place_, direction, plane);
  }
  const auto distance = [&](machine::Coordinate core) {
    int hops = 0;
    for (int way = 0; way < kWays; ++way) {
      const auto& port = config.ports[index(way)];
      if (port) hops += noc::hops(chip, core, port->tile, way);
    }
    return hops;
  };
  const auto nearest = std::ranges::min_element(free_cores_, {}, distance);
  config.core = *nearest;
  free_cores_.erase(nearest);
  multicast_.push_back(std::make_unique<MulticastWorker>(fabric_.program(place_), pages_, config));
}

void ChipWorkers::write_pages(std::uint64_t first, std::span<const std::byte> payload,
                              std::uint64_t packet_bytes) {
  for (; !payload.empty(); ++first) {
    const std::size_t size_bytes = std::min<std::size_t>(payload.size(), packet_bytes);
    const noc::Address page = pages_.address(first);
    fabric_.device(place_).memory(page.tile).write(page.offset, payload.first(size_bytes));
    payload = payload.subspan(size_bytes);
  }
}

void ChipWorkers::read_pages(std::uint64_t first, std::span<std::byte> payload,
                             std::uint64_t packet_bytes) {
  for (; !payload.empty(); ++first) {
    const std::size_t size_bytes = std::min<std::size_t>(payload.size(), packet_bytes);
    const noc::Address page = pages_.address(first);
    fabric_.device(place_).memory(page.tile).read(page.offset, payload.first(size_bytes));
    payload = payload.subspan(size_bytes);
  }
}

int ChipWorkers::plane_for(Direction direction, std::uint64_t size_bytes) const {
  const Workers& workers = by_direction_[direction];
  const auto least = size_bytes > 0 ? std::ranges::min_element(workers, {}, queued_bytes)
                                    : std::ranges::min_element(workers, {}, parts_taken);
  return static_cast<int>(least - workers.begin());
}

UnicastWorker& ChipWorkers::local() { return **std::ranges::min_element(local_, {}, queued_bytes); }

void ChipWorkers::launch() {
  Device& device = fabric_.device(place_);
  const Time started_at = device.network().simulation().now() + start_time(device.chip());
  for_each_connected(*this, [&](auto& worker) { worker.start_at(started_at); });
}

template <typename Workers, typename Action>
void ChipWorkers::for_each_connected(Workers& workers, Action action) {
  for (const auto& each : workers.by_direction_) {
    for (const auto& worker : each) action(*worker);
  }
  for (const auto& worker : workers.multicast_) action(*worker);
}

void ChipWorkers::close() {
  for_each_connected(*this, [](auto& worker) { worker.close(); });
}

bool ChipWorkers::are_closed() const {
  bool are_closed = true;
  for_each_connected(*this, [&](const auto& worker) { are_closed &= !worker.is_open(); });
  return are_closed;
}

Time ChipWorkers::closed_at() const {
  Time last;
  for_each_connected(*this, [&](const auto& worker) { last = std::max(last, worker.closed_at()); });
  return last;
}

}  // namespace towpath::tenstorrent::ccl
