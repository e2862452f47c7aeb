// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "ethernet_cluster.hpp"
#include "sentence.hpp"
#include "towpath/tenstorrent/kernels/handshake.hpp"
#include "towpath/tenstorrent/kernels/merged_channel.hpp"
#include "towpath/tenstorrent/kernels/socket.hpp"

// The small functions of which kernels at the ends of a link consist.

namespace towpath::tenstorrent::kernels {
namespace {

using tenstorrent::EthernetKernel;
using tenstorrent::Failure;
using tenstorrent::kBuffer;
using tenstorrent::Pair;
using tenstorrent::run_to_failure;
using Bytes = std::vector<std::byte>;

Bytes pattern(std::uint64_t size_bytes, int seed) {
  Bytes bytes(size_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(31 * i + static_cast<std::size_t>(seed));
  }
  return bytes;
}

// --- handshake and teardown ---------------------------------------------------------------------

using Handshake = std::function<void(EthernetCore&, bool is_master)>;
const std::vector<std::pair<std::string, Handshake>> kHandshakes{
    {"done",
     [](EthernetCore& core, bool is_master) { tenstorrent::kernels::handshake(core, is_master); }},
    {"magic",
     [](EthernetCore& core, bool is_master) { handshake_with_magic(core, is_master, kBuffer); }},
};

// A program owns both kinds as DataMovementCore.
static_assert(std::has_virtual_destructor_v<DataMovementCore>);

TEST(Handshake, LetsBothEndsSendWhicheverStartsLate) {
  const MergedChannel there{kBuffer + 64, 64};
  const MergedChannel back{kBuffer + 256, 64};
  for (const auto& [name, shake] : kHandshakes) {
    for (const noc::Cycle sender_late : {0, 50'000}) {
      Pair pair;
      const auto end = [&](bool is_master, const MergedChannel& out, const MergedChannel& in) {
        return [&, is_master](EthernetCore& core) {
          clear(core, out);
          clear(core, in);
          shake(core, is_master);
          send(core, out);
          wait_for_payload(core, in);
          ack_done(core, in);
          wait_until_free(core, out);
        };
      };
      pair.cluster.create_program(0).create_kernel(
          {0, 0}, {.name = "master", .start_cycle = sender_late}, end(true, there, back));
      pair.cluster.create_program(1).create_kernel(
          {0, 0}, {.name = "subordinate", .start_cycle = 50'000 - sender_late},
          end(false, back, there));
      const Failure failure = run_to_failure(pair.cluster);
      EXPECT_EQ(failure.hazard, "none") << name << ": " << failure.sentence;
    }
  }
}

TEST(Handshake, IsNeededBeforeAnythingElse) {
  const MergedChannel channel{kBuffer, 64};
  Pair pair;
  pair.create([&](EthernetCore& core) { send(core, channel); },
              [&](EthernetCore& core) { wait_for_payload(core, channel); });
  EXPECT_EQ(run_to_failure(pair.cluster).hazard, "missing_handshake");
}

void send_over_channels(EthernetCore& core) {
  tenstorrent::kernels::handshake(core, true);
  for (int channel = 1; channel < 4; ++channel) {
    core.eth_send_bytes_over_channel(kBuffer, kBuffer + 4096 * channel, 64, channel, 64, 4);
  }
}

void receive_over_channels(EthernetCore& core) {
  tenstorrent::kernels::handshake(core, false);
  for (int channel = 1; channel < 4; ++channel) {
    core.eth_wait_for_bytes_on_channel(64, channel);
    core.work(1000);
    core.eth_receiver_channel_done(channel);
  }
}

TEST(Teardown, WaitsForTheLastCredit) {
  Pair pair;
  noc::Cycle end = 0;
  pair.create(
      [&](EthernetCore& core) {
        send_over_channels(core);
        teardown(core, 1, 3);
        end = core.cycle();
      },
      receive_over_channels);
  const Failure failure = run_to_failure(pair.cluster);
  EXPECT_EQ(failure.hazard, "none") << failure.sentence;
  EXPECT_GT(end, 3000);
}

TEST(Teardown, MustNotLeaveOutAChannel) {
  Pair pair;
  pair.create(
      [](EthernetCore& core) {
        send_over_channels(core);
        teardown(core, 1, 2);
      },
      receive_over_channels);
  EXPECT_EQ(run_to_failure(pair.cluster).hazard, "missing_teardown");
}

// --- merged channels ----------------------------------------------------------------------------

TEST(MergedChannel, HasItsWordBehindItsBuffer) {
  const std::vector<MergedChannel> channels = merged_channels(1024, 64, 3);
  ASSERT_EQ(channels.size(), 3u);
  EXPECT_EQ(channels[0].sync(), 1024u + 64);
  EXPECT_EQ(channels[1].offset, 1024u + 80);
  EXPECT_EQ(channels[2].end(), 1024u + 3 * 80);
}

TEST(MergedChannel, IsMadeOfWords) {
  const std::string end = "; both must be multiples of 16, and the size above 0";
  EXPECT_EQ(sentence_of([] { merged_channels(0, 24, 1); }),
            "channels have 24 bytes at offset 0" + end);
  EXPECT_EQ(sentence_of([] { merged_channels(8, 16, 1); }),
            "channels have 16 bytes at offset 8" + end);
  EXPECT_EQ(sentence_of([] { merged_channels(0, 0, 1); }),
            "channels have 0 bytes at offset 0" + end);
}

// Three frames; each sees a word that comes with the last.
TEST(MergedChannel, ShowsItsWordOnlyWithTheWholePayload) {
  const MergedChannel channel{kBuffer, 4096};
  Pair pair;
  std::vector<Bytes> seen;
  pair.create(
      [&](EthernetCore& core) {
        clear(core, channel);
        tenstorrent::kernels::handshake(core, true);
        for (int i = 0; i < 3; ++i) {
          core.store(channel.offset, pattern(channel.size_bytes, i));
          send(core, channel);
          wait_until_free(core, channel);
        }
      },
      [&](EthernetCore& core) {
        clear(core, channel);
        tenstorrent::kernels::handshake(core, false);
        for (int i = 0; i < 3; ++i) {
          wait_for_payload(core, channel);
          Bytes& bytes = seen.emplace_back(channel.size_bytes);
          core.load(channel.offset, bytes);
          ack_done(core, channel);
        }
      });
  const Failure failure = run_to_failure(pair.cluster);
  ASSERT_EQ(failure.hazard, "none") << failure.sentence;
  ASSERT_EQ(seen.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], pattern(4096, i));
}

TEST(MergedChannel, TakesOneCommandEachWay) {
  const MergedChannel channel{kBuffer, 4096};
  Pair pair;
  pair.create(
      [&](EthernetCore& core) {
        clear(core, channel);
        tenstorrent::kernels::handshake(core, true);
        send(core, channel);
        wait_until_free(core, channel);
      },
      [&](EthernetCore& core) {
        clear(core, channel);
        tenstorrent::kernels::handshake(core, false);
        wait_for_payload(core, channel);
        ack_done(core, channel);
      });
  pair.cluster.run();
  const auto commands = [&](int chip) {
    return pair.cluster.device(chip).ethernet_tile({0, 0}).port().counters().commands;
  };
  EXPECT_EQ(commands(0), 2u + 1);  // of the handshake and of the payload
  EXPECT_EQ(commands(1), 1u + 1);
}

TEST(MergedChannel, MustNotBeFilledBeforeItIsFree) {
  const MergedChannel channel{kBuffer, 64};
  Pair pair;
  pair.create(
      [&](EthernetCore& core) {
        clear(core, channel);
        tenstorrent::kernels::handshake(core, true);
        send(core, channel);
        core.store(channel.offset, pattern(64, 1));
      },
      [&](EthernetCore& core) {
        clear(core, channel);
        tenstorrent::kernels::handshake(core, false);
        wait_for_payload(core, channel);
        ack_done(core, channel);
      });
  EXPECT_EQ(run_to_failure(pair.cluster).hazard, "source_overwritten");
}

// --- sockets ------------------------------------------------------------------------------------

TEST(Socket, OfARevisitedEdgeIsAnotherLink) {
  Cluster cluster(tenstorrent::two_chips(2), {});
  const std::vector<Socket> sockets = ring_sockets(cluster, {0, 1});
  ASSERT_EQ(sockets.size(), 2u);
  EXPECT_EQ(sockets[0].sender, (LogicalCore{0, 0}));
  EXPECT_EQ(sockets[0].receiver_chip, 1);
  EXPECT_EQ(sockets[1].sender, (LogicalCore{0, 1}));
  EXPECT_EQ(sockets[1].receiver, (LogicalCore{0, 1}));
  EXPECT_EQ(sentence_of([&] { ring_sockets(cluster, {0, 1, 0, 1}); }),
            "there is no link 3 from chip 0 to chip 1; kernels have 2 links between them");
}

TEST(Socket, LeavesTheDispatcherItsLink) {
  machine::ChipCluster description = *tenstorrent::two_chips(2);
  description.links[0].is_reserved = true;
  Cluster cluster(machine::build_chip_cluster(std::move(description)), {});
  EXPECT_EQ(socket_between(cluster, 0, 1).sender, (LogicalCore{0, 1}));
  EXPECT_EQ(sentence_of([&] { socket_between(cluster, 0, 1, 1); }),
            "there is no link 2 from chip 0 to chip 1; kernels have 1 links between them");
}

TEST(Socket, KnowsTheRingsOfTheWalkthrough) {
  for (const int hops : {2, 4, 8, 12}) {
    EXPECT_EQ(t3000_ring(hops).size(), static_cast<std::size_t>(hops));
  }
  EXPECT_EQ(sentence_of([] { t3000_ring(6); }), "there is no ring of 6 hops; choose 2, 4, 8 or 12");
}

}  // namespace
}  // namespace towpath::tenstorrent::kernels
