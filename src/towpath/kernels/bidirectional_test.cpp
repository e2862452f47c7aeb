// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/kernels/bidirectional_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "towpath/kernels/handshake.hpp"
#include "towpath/kernels/merged_channel.hpp"

namespace towpath::kernels {

namespace {

using device::tenstorrent::Program;
using machine::TileKind;

constexpr int kChannelsMax = 30;
// What one pass of the loop takes, and what comes on top when it finds a channel free, sends, or
// answers, besides the calls. Fitted to ubench2, 512 B over one and over four channels.
constexpr noc::Cycle kPassCycles = 40;
constexpr noc::Cycle kFreeCycles = 50;
constexpr noc::Cycle kSendCycles = 50;
constexpr noc::Cycle kAnswerCycles = 50;

struct End {
  std::vector<MergedChannel> out;
  std::vector<MergedChannel> in;
  int packets = 0;  // over each channel
  bool is_master = false;
};

// The loop of one end. Each pass looks at one channel to send over and one to receive from.
class Loop {
 public:
  Loop(EthernetCore& core, const End& end)
      : core_(core), end_(end), sent_(end.out.size()), is_busy_(end.out.size()) {}

  void run() {
    const int total = end_.packets * static_cast<int>(end_.out.size());
    while (done_ < total || answered_ < total) {
      bool did_anything = look_for_free();
      did_anything |= send_next();
      did_anything |= answer();
      end_pass(did_anything);
    }
  }

 private:
  bool look_for_free() {
    if (!is_busy_[out_] || !is_free(core_, end_.out[out_])) return false;
    is_busy_[out_] = false;
    ++done_;
    core_.work(kFreeCycles);
    return true;
  }

  bool send_next() {
    if (is_busy_[out_] || sent_[out_] == end_.packets || core_.eth_txq_is_busy()) return false;
    core_.work(kSendCycles);
    send(core_, end_.out[out_]);
    is_busy_[out_] = true;
    ++sent_[out_];
    return true;
  }

  bool answer() {
    if (!has_payload(core_, end_.in[in_]) || core_.eth_txq_is_busy()) return false;
    core_.work(kAnswerCycles);
    say_done(core_, end_.in[in_]);
    ++answered_;
    in_ = (in_ + 1) % end_.in.size();
    return true;
  }

  // Once it has looked at all channels in vain, it looks again when something has changed; passes
  // go on meanwhile.
  void end_pass(bool did_anything) {
    idle_passes_ = did_anything ? 0 : idle_passes_ + 1;
    const noc::Cycle begin = core_.cycle();
    if (idle_passes_ < end_.out.size()) {
      core_.work(kPassCycles);
    } else {
      core_.idle(kPassCycles, EthernetCore::kNever);
      idle_passes_ = 0;
    }
    const auto passes = static_cast<std::size_t>((core_.cycle() - begin) / kPassCycles);
    out_ = (out_ + passes) % end_.out.size();
  }

  EthernetCore& core_;
  const End& end_;
  std::vector<int> sent_;
  std::vector<bool> is_busy_;
  std::size_t out_ = 0;
  std::size_t in_ = 0;
  int done_ = 0;
  int answered_ = 0;
  std::size_t idle_passes_ = 0;
};

void run_end(EthernetCore& core, const End& end, Time& time) {
  for (const MergedChannel& channel : end.out) clear(core, channel);
  for (const MergedChannel& channel : end.in) clear(core, channel);
  handshake(core, end.is_master);
  const Time begin = core.network().simulation().now();
  Loop(core, end).run();
  time = core.network().simulation().now() - begin;
}

void check(const BidirectionalTest& test) {
  if (test.channels < 1 || test.channels > kChannelsMax) {
    throw std::invalid_argument(fmt::format(
        "there are {} channels in each direction; 1 to {} can be", test.channels, kChannelsMax));
  }
  if (test.packets < 1) {
    throw std::invalid_argument(
        fmt::format("{} packets go over each channel; at least 1 does", test.packets));
  }
}

}  // namespace

double run_bidirectional_test(Cluster& cluster, const Socket& socket,
                              const BidirectionalTest& test) {
  check(test);
  Program& one = cluster.create_program(socket.sender_chip);
  Program& other = cluster.create_program(socket.receiver_chip);
  const std::uint64_t size_bytes =
      static_cast<std::uint64_t>(test.channels) * (test.packet_bytes + MergedChannel::kSyncBytes);
  const auto channels = [&](std::uint64_t offset) {
    return merged_channels(offset, test.packet_bytes, test.channels);
  };
  const auto there = channels(one.allocate(size_bytes, TileKind::ethernet));
  const auto back = channels(one.allocate(size_bytes, TileKind::ethernet));
  other.allocate(size_bytes, TileKind::ethernet);  // the same places
  other.allocate(size_bytes, TileKind::ethernet);
  const End master{there, back, test.packets, true};
  const End subordinate{back, there, test.packets, false};
  Time master_time;
  Time subordinate_time;
  one.create_kernel(socket.sender, {.name = "master"},
                    [&](EthernetCore& core) { run_end(core, master, master_time); });
  other.create_kernel(socket.receiver, {.name = "subordinate"},
                      [&](EthernetCore& core) { run_end(core, subordinate, subordinate_time); });
  cluster.run();
  const double bytes = 2.0 * static_cast<double>(test.packet_bytes) * test.channels * test.packets;
  return bytes / std::max(master_time, subordinate_time).ns();
}

}  // namespace towpath::kernels
