// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "towpath/tenstorrent/kernels/handshake.hpp"
#include "towpath/tenstorrent/kernels/link_benchmarks.hpp"
#include "towpath/tenstorrent/kernels/merged_channel.hpp"

namespace towpath::tenstorrent::kernels {

namespace {

using machine::TileKind;

// A pass without its calls, and the additional cost if it finds a channel free, has sent, or
// answers. The cost is higher with sync words after their packets, which a table points to. Fitted
// together to ubench2 (tt-metal, Basic Ethernet Multichip), 512 B over one and over four channels,
// and to ubench1, 1 KiB.
constexpr noc::Cycle kPassCycles = 65;
constexpr noc::Cycle kStepCycles = 20;
constexpr noc::Cycle kMergedStepCycles = 45;

constexpr int kMergedChannelsMax = 30;
constexpr int kChannelsMax = ethernet_memory_map::kChannels / 2;

struct End {
  std::vector<MergedChannel> out;
  std::vector<MergedChannel> in;
  int first_out = 0;  // first channel of erisc_info, if used
  int first_in = 0;
  bool is_merged = true;
  int packets = 0;  // over each channel
  bool is_master = false;
};

// Loop of one end. Each pass examines one channel to send over and one to receive from, and skips
// operations that would block. As in the measured kernels: with separate words, a free channel is
// used on the loop's next visit, after the pass's answer. With merged words it is used at once, and
// the loop stays with a receiving channel until it has answered.
class Loop {
 public:
  Loop(EthernetCore& core, const End& end)
      : core_(core), end_(end), states_(end.out.size()), sent_(end.out.size()) {}

  void run() {
    const int total = end_.packets * static_cast<int>(end_.out.size());
    while (freed_ < total || answered_ < total) end_pass(end_.is_merged ? merged() : separate());
  }

 private:
  // State of a channel to send over.
  enum class State : std::uint8_t { free, to_announce, in_use };

  bool separate() {
    bool did_anything = send_packet();
    did_anything |= announce();
    did_anything |= look_for_free();
    did_anything |= answer();
    return did_anything;
  }

  bool merged() {
    bool did_anything = look_for_free();
    did_anything |= send_packet();
    did_anything |= answer();
    return did_anything;
  }

  noc::Cycle step_cycles() const { return end_.is_merged ? kMergedStepCycles : kStepCycles; }
  int channel(int first, std::size_t number) const { return first + static_cast<int>(number); }
  std::uint64_t sync(int first, const std::vector<MergedChannel>& channels,
                     std::size_t number) const {
    return end_.is_merged ? channels[number].sync()
                          : EthernetCore::bytes_sent_at(channel(first, number));
  }

  bool look_for_free() {
    if (states_[out_] != State::in_use) return false;
    if (core_.load_word(sync(end_.first_out, end_.out, out_)) != 0) return false;
    states_[out_] = State::free;
    ++freed_;
    core_.work(step_cycles());
    return true;
  }

  bool send_packet() {
    if (states_[out_] != State::free || sent_[out_] == end_.packets) return false;
    if (core_.eth_txq_is_busy()) return false;
    const MergedChannel& packet = end_.out[out_];
    if (end_.is_merged) {
      send(core_, packet);
    } else {
      core_.eth_send_bytes_over_channel_payload_only(
          packet.offset, packet.offset, packet.size_bytes, channel(end_.first_out, out_),
          packet.size_bytes, packet.size_bytes / 16);
    }
    states_[out_] = end_.is_merged ? State::in_use : State::to_announce;
    ++sent_[out_];
    core_.work(step_cycles());
    return true;
  }

  bool announce() {
    if (states_[out_] != State::to_announce || core_.eth_txq_is_busy()) return false;
    core_.work(step_cycles());
    core_.eth_send_payload_complete_signal_over_channel(
        channel(end_.first_out, out_), static_cast<std::uint32_t>(end_.out[out_].size_bytes));
    states_[out_] = State::in_use;
    return true;
  }

  bool answer() {
    if (core_.load_word(sync(end_.first_in, end_.in, in_)) == 0) return false;
    if (core_.eth_txq_is_busy()) return false;
    core_.work(step_cycles());
    if (end_.is_merged) {
      ack_done(core_, end_.in[in_]);
    } else {
      core_.eth_receiver_channel_done(channel(end_.first_in, in_));
    }
    ++answered_;
    if (end_.is_merged) in_ = (in_ + 1) % end_.in.size();
    return true;
  }

  // After a full round without progress it waits for a change. The waiting time counts as passes.
  void end_pass(bool did_anything) {
    idle_passes_ = did_anything ? 0 : idle_passes_ + 1;
    const noc::Cycle begin = core_.cycle();
    const noc::Cycle pass_cycles = kPassCycles;
    if (idle_passes_ < end_.out.size()) {
      core_.work(pass_cycles);
    } else {
      core_.idle(pass_cycles, EthernetCore::kNever);
      idle_passes_ = 0;
    }
    const auto passes =
        static_cast<std::size_t>(std::max<noc::Cycle>(1, (core_.cycle() - begin) / pass_cycles));
    out_ = (out_ + passes) % end_.out.size();
    if (!end_.is_merged) in_ = out_;
  }

  EthernetCore& core_;
  const End& end_;
  std::vector<State> states_;
  std::vector<int> sent_;
  std::size_t out_ = 0;
  std::size_t in_ = 0;
  int freed_ = 0;
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

void check(const DuplexBandwidth& test) {
  const int channels_max = test.is_merged ? kMergedChannelsMax : kChannelsMax;
  if (test.channels < 1 || test.channels > channels_max) {
    throw std::invalid_argument(
        fmt::format("there are {} channels in each direction; there must be 1 to {}", test.channels,
                    channels_max));
  }
  if (test.packets < 1) {
    throw std::invalid_argument(
        fmt::format("there are {} packets per channel; there must be at least 1", test.packets));
  }
}

}  // namespace

double run_duplex_bandwidth(Cluster& cluster, const Socket& socket, const DuplexBandwidth& test) {
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
  other.allocate(size_bytes, TileKind::ethernet);  // the same offsets
  other.allocate(size_bytes, TileKind::ethernet);
  const End master{there, back, 0, test.channels, test.is_merged, test.packets, true};
  const End subordinate{back, there, test.channels, 0, test.is_merged, test.packets, false};
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

}  // namespace towpath::tenstorrent::kernels
