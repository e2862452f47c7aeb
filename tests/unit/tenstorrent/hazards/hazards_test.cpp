// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "ethernet_cluster.hpp"

// Kernels with a mistake, beside kernels that do the same without it. The mistake is found whenever
// the programs happen to start, and a correct program is never accused.

namespace towpath::tenstorrent {
namespace {

using namespace literals;
using machine::Coordinate;
using machine::TileKind;
using noc::pattern;

constexpr std::uint64_t kBytes = 2048;
constexpr std::uint64_t kWords = kBytes / 16;
constexpr std::uint64_t kSecondBuffer = kBuffer + 0x4000;
constexpr int kSeeds = 20;

using Programs = std::function<void(Cluster&)>;

// Without skew, with some and with more than a program takes.
struct LinkSetup {
  int links = 1;
  int queues = 1;
};
void expect_in_every_run(const Programs& set_up, const std::string& hazard, int chip,
                         const std::string& kernel, const LinkSetup& joined = {}) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto skew = static_cast<noc::Cycle>(seed % 4 * seed * 1000);
    Pair pair({.seed = seed + 1, .start_skew_cycles = skew / 50, .program_skew_cycles = skew},
              joined.links, joined.queues);
    set_up(pair.cluster);
    const Failure failure = run_to_failure(pair.cluster);
    ASSERT_EQ(failure.hazard, hazard) << failure.sentence << " (seed " << seed << ")";
    if (hazard == "none") continue;
    EXPECT_EQ(failure.chip, chip) << failure.sentence;
    EXPECT_EQ(failure.kernel, kernel) << failure.sentence;
  }
}
void expect_clean(const Programs& set_up, const LinkSetup& joined = {}) {
  expect_in_every_run(set_up, "none", -1, "", joined);
}

Programs kernels(const EthernetKernel& sender, const EthernetKernel& receiver) {
  return [=](Cluster& cluster) {
    cluster.create_program(0).create_kernel({0, 0}, {.name = "sender"}, sender);
    cluster.create_program(1).create_kernel({0, 0}, {.name = "receiver"}, receiver);
  };
}
Programs in_sequence(const std::vector<Programs>& setups) {
  return [=](Cluster& cluster) {
    for (const Programs& set_up : setups) set_up(cluster);
  };
}

std::string sentence(const Programs& set_up) {
  Pair pair;
  set_up(pair.cluster);
  return run_to_failure(pair.cluster).sentence;
}

void send(EthernetCore& core, int channel, std::uint64_t buffer = kBuffer) {
  core.eth_send_bytes_over_channel(buffer, buffer, kBytes, channel, kBytes, kWords);
}

// Payloads over channel 1.
EthernetKernel sender(int packets, bool shakes_hands = true, bool waits_at_the_end = true) {
  return [=](EthernetCore& core) {
    if (shakes_hands) handshake(core, true);
    for (int packet = 0; packet < packets; ++packet) {
      core.store(kBuffer, pattern(kBytes, static_cast<unsigned>(packet)));
      send(core, 1);
      const bool is_last = packet + 1 == packets;
      if (!is_last || waits_at_the_end) core.eth_wait_for_receiver_channel_done(1);
    }
  };
}
EthernetKernel receiver(int packets, bool shakes_hands = true) {
  return [=](EthernetCore& core) {
    if (shakes_hands) handshake(core, false);
    for (int packet = 0; packet < packets; ++packet) {
      core.eth_wait_for_bytes_on_channel(kBytes, 1);
      noc::Data data(kBytes);
      core.load(kBuffer, data);
      core.eth_receiver_channel_done(1);
    }
  };
}

// --- start and end ------------------------------------------------------------------------------

TEST(Hazard, MissingHandshakeIsFoundInEveryRun) {
  expect_in_every_run(kernels(sender(3, false), receiver(3, false)), "missing_handshake", 0,
                      "sender");
  EXPECT_EQ(sentence(kernels(sender(3, false), receiver(3, false))),
            "kernel 'sender' on core (0, 0) of chip 0 in eth_send_bytes_over_channel: sends 2048 "
            "bytes to offset 131072 of core (0, 0) of chip 1, without proof that the kernel of the "
            "same program has started there; add a handshake first");
}

TEST(Hazard, MissingHandshakeIsFoundBehindAProgramThatShookHands) {
  const Programs first = kernels(sender(2), receiver(2));
  expect_in_every_run(in_sequence({first, kernels(sender(2, false), receiver(2, false))}),
                      "missing_handshake", 0, "sender");
  expect_clean(in_sequence({first, first, first}));
}

// The guide's example: the second program of one chip sends into the first one of the other.
TEST(Hazard, MissingHandshakeIsFoundWhenThePeerStillRunsTheProgramBefore) {
  const Programs long_first = [](Cluster& cluster) {
    cluster.create_program(0).create_kernel({.core = {0, 1}, .name = "short"},
                                            [](DataMovementCore&) {});
    cluster.create_program(1).create_kernel({0, 0}, {.name = "long"},
                                            [](EthernetCore& core) { core.work(100'000); });
  };
  expect_in_every_run(in_sequence({long_first, kernels(sender(1, false), receiver(1, false))}),
                      "missing_handshake", 0, "sender");
  expect_clean(in_sequence({long_first, kernels(sender(1), receiver(1))}));
}

// A handshake over one link is valid for the other when the chips' cores tell each other.
Programs two_links_one_handshake(bool is_told) {
  return [=](Cluster& cluster) {
    for (const int chip : {0, 1}) {
      Program& program = cluster.create_program(chip);
      const std::size_t told = program.create_semaphore(0, TileKind::ethernet);
      program.create_kernel({0, 0}, {.name = "first"}, [=](EthernetCore& core) {
        if (chip == 1) core.eth_noc_semaphore_wait(core.get_semaphore(told), 1);
        handshake(core, chip == 0);
        if (chip == 1) return;
        core.noc_semaphore_inc({{1, 0}, core.get_semaphore(told)}, 1);
        core.noc_async_atomic_barrier();
      });
      program.create_kernel({0, 1}, {.name = "second"}, [=](EthernetCore& core) {
        if (chip == 1) {
          core.noc_semaphore_inc({{0, 0}, core.get_semaphore(told)}, 1);
          core.noc_async_atomic_barrier();
          receiver(1, false)(core);
        } else {
          if (is_told) core.eth_noc_semaphore_wait(core.get_semaphore(told), 1);
          sender(1, false)(core);
        }
      });
    }
  };
}

TEST(Hazard, HandshakeIsKnownToANotifiedKernel) {
  expect_clean(two_links_one_handshake(true), {.links = 2});
  expect_in_every_run(two_links_one_handshake(false), "missing_handshake", 0, "second",
                      {.links = 2});
}

TEST(Hazard, MissingTeardownIsFoundInEveryRun) {
  expect_clean(kernels(sender(3), receiver(3)));
  expect_in_every_run(kernels(sender(3, true, false), receiver(3)), "missing_teardown", 0,
                      "sender");
  EXPECT_EQ(sentence(kernels(sender(1, true, false), receiver(1))),
            "kernel 'receiver' on core (0, 0) of chip 1 in eth_receiver_channel_done: sends 16 "
            "bytes to offset 98416 of core (0, 0) of chip 0, where kernel 'sender' on core (0, 0) "
            "of chip 0 has ended; a kernel waits for all that is sent to it");
}

// The credit has arrived when the sender ends, but it did not look.
TEST(Hazard, MissingTeardownIsFoundWhenNothingIsUnderWay) {
  const EthernetKernel late = [](EthernetCore& core) {
    sender(1, true, false)(core);
    core.work(50'000);
  };
  expect_in_every_run(kernels(late, receiver(1)), "missing_teardown", 0, "sender");
  EXPECT_EQ(sentence(kernels(late, receiver(1))),
            "kernel 'sender' on core (0, 0) of chip 0 ends without having waited for the 16 bytes "
            "that kernel 'receiver' on core (0, 0) of chip 1 has sent to its offset 98416; wait "
            "for all data that is sent to a kernel");
}

TEST(Hazard, MissingTeardownIsTheReceiversWhenItLeavesPayloadBehind) {
  const EthernetKernel two_channels = [](EthernetCore& core) {
    handshake(core, true);
    send(core, 1);
    send(core, 2, kSecondBuffer);
    core.eth_wait_for_receiver_channel_done(1);
  };
  expect_in_every_run(kernels(two_channels, receiver(1)), "missing_teardown", 1, "receiver");
}

// --- sources ------------------------------------------------------------------------------------

enum class Wait { nothing, acknowledgement, done };

Programs source_is_reused_after(Wait wait) {
  const EthernetKernel first = [=](EthernetCore& core) {
    handshake(core, true);
    core.store(kBuffer, pattern(kBytes, 1));
    send(core, 1);
    if (wait == Wait::acknowledgement) {
      while (!core.eth_is_receiver_channel_send_acked(1)) core.idle(8);
    }
    if (wait == Wait::done) core.eth_wait_for_receiver_channel_done(1);
    core.work(20'000);  // long after it has left
    core.store(kBuffer, pattern(kBytes, 2));
    core.eth_wait_for_receiver_channel_done(1);
  };
  const EthernetKernel second = [](EthernetCore& core) {
    constexpr std::uint64_t kAckWord = kBuffer - 16;
    core.store_word(kAckWord, 1);
    core.store_word(kAckWord + 4, 1);
    handshake(core, false);
    core.eth_wait_for_bytes_on_channel(kBytes, 1);
    core.eth_receiver_channel_ack(1, kAckWord);
    core.eth_receiver_channel_done(1);
  };
  return kernels(first, second);
}

TEST(Hazard, SourceThatChangesBeforeItIsAcknowledgedIsFoundInEveryRun) {
  expect_in_every_run(source_is_reused_after(Wait::nothing), "source_overwritten", 0, "sender");
  expect_clean(source_is_reused_after(Wait::acknowledgement));
  expect_clean(source_is_reused_after(Wait::done));
  EXPECT_EQ(
      sentence(source_is_reused_after(Wait::nothing)),
      "kernel 'sender' on core (0, 0) of chip 0 in store: changes bytes 131072 to 133119 of "
      "core (0, 0) of chip 0, from which kernel 'sender' on core (0, 0) of chip 0 sends, without "
      "proof that they have arrived; wait for an acknowledgment before changing a source");
}

TEST(Hazard, SourceMayBeWrittenWithWhatItHolds) {
  expect_clean(kernels(
      [](EthernetCore& core) {
        handshake(core, true);
        send(core, 1);
        core.store(kBuffer, noc::Data(kBytes));
        core.eth_wait_for_receiver_channel_done(1);
      },
      receiver(1)));
}

// The receiver's last answer, "done", is sent from the channel's word and not answered itself. The
// next program on its core sends over that channel, and so changes the word.
TEST(Hazard, TheLastAnswerOfAnEarlierProgramIsNotASource) {
  const Programs back = [](Cluster& cluster) {
    cluster.create_program(0).create_kernel({0, 0}, {.name = "receiver"}, receiver(2));
    cluster.create_program(1).create_kernel({0, 0}, {.name = "sender"}, [](EthernetCore& core) {
      core.store_word(EthernetCore::bytes_sent_at(1), 1);
      core.store_word(EthernetCore::bytes_sent_at(1), 0);
      sender(2)(core);
    });
  };
  expect_clean(in_sequence({kernels(sender(2), receiver(2)), back}));
}

// --- sync words ---------------------------------------------------------------------------------

TEST(Hazard, SyncWordSentBeforeItsPayloadIsFoundInEveryRun) {
  const auto setup = [](bool is_payload_first) {
    return kernels(
        [=](EthernetCore& core) {
          handshake(core, true);
          for (const bool is_payload : {is_payload_first, !is_payload_first}) {
            if (is_payload) {
              core.eth_send_bytes_over_channel_payload_only(kBuffer, kBuffer, kBytes, 1, kBytes,
                                                            kWords);
            } else {
              core.eth_send_payload_complete_signal_over_channel(1, kBytes);
            }
          }
          core.eth_wait_for_receiver_channel_done(1);
        },
        receiver(1));
  };
  expect_clean(setup(true));
  expect_in_every_run(setup(false), "sync_before_payload", 0, "sender");
  EXPECT_EQ(sentence(setup(false)),
            "kernel 'sender' on core (0, 0) of chip 0 in "
            "eth_send_payload_complete_signal_over_channel: announces 2048 bytes on channel 1, for "
            "which 0 have been sent; send the announcement after its payload");
}

// Payload and sync word in one command, the word behind the payload or before it; even in a
// single frame.
Programs merged(std::uint64_t payload_bytes, bool is_sync_first) {
  const std::uint64_t sync = is_sync_first ? kBuffer : kBuffer + payload_bytes;
  const std::uint64_t payload = is_sync_first ? kBuffer + 16 : kBuffer;
  return kernels(
      [=](EthernetCore& core) {
        handshake(core, true);
        for (std::uint32_t packet = 1; packet <= 2; ++packet) {
          core.store(payload, pattern(payload_bytes, packet));
          core.store_word(sync, static_cast<std::uint32_t>(payload_bytes));
          core.eth_send_packet(0, kBuffer / 16, kBuffer / 16, (payload_bytes + 16) / 16);
          while (core.load_word(sync) != 0) core.idle(8);
        }
      },
      [=](EthernetCore& core) {
        handshake(core, false);
        for (std::uint32_t packet = 1; packet <= 2; ++packet) {
          while (core.load_word(sync) == 0) core.idle(8);
          noc::Data seen(payload_bytes);
          core.load(payload, seen);
          EXPECT_EQ(seen, pattern(payload_bytes, packet));
          core.store_word(sync, 0);
          core.eth_send_packet(0, sync / 16, sync / 16, 1);
        }
      });
}

TEST(Hazard, SyncWordBeforeThePayloadOfItsCommandIsFoundInEveryRun) {
  for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{1024}, std::uint64_t{8192}}) {
    expect_clean(merged(bytes, false));
    expect_in_every_run(merged(bytes, true), "sync_before_payload", 1, "receiver");
  }
}

// Order between queues is not guaranteed.
TEST(Hazard, SyncWordOnAnotherQueueIsFoundInEveryRun) {
  const auto setup = [](int queue) {
    return kernels(
        [=](EthernetCore& core) {
          handshake(core, true);
          core.eth_send_packet(queue, kBuffer / 16, kBuffer / 16, kWords);
          core.work(10'000);  // it has long arrived
          core.eth_send_payload_complete_signal_over_channel(1, kBytes);
          core.eth_wait_for_receiver_channel_done(1);
        },
        receiver(1));
  };
  expect_clean(setup(0), {.queues = 2});
  expect_in_every_run(setup(1), "sync_before_payload", 1, "receiver", {.queues = 2});
}

// A worker that reads what arrived must have been notified, too.
Programs worker_reads(bool is_told) {
  return [=](Cluster& cluster) {
    cluster.create_program(0).create_kernel({0, 0}, {.name = "sender"}, sender(1));
    Program& program = cluster.create_program(1);
    const std::size_t full = program.create_semaphore(0);
    const std::size_t used = program.create_semaphore(0, TileKind::ethernet);
    program.create_kernel({0, 0}, {.name = "receiver"}, [=](EthernetCore& core) {
      handshake(core, false);
      core.eth_wait_for_bytes_on_channel(kBytes, 1);
      core.noc_semaphore_inc({{2, 1}, core.get_semaphore(full)}, 1);
      core.eth_noc_semaphore_wait(core.get_semaphore(used), 1);
      core.noc_async_atomic_barrier();
      core.eth_receiver_channel_done(1);
    });
    program.create_kernel({.core = {2, 1}, .name = "worker"}, [=](DataMovementCore& core) {
      if (is_told) {
        core.noc_semaphore_wait(core.get_semaphore(full), 1);
      } else {
        core.work_until(1'000'000);
      }
      core.noc_async_read({{0, 0}, kBuffer}, kBuffer, kBytes);
      core.noc_async_read_barrier();
      core.noc_semaphore_inc({{0, 0}, core.get_semaphore(used)}, 1);
      core.noc_async_atomic_barrier();
    });
  };
}

TEST(Hazard, PayloadIsReadOnlyByANotifiedKernel) {
  expect_clean(worker_reads(true));
  expect_in_every_run(worker_reads(false), "sync_before_payload", 1, "worker");
}

TEST(Hazard, AcknowledgementFromAChannelsOwnWordIsFound) {
  const auto setup = [](std::uint64_t ack_word) {
    return kernels(sender(1), [=](EthernetCore& core) {
      core.store_word(ack_word, 1);
      core.store_word(ack_word + 4, 1);
      handshake(core, false);
      core.eth_wait_for_bytes_on_channel(kBytes, 1);
      core.eth_receiver_channel_ack(1, ack_word);
      core.eth_receiver_channel_done(1);
    });
  };
  expect_clean(setup(kBuffer - 16));
  expect_in_every_run(setup(EthernetCore::bytes_sent_at(5)), "acknowledgement_from_channel_word", 1,
                      "receiver");
}

// --- semaphores and workers ---------------------------------------------------------------------

enum class Clears { before, after };

// The turn goes to and fro between an Ethernet core and a worker.
Programs turns(Clears mover_clears, Clears worker_clears) {
  return [=](Cluster& cluster) {
    Program& program = cluster.create_program(0);
    const std::size_t at_mover = program.create_semaphore(0, TileKind::ethernet);
    const std::size_t at_worker = program.create_semaphore(0);
    const auto take_turns = [](auto& core, std::uint64_t own, const NocAddress& other,
                               Clears clears) {
      for (int turn = 0; turn < 4; ++turn) {
        core.noc_semaphore_wait(own, 1);
        if (clears == Clears::before) core.noc_semaphore_set(own, 0);
        core.noc_semaphore_inc(other, 1);
        if (clears == Clears::after) core.noc_semaphore_set(own, 0);
      }
      core.noc_async_atomic_barrier();
    };
    program.create_kernel({0, 0}, {.name = "mover"}, [=](EthernetCore& core) {
      take_turns(core, core.get_semaphore(at_mover), {{2, 1}, core.get_semaphore(at_worker)},
                 mover_clears);
    });
    program.create_kernel({.core = {2, 1}, .name = "worker"}, [=](DataMovementCore& core) {
      core.noc_semaphore_inc({{0, 0}, core.get_semaphore(at_mover)}, 1);
      take_turns(core, core.get_semaphore(at_worker), {{0, 0}, core.get_semaphore(at_mover)},
                 worker_clears);
    });
  };
}

TEST(Hazard, SemaphoreThatIsClearedAfterTheNotificationIsFoundInEveryRun) {
  expect_clean(turns(Clears::before, Clears::before));
  expect_in_every_run(turns(Clears::after, Clears::before), "semaphore_cleared_after_notification",
                      0, "mover");
  expect_in_every_run(turns(Clears::before, Clears::after), "semaphore_cleared_after_notification",
                      0, "worker");
}

// Two workers push into the same buffer of an Ethernet core, one after the other if they are
// notified.
Programs two_workers(bool are_told, bool share_a_buffer) {
  return [=](Cluster& cluster) {
    Program& program = cluster.create_program(0);
    const std::size_t full = program.create_semaphore(0, TileKind::ethernet);
    const std::size_t free = program.create_semaphore(0);
    const std::vector<Coordinate> workers{{1, 1}, {2, 1}};
    for (const Coordinate worker : workers) {
      program.create_kernel({.core = worker, .name = "worker"}, [=](DataMovementCore& core) {
        if (are_told) core.noc_semaphore_wait(core.get_semaphore(free), 1);
        const std::uint64_t to =
            share_a_buffer || worker == workers.front() ? kBuffer : kSecondBuffer;
        core.store(kBuffer, pattern(kBytes, static_cast<unsigned>(worker.x)));
        core.noc_async_write(kBuffer, {{0, 0}, to}, kBytes);
        core.noc_async_write_barrier();
        core.noc_semaphore_inc({{0, 0}, core.get_semaphore(full)}, 1);
        core.noc_async_atomic_barrier();
      });
    }
    program.create_kernel({0, 0}, {.name = "mover"}, [=](EthernetCore& core) {
      for (std::uint32_t worker = 0; worker < workers.size(); ++worker) {
        if (are_told) core.noc_semaphore_inc({workers[worker], core.get_semaphore(free)}, 1);
        core.eth_noc_semaphore_wait_min(core.get_semaphore(full), worker + 1);
      }
      core.noc_async_atomic_barrier();
    });
  };
}

TEST(Hazard, TwoWorkersOnOneChannelAreFoundInEveryRun) {
  expect_clean(two_workers(true, true));
  expect_clean(two_workers(false, false));
  expect_in_every_run(two_workers(false, true), "two_workers_on_one_channel", 0, "worker");
}

// --- what never ends ----------------------------------------------------------------------------

TEST(Hazard, KernelThatNeverYieldsIsNamedWhenItsLinkIsDown) {
  const auto failure = [](std::int64_t polls) {
    Pair pair({.link_faults = {{.drop_at = 5_us}}});
    kernels(sender(8), [=](EthernetCore& core) {
      handshake(core, false);
      for (int packet = 0; packet < 8; ++packet) {
        while (!core.eth_bytes_are_available_on_channel(1)) core.idle(8, polls);
        core.eth_receiver_channel_done(1);
      }
    })(pair.cluster);
    return run_to_failure(pair.cluster);
  };
  EXPECT_EQ(failure(1000).sentence, "");
  const Failure never = failure(EthernetCore::kNever);
  EXPECT_EQ(never.hazard, "link_down_without_routing");
  EXPECT_EQ(never.chip, 1);
  EXPECT_EQ(never.kernel, "receiver");
}

// Packets go round a ring of chips; the first chips inject one each. A receiver hands a packet to
// the sender of its chip when that has room for it, and each core has room for one: there must be
// a sender that has none to send.
Programs ring(int chips, int injectors) {
  return [=](Cluster& cluster) {
    constexpr int kRounds = 3;
    const int packets = injectors * kRounds;
    for (int chip = 0; chip < chips; ++chip) {
      const bool injects = chip < injectors;
      Program& program = cluster.create_program(chip);
      const std::size_t full = program.create_semaphore(0, TileKind::ethernet);
      const std::size_t free = program.create_semaphore(injects ? 0 : 1, TileKind::ethernet);
      program.create_kernel({0, 0}, {.name = "receiver"}, [=](EthernetCore& core) {
        const std::uint64_t own = core.get_semaphore(free);
        handshake(core, false);
        for (int packet = 1; packet <= packets; ++packet) {
          core.eth_wait_for_bytes_on_channel(kBytes, 1);
          if (packet < packets || !injects) {  // the own one ends here
            core.eth_noc_semaphore_wait(own, 1);
            core.noc_semaphore_set(own, 0);
            core.noc_async_write(kBuffer, {{1, 0}, kBuffer}, kBytes);
            core.noc_async_write_barrier();
            core.noc_semaphore_inc({{1, 0}, core.get_semaphore(full)}, 1);
          }
          core.eth_receiver_channel_done(1);
        }
        core.noc_async_atomic_barrier();
      });
      program.create_kernel({0, 1}, {.name = "sender"}, [=](EthernetCore& core) {
        const std::uint64_t own = core.get_semaphore(full);
        handshake(core, true);
        for (int packet = 0; packet < packets; ++packet) {
          if (packet == 0 && injects) {
            core.store(kBuffer, pattern(kBytes, static_cast<unsigned>(chip)));
          } else {
            core.eth_noc_semaphore_wait(own, 1);
            core.noc_semaphore_set(own, 0);
          }
          send(core, 1);
          core.eth_wait_for_receiver_channel_done(1);
          core.noc_semaphore_inc({{0, 0}, core.get_semaphore(free)}, 1);
        }
        core.noc_async_atomic_barrier();
      });
    }
  };
}

Failure run_ring(int chips, int injectors, std::uint64_t seed, int programs = 1) {
  Cluster cluster(ring_of_chips(chips), {.seed = seed, .program_skew_cycles = 10'000});
  for (int i = 0; i < programs; ++i) ring(chips, injectors)(cluster);
  Failure failure = run_to_failure(cluster);
  if (failure.hazard != "none") return failure;
  for (int chip = 0; chip < injectors; ++chip) {  // its own packet has come back
    noc::Data bytes(kBytes);
    cluster.device(chip).memory({0, 0}).read(kBuffer, bytes);
    EXPECT_EQ(bytes, pattern(kBytes, static_cast<unsigned>(chip)));
  }
  return failure;
}

TEST(Hazard, BufferChainThatIsTooSmallIsADeadlockWithItsCycle) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Failure failure = run_ring(4, 4, seed);
    EXPECT_EQ(failure.hazard, "deadlock") << failure.sentence;
    ASSERT_EQ(failure.cycle.size(), 8u) << failure.sentence;
    for (std::size_t i = 0; i < failure.cycle.size(); ++i) {  // receiver, sender, next chip's ...
      EXPECT_EQ(failure.cycle[i].kernel, i % 2 == 0 ? "receiver" : "sender");
      EXPECT_EQ(failure.cycle[i].chip, static_cast<int>(i / 2));
    }
    EXPECT_EQ(failure.sentence.find("8 of 8 kernels wait forever: kernel 'receiver' on core "
                                    "(0, 0) of chip 0 in eth_noc_semaphore_wait since cycle "),
              0u);
  }
}

TEST(Hazard, RingThatHasRoomIsClean) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const int injectors : {1, 2, 3}) EXPECT_EQ(run_ring(4, injectors, seed, 3).sentence, "");
  }
}

}  // namespace
}  // namespace towpath::tenstorrent
