// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "towpath/pcie/host_link.hpp"
#include "towpath/tenstorrent/dispatch/dispatch_kernels.hpp"
#include "towpath/tenstorrent/dispatch/dispatch_tunnel.hpp"

// Fast dispatch over a described host: launches of programs, and writes to buffers, through a queue
// of commands for each chip. The host writes commands into its memory and their sizes to the
// prefetcher, a core of the chip on PCIe, which fetches them. The chip's dispatcher carries them
// out, behind the tunnel if the chip is remote. Queues are created at their first use. Like the
// opening of a device, this takes no time.
//
// The dispatcher's cores are Ethernet cores without a link that no program uses. If there are too
// few, they are the last workers that no program uses.

namespace towpath::tenstorrent {

class Device;
class Program;

// Memory of an L1, allocated upwards.
class L1Layout {
 public:
  explicit L1Layout(std::uint64_t base) : next_(rounded_up(base, kAlignmentBytes)) {}
  std::uint64_t take(std::uint64_t size_bytes) {
    const std::uint64_t at = next_;
    next_ = rounded_up(at + size_bytes, kAlignmentBytes);
    return at;
  }
  Ring take_ring(std::uint64_t size_bytes) { return {take(size_bytes), size_bytes}; }
  ProducerWords take_producer_words() { return {take(kRingUnitBytes), take(kRingUnitBytes)}; }

 private:
  static constexpr std::uint64_t kAlignmentBytes = 64;
  std::uint64_t next_;
};

// The host's side of one chip's command queue.
class CommandQueue {
 public:
  struct Places {
    pcie::HostLink* link = nullptr;
    std::size_t buffer = 0;  // of the link, with commands and then events
    pcie::Window window;     // to the prefetcher's L1
    HostQueuePlaces queue;
  };
  explicit CommandQueue(sim::Simulation& simulation, const Places& places)
      : simulation_(simulation), places_(places) {}

  // Called from a host process. `is_waiting` is set while it waits for the chip.
  void submit(std::vector<CommandWriter::Bytes> entries, bool& is_waiting);
  void wait_for_events(std::uint32_t events, bool& is_waiting);

  // Cores of all submitted programs, and events.
  std::uint32_t cores = 0;
  std::uint32_t events = 0;

 private:
  void submit_one(std::span<const std::byte> entry, bool& is_waiting);
  void wait_for_room(std::uint64_t end_bytes, bool& is_waiting);
  std::span<std::byte> memory() { return places_.link->sysmem_buffer(places_.buffer).memory(); }
  void lock();
  void unlock();

  sim::Simulation& simulation_;
  Places places_;
  bool is_locked_ = false;
  std::deque<sim::Process*> waiting_;  // waiting for the lock, in order
  std::uint64_t host_at_ = 0;
  std::uint64_t put_bytes_ = 0;  // with skipped bytes at the end of the memory
  std::uint32_t entries_ = 0;
  std::uint32_t fetched_entries_ = 0;  // at the last look of the host
  std::uint64_t fetched_bytes_ = 0;
};

class FastDispatch {
 public:
  using LinkOf = std::function<pcie::HostLink&(int chip)>;
  FastDispatch(const machine::ChipCluster& cluster,
               const std::vector<std::unique_ptr<Device>>& devices, const HostRoutes& routes,
               LinkOf link_of)
      : cluster_(cluster),
        devices_(devices),
        routes_(routes),
        link_of_(std::move(link_of)),
        tunnel_(cluster, devices, routes) {}
  FastDispatch(const FastDispatch&) = delete;
  FastDispatch& operator=(const FastDispatch&) = delete;

  // All are for a process of the host, and set `is_waiting` while it waits for the chip. All are
  // carried out in order, after all earlier programs have ended. Throw std::invalid_argument if the
  // chip cannot be served.
  void launch(int chip, const Program& program, bool& is_waiting);
  void write(int chip, const NocAddress& to, std::span<const std::byte> bytes, bool& is_waiting);
  // Waits until all of it is done.
  void finish(int chip, bool& is_waiting);

  // True if it has taken the core by now.
  bool has(int chip, machine::Coordinate core) const { return taken_.contains({chip, core}); }
  // True if a tunneller uses the core.
  bool has(machine::EthernetEnd end) const { return tunnel_.has(end); }

 private:
  // A core that it has taken, with the rest of its L1.
  struct Core {
    DataMovementCore* core = nullptr;
    L1Layout l1;
    NocAddress at(std::uint64_t offset) const { return {core->config().core, offset}; }
  };
  // Events at a position in a dispatcher's ring.
  using OnEvent = std::function<void(DataMovementCore&, const Ring&, std::uint64_t)>;
  // The memory that a dispatcher and its prefetcher share.
  struct DispatcherPlaces {
    RingPlace commands;
    ProducerWords prefetcher_words;
    NocAddress stall_word;
  };
  CommandQueue& queue(int chip);
  void make_queue(int chip);
  HostQueuePlaces make_host_queue(int chip, Core& prefetcher);
  void serve_local(Core prefetcher, Core dispatcher, const HostQueuePlaces& queue);
  void serve_remote(int chip, Core prefetcher, const HostQueuePlaces& queue);
  // Returns the word in which `to` counts freed bytes.
  NocAddress relay_to_tunnel(int chip, Core& prefetcher, const HostQueuePlaces& queue,
                             const RingPlace& to);
  static void relay_commands(Core& prefetcher, const RingPlace& from, const NocAddress& freed,
                             const DispatcherPlaces& to);
  static void relay_events(Core& dispatcher, const RingPlace& from, const NocAddress& freed,
                           const HostQueuePlaces& queue);
  void run_dispatcher(Core& dispatcher, const DispatcherPlaces& places, OnEvent on_event);
  static DispatcherPlaces share(Core& prefetcher, Core& dispatcher);
  void check(int chip) const;
  Core take_core(Device& device, std::string name);
  static void spawn(DataMovementCore& core, std::function<void()> body) {
    core.network().simulation().spawn(
        fmt::format("{} of chip {}", core.config().name, core.config().chip), std::move(body));
  }
  Device& device(int chip) const { return *devices_[static_cast<std::size_t>(chip)]; }

  const machine::ChipCluster& cluster_;
  const std::vector<std::unique_ptr<Device>>& devices_;
  const HostRoutes& routes_;
  LinkOf link_of_;
  DispatchTunnel tunnel_;
  std::list<std::unique_ptr<DataMovementCore>> cores_;
  std::set<std::pair<int, machine::Coordinate>> taken_;
  std::map<int, std::unique_ptr<CommandQueue>> queues_;
};

// The commands that launch a program. It may start when `ended` cores have ended. Throws
// std::invalid_argument if a core's arguments do not fit into its launch.
std::vector<CommandWriter::Bytes> launch_commands(const Device& device, const Program& program,
                                                  std::uint32_t ended);

}  // namespace towpath::tenstorrent
