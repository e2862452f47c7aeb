// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/route_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>

#include "towpath/tenstorrent/kernels/handshake.hpp"

namespace towpath::tenstorrent::kernels {

using ethernet_memory_map::kWordBytes;
using machine::EthernetEnd;
using machine::TileKind;
using routing::Command;
using routing::CoreCommands;
using routing::HopName;

namespace {

// The same offsets in every Ethernet core's L1.
struct Layout {
  std::uint64_t packet_bytes = 0;
  std::uint64_t staging = 0;       // outgoing packet and its sync word
  std::uint64_t granted = 0;       // written by the far end: the granted hop and buffer
  std::uint64_t answered = 0;      // written by the far end: the hop that has arrived
  std::uint64_t grant_source = 0;  // source of that write
  std::uint64_t answer_source = 0;
  std::uint64_t buffers = 0;
  std::uint64_t freed = 0;    // a word per buffer, incremented after its packet is sent on
  std::uint64_t arrived = 0;  // a word per command: the buffer with its packet, from 1

  std::uint64_t buffer(int number) const {
    return buffers + static_cast<std::uint64_t>(number) * (packet_bytes + kWordBytes);
  }
  std::uint64_t sync(int number) const { return buffer(number) + packet_bytes; }
  std::uint64_t freed_at(int number) const {
    return freed + kWordBytes * static_cast<std::uint64_t>(number);
  }
  std::uint64_t arrived_at(std::size_t command) const { return arrived + kWordBytes * command; }
};

// Position of a command: its core, and its index in the core's list.
struct Place {
  EthernetEnd core;
  std::size_t command = 0;
};

struct Plan {
  const RouteLists* lists;
  Layout layout;
  std::map<HopName, Place> senders;
  std::map<HopName, std::uint32_t> number_of;  // of each hop, from 1
  RoutesRun* run;

  bool is_first(HopName hop) const { return hop.hop == 0; }
  bool is_last(HopName hop) const {
    return static_cast<std::size_t>(hop.hop) + 1 ==
           lists->routes[static_cast<std::size_t>(hop.route)].size();
  }
  const routing::Hop& link_of(HopName hop) const {
    return lists->routes[static_cast<std::size_t>(hop.route)][static_cast<std::size_t>(hop.hop)];
  }
};

std::vector<std::byte> packet_of(int route, std::uint64_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = std::byte(static_cast<std::size_t>(route) * 31 + i * 7 + (i >> 8));
  }
  return bytes;
}

void send_words(EthernetCore& core, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  core.eth_send_packet(0, from / kWordBytes, to / kWordBytes, bytes / kWordBytes);
}

// One Ethernet core's list.
class ListKernel {
 public:
  ListKernel(EthernetCore& core, Plan& plan, const CoreCommands& list)
      : core_(core),
        plan_(plan),
        list_(list),
        holds_(static_cast<std::size_t>(plan.lists->buffers_per_core), false) {}

  void run() {
    const HopName first = list_.commands.front().of;
    const routing::Hop& link = plan_.link_of(first);
    handshake(core_, list_.core == std::min(link.from, link.to));
    for (std::size_t i = 0; i < list_.commands.size(); ++i) {
      const Command& command = list_.commands[i];
      if (command.kind == Command::Kind::send) {
        send(command.of, i);
      } else {
        receive(command.of);
      }
    }
    core_.noc_async_full_barrier();
  }

 private:
  // --- sending -----------------------------------------------------------------------------------

  void send(HopName hop, std::size_t command) {
    const Layout& at = plan_.layout;
    const int beside = plan_.is_first(hop) ? fill(hop) : fetch(hop, command);
    const std::uint32_t number = plan_.number_of.at(hop);
    core_.noc_semaphore_wait(at.granted, number);
    const int buffer = static_cast<int>(core_.load_word(at.granted + 4));
    core_.store_word(at.staging + at.packet_bytes, number);
    send_words(core_, at.staging, at.buffer(buffer), at.packet_bytes + kWordBytes);
    core_.noc_semaphore_wait(at.answered, number);
    if (!plan_.is_first(hop)) {
      core_.noc_semaphore_inc({tile_before(hop), at.freed_at(beside)}, 1);
    }
  }

  // A route's first core has the packet.
  int fill(HopName hop) {
    core_.store(plan_.layout.staging, packet_of(hop.route, plan_.layout.packet_bytes));
    return 0;
  }

  // Later cores read it from the core that received it.
  int fetch(HopName hop, std::size_t command) {
    const Layout& at = plan_.layout;
    core_.noc_semaphore_wait_min(at.arrived_at(command), 1);
    const int buffer = static_cast<int>(core_.load_word(at.arrived_at(command))) - 1;
    core_.noc_async_read({tile_before(hop), at.buffer(buffer)}, at.staging, at.packet_bytes);
    core_.noc_async_read_barrier();
    return buffer;
  }

  machine::Coordinate tile_before(HopName hop) const {
    const EthernetEnd end = plan_.link_of({hop.route, hop.hop - 1}).to;
    return tile_of(end);
  }
  machine::Coordinate tile_of(EthernetEnd end) const {
    return core_.network().chip().ethernet_cores[static_cast<std::size_t>(end.channel)];
  }

  // --- receiving ---------------------------------------------------------------------------------

  void receive(HopName hop) {
    const Layout& at = plan_.layout;
    const std::uint32_t number = plan_.number_of.at(hop);
    const int buffer = free_buffer();
    core_.store_word(at.sync(buffer), 0);
    core_.store_word(at.grant_source, number);
    core_.store_word(at.grant_source + 4, static_cast<std::uint32_t>(buffer));
    send_words(core_, at.grant_source, at.granted, kWordBytes);
    core_.noc_semaphore_wait(at.sync(buffer), number);
    plan_.run->arrived[static_cast<std::size_t>(hop.route)][static_cast<std::size_t>(hop.hop)] =
        core_.network().simulation().now();
    core_.store_word(at.answer_source, number);
    send_words(core_, at.answer_source, at.answered, kWordBytes);
    if (plan_.is_last(hop)) {
      check(hop, buffer);
    } else {
      hand_over(hop, buffer);
    }
  }

  int free_buffer() {
    const Layout& at = plan_.layout;
    while (true) {
      for (std::size_t buffer = 0; buffer < holds_.size(); ++buffer) {
        const int number = static_cast<int>(buffer);
        if (holds_[buffer] && core_.load_word(at.freed_at(number)) != 0) {
          core_.store_word(at.freed_at(number), 0);
          holds_[buffer] = false;
        }
        if (!holds_[buffer]) return number;
      }
      core_.idle(kPollCycles);
    }
  }

  void hand_over(HopName hop, int buffer) {
    holds_[static_cast<std::size_t>(buffer)] = true;
    const Place& next = plan_.senders.at({hop.route, hop.hop + 1});
    core_.noc_semaphore_inc({tile_of(next.core), plan_.layout.arrived_at(next.command)},
                            static_cast<std::uint32_t>(buffer) + 1);
  }

  void check(HopName hop, int buffer) {
    std::vector<std::byte> found(plan_.layout.packet_bytes);
    core_.load(plan_.layout.buffer(buffer), found);
    if (found != packet_of(hop.route, found.size())) ++plan_.run->wrong_packets;
  }

  EthernetCore& core_;
  Plan& plan_;
  const CoreCommands& list_;
  std::vector<bool> holds_;  // buffers with packets to forward
};

Layout allocate(Program& program, const RouteLists& lists, std::size_t commands_max) {
  const auto take = [&](std::uint64_t size_bytes) {
    return program.allocate(size_bytes, TileKind::ethernet);
  };
  const auto buffers = static_cast<std::uint64_t>(lists.buffers_per_core);
  Layout layout;
  layout.packet_bytes = lists.packet_bytes;
  layout.staging = take(lists.packet_bytes + kWordBytes);
  layout.granted = take(kWordBytes);
  layout.answered = take(kWordBytes);
  layout.grant_source = take(kWordBytes);
  layout.answer_source = take(kWordBytes);
  layout.buffers = take(buffers * (lists.packet_bytes + kWordBytes));
  layout.freed = take(buffers * kWordBytes);
  layout.arrived = take(commands_max * kWordBytes);
  return layout;
}

Plan plan_of(const RouteLists& lists, RoutesRun& run) {
  if (lists.packet_bytes == 0 || lists.packet_bytes % kWordBytes != 0) {
    throw std::invalid_argument(
        fmt::format("packets have {} bytes; they must have a positive multiple of {}",
                    lists.packet_bytes, kWordBytes));
  }
  routing::execute(lists.routes, lists.lists, lists.buffers_per_core);  // rejects invalid lists
  Plan plan{&lists, {}, {}, {}, &run};
  for (std::size_t route = 0; route < lists.routes.size(); ++route) {
    run.arrived.emplace_back(lists.routes[route].size());
    for (std::size_t hop = 0; hop < lists.routes[route].size(); ++hop) {
      plan.number_of[{static_cast<int>(route), static_cast<int>(hop)}] =
          static_cast<std::uint32_t>(plan.number_of.size()) + 1;
    }
  }
  for (const CoreCommands& list : lists.lists) {
    for (std::size_t i = 0; i < list.commands.size(); ++i) {
      if (list.commands[i].kind == Command::Kind::send) {
        plan.senders[list.commands[i].of] = {list.core, i};
      }
    }
  }
  return plan;
}

}  // namespace

RoutesRun run_route_lists(Cluster& cluster, const RouteLists& lists) {
  RoutesRun run;
  Plan plan = plan_of(lists, run);
  std::size_t commands_max = 1;
  for (const CoreCommands& list : lists.lists) {
    commands_max = std::max(commands_max, list.commands.size());
  }
  std::map<int, Program*> programs;
  for (const CoreCommands& list : lists.lists) {
    if (list.commands.empty()) continue;
    Program*& program = programs[list.core.chip];
    if (program == nullptr) {
      program = &cluster.create_program(list.core.chip);
      plan.layout = allocate(*program, lists, commands_max);
    }
    program->create_kernel(
        LogicalCore{0, list.core.channel},
        {.name = fmt::format("routes {}/{}", list.core.chip, list.core.channel)},
        [&plan, &list](EthernetCore& core) { ListKernel(core, plan, list).run(); });
  }
  run.time = cluster.run();
  return run;
}

}  // namespace towpath::tenstorrent::kernels
