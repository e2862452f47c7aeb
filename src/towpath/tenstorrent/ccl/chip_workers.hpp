// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "towpath/tenstorrent/ccl/multicast_worker.hpp"
#include "towpath/tenstorrent/ccl/pages.hpp"
#include "towpath/tenstorrent/ccl/unicast_worker.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"

// Workers of one chip: one near each link, some for Moves inside the chip, and one for each pair of
// opposite links if the ranks multicast. Payloads are staged in the upper half of the chip's DRAM.

namespace towpath::tenstorrent::ccl {

class ChipWorkers {
 public:
  ChipWorkers(fabric::Fabric& fabric, int place, std::uint64_t payload_bytes_max);

  const Pages& pages() const { return pages_; }
  PageRing& staging() { return staging_; }
  // A packet on each page from the first one on.
  void write_pages(std::uint64_t first, std::span<const std::byte> payload,
                   std::uint64_t packet_bytes);
  void read_pages(std::uint64_t first, std::span<std::byte> payload, std::uint64_t packet_bytes);

  // Plane for the next part in a direction: of the worker with the fewest bytes in its queue. Parts
  // without bytes take turns.
  int plane_for(fabric::Direction direction, std::uint64_t size_bytes) const;
  UnicastWorker& toward(fabric::Direction direction, int plane) {
    return *by_direction_[direction][static_cast<std::size_t>(plane)];
  }
  // The one with the fewest bytes in its queue.
  UnicastWorker& local();

  void create_multicast_workers();
  MulticastWorker& multicast(int plane) { return *multicast_[static_cast<std::size_t>(plane)]; }

  // A host launches the program now. Workers with links start some time later.
  void launch();
  // Workers close their connections when they have sent everything.
  void close();
  bool are_closed() const;
  // Time at which the last connection was closed.
  Time closed_at() const;

 private:
  std::unique_ptr<UnicastWorker> create_worker(std::optional<fabric::RouterPort> port);
  void create_multicast_worker(int plane);
  template <typename Workers, typename Action>
  static void for_each_connected(Workers& workers, Action action);

  fabric::Fabric& fabric_;
  int place_;
  std::uint64_t payload_bytes_max_;
  Pages pages_;
  PageRing staging_;
  std::vector<machine::Coordinate> free_cores_;
  // By direction, then by plane.
  std::vector<std::vector<std::unique_ptr<UnicastWorker>>> by_direction_;
  std::vector<std::unique_ptr<UnicastWorker>> local_;
  std::vector<std::unique_ptr<MulticastWorker>> multicast_;  // by plane, or none
};

}  // namespace towpath::tenstorrent::ccl
