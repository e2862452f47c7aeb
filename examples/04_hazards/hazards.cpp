// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Nine ways in which kernels that talk over Ethernet go wrong, each in a program of its own, and
// the sentence that it gets. Each mistake is one of the functions below; the rest is what a right
// program would do.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "small_chips.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/kernels/handshake.hpp"

using towpath::Time;
using towpath::machine::Coordinate;
using towpath::machine::TileKind;
using towpath::tenstorrent::Cluster;
using towpath::tenstorrent::DataMovementCore;
using towpath::tenstorrent::EthernetCore;
using towpath::tenstorrent::Program;
using towpath::tenstorrent::RunOptions;
using towpath::tenstorrent::kernels::handshake;

namespace {

constexpr std::uint64_t kBytes = 4096;
constexpr std::uint64_t kBuffer = 0x20000;  // at both ends
constexpr int kChannel = 1;                 // channel 0 is for handshakes
constexpr int kMessages = 3;

// --- what right programs do ---------------------------------------------------------------------

void fill(EthernetCore& core, int message) {
  core.store(kBuffer, std::vector<std::byte>(kBytes, static_cast<std::byte>(message + 1)));
}

void send(EthernetCore& core) {
  core.eth_send_bytes_over_channel(kBuffer, kBuffer, kBytes, kChannel, kBytes, kBytes / 16);
}

void send_all(EthernetCore& core) {
  handshake(core, true);
  for (int message = 0; message < kMessages; ++message) {
    fill(core, message);
    send(core);
    core.eth_wait_for_receiver_channel_done(kChannel);
  }
}

void receive_one(EthernetCore& core) {
  core.eth_wait_for_bytes_on_channel(kBytes, kChannel);
  std::vector<std::byte> message(kBytes);
  core.load(kBuffer, message);
  core.eth_receiver_channel_done(kChannel);
}

void receive_all(EthernetCore& core) {
  handshake(core, false);
  for (int message = 0; message < kMessages; ++message) receive_one(core);
}

using Ethernet = std::function<void(EthernetCore&)>;

void create(Cluster& cluster, const Ethernet& sender, const Ethernet& receiver) {
  cluster.create_program(0).create_kernel({0, 0}, {.name = "sender"}, sender);
  cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"}, receiver);
}

void run(const char* title, const std::function<void(Cluster&)>& set_up,
         const RunOptions& options = {}) {
  fmt::print("{}:\n", title);
  try {
    Cluster cluster(towpath::examples::two_chips(2), options);
    set_up(cluster);
    const Time end = cluster.run();
    fmt::print("nothing is wrong; it ends after {} ns\n\n", end.ns());
  } catch (const std::exception& error) {
    fmt::print("{}\n\n", error.what());
  }
}

// --- nine mistakes ------------------------------------------------------------------------------

void missing_handshake(Cluster& cluster) {
  create(
      cluster,
      [](EthernetCore& core) {
        fill(core, 0);
        send(core);  // the receiver's core may still run the program before
        core.eth_wait_for_receiver_channel_done(kChannel);
      },
      [](EthernetCore& core) { receive_one(core); });
}

void missing_teardown(Cluster& cluster) {
  create(
      cluster,
      [](EthernetCore& core) {
        handshake(core, true);
        fill(core, 0);
        send(core);
      },  // the credit will come when the next program runs here
      [](EthernetCore& core) {
        handshake(core, false);
        receive_one(core);
      });
}

void source_overwritten(Cluster& cluster) {
  create(
      cluster,
      [](EthernetCore& core) {
        handshake(core, true);
        for (int message = 0; message < kMessages; ++message) {
          fill(core, message);  // the last one may still have to be read
          core.eth_wait_for_receiver_channel_done(kChannel);
          send(core);
        }
        core.eth_wait_for_receiver_channel_done(kChannel);
      },
      receive_all);
}

void sync_before_payload(Cluster& cluster) {
  create(
      cluster,
      [](EthernetCore& core) {
        handshake(core, true);
        fill(core, 0);
        core.eth_send_payload_complete_signal_over_channel(kChannel, kBytes);
        core.eth_send_bytes_over_channel_payload_only(kBuffer, kBuffer, kBytes, kChannel, kBytes,
                                                      kBytes / 16);
        core.eth_wait_for_receiver_channel_done(kChannel);
      },
      [](EthernetCore& core) {
        handshake(core, false);
        receive_one(core);
      });
}

void acknowledgement_from_channel_word(Cluster& cluster) {
  create(cluster, send_all, [](EthernetCore& core) {
    handshake(core, false);
    for (int message = 0; message < kMessages; ++message) {
      core.eth_wait_for_bytes_on_channel(kBytes, kChannel);
      // "Done" changes this word, perhaps before it has been sent: then there are two of them.
      core.eth_receiver_channel_ack(kChannel, EthernetCore::bytes_sent_at(kChannel));
      core.eth_receiver_channel_done(kChannel);
    }
  });
}

void semaphore_cleared_after_notification(Cluster& cluster) {
  Program& program = cluster.create_program(0);
  const std::size_t full = program.create_semaphore(0, TileKind::ethernet);
  const std::size_t free = program.create_semaphore(1);
  const Coordinate worker{0, 1};
  const Coordinate mover{0, 0};
  program.create_kernel({.core = worker, .name = "worker"}, [=](DataMovementCore& core) {
    for (int message = 0; message < kMessages; ++message) {
      core.noc_semaphore_wait(core.get_semaphore(free), 1);
      core.noc_async_write(kBuffer, {mover, kBuffer}, kBytes);
      core.noc_semaphore_inc({mover, core.get_semaphore(full)}, 1);
      core.noc_semaphore_set(core.get_semaphore(free), 0);  // it may be 1 again already
    }
    core.noc_async_full_barrier();
  });
  program.create_kernel({0, 0}, {.name = "mover"}, [=](EthernetCore& core) {
    handshake(core, true);
    for (int message = 0; message < kMessages; ++message) {
      core.eth_noc_semaphore_wait(core.get_semaphore(full), 1);
      core.noc_semaphore_set(core.get_semaphore(full), 0);
      send(core);
      core.eth_wait_for_receiver_channel_done(kChannel);
      core.noc_semaphore_inc({worker, core.get_semaphore(free)}, 1);
    }
    core.noc_async_atomic_barrier();
  });
  cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"}, receive_all);
}

void two_workers_on_one_channel(Cluster& cluster) {
  Program& program = cluster.create_program(0);
  const std::size_t full = program.create_semaphore(0, TileKind::ethernet);
  for (const Coordinate worker : {Coordinate{0, 1}, Coordinate{1, 1}}) {
    program.create_kernel({.core = worker, .name = "worker"}, [=](DataMovementCore& core) {
      core.noc_async_write(kBuffer, {{0, 0}, kBuffer}, kBytes);  // the one over the other
      core.noc_semaphore_inc({{0, 0}, core.get_semaphore(full)}, 1);
      core.noc_async_full_barrier();
    });
  }
  program.create_kernel({0, 0}, {.name = "mover"}, [=](EthernetCore& core) {
    handshake(core, true);
    for (std::uint32_t message = 1; message <= 2; ++message) {
      core.eth_noc_semaphore_wait_min(core.get_semaphore(full), message);
      send(core);
      core.eth_wait_for_receiver_channel_done(kChannel);
    }
  });
  cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"}, [](EthernetCore& core) {
    handshake(core, false);
    for (int message = 0; message < 2; ++message) receive_one(core);
  });
}

// Two chips in a ring: core 0 of each sends to the other, core 1 receives. Both send two messages
// before they make room for the one that they have received.
void buffer_chain_too_small(Cluster& cluster) {
  for (const int chip : {0, 1}) {
    Program& program = cluster.create_program(chip);
    const std::size_t room = program.create_semaphore(0, TileKind::ethernet);
    const bool is_first = chip == 0;
    program.create_kernel({0, is_first ? 0 : 1}, {.name = "sender"}, [=](EthernetCore& core) {
      handshake(core, true);
      for (int message = 0; message < 2; ++message) {
        fill(core, message);
        send(core);
        core.eth_wait_for_receiver_channel_done(kChannel);
      }
      core.noc_semaphore_inc({{is_first ? 1 : 0, 0}, core.get_semaphore(room)}, 2);
      core.noc_async_atomic_barrier();
    });
    program.create_kernel({0, is_first ? 1 : 0}, {.name = "receiver"}, [=](EthernetCore& core) {
      handshake(core, false);
      for (std::uint32_t message = 1; message <= 2; ++message) {
        core.eth_wait_for_bytes_on_channel(kBytes, kChannel);
        core.eth_noc_semaphore_wait_min(core.get_semaphore(room), message);
        core.eth_receiver_channel_done(kChannel);
      }
    });
  }
}

void link_down_without_routing(Cluster& cluster) {
  create(cluster, send_all, [](EthernetCore& core) {
    handshake(core, false);
    for (int message = 0; message < kMessages; ++message) {
      while (!core.eth_bytes_are_available_on_channel(kChannel)) core.idle(8, EthernetCore::kNever);
      core.eth_receiver_channel_done(kChannel);
    }
  });
}

}  // namespace

int main() {
  run("No mistake", [](Cluster& cluster) { create(cluster, send_all, receive_all); });
  run("A sender that does not know whether its receiver has started", missing_handshake);
  run("A sender that ends before its last credit is back", missing_teardown);
  run("A source that changes before it has arrived", source_overwritten);
  run("A sync word in front of its payload", sync_before_payload);
  run("An acknowledgement from the channel's own word", acknowledgement_from_channel_word);
  run("A semaphore that is cleared after the notification", semaphore_cleared_after_notification);
  run("Two workers on one channel", two_workers_on_one_channel);
  run("A chain of buffers that is too small", buffer_chain_too_small);
  run("A core that never yields, and its link goes down", link_down_without_routing,
      {.link_faults = {{.drop_at = Time::from_us(3)}}});
}
