// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "chip_bench.hpp"
#include "ethernet_cluster.hpp"
#include "towpath/sim/random.hpp"

// Random programs of Ethernet cores that move packets over many channels, both ways, in a loop that
// looks at all of them and idles: as they should be, and with one mistake.

namespace towpath::device::tenstorrent {
namespace {

using noc::pattern;

enum class Mistake {
  none,
  no_handshake,
  no_teardown,
  source_overwritten,
  sync_first,
  acknowledgement_aliased
};

enum class Mode { separate, acknowledged, merged };

constexpr std::uint64_t kPayloadBytesMax = 4096;

// One channel, from one end of a link to the other.
struct Channel {
  int number = 1;
  int from = 0;  // the end that sends
  Mode mode = Mode::separate;
  std::uint64_t payload_bytes = 16;
  int packets = 1;
  bool is_wrong = false;

  // Each channel has its place for sync words at either end of its payload, where no payload of
  // another program leaves anything behind.
  std::uint64_t first_sync() const { return kBuffer + static_cast<std::uint64_t>(number) * 0x2000; }
  std::uint64_t last_sync() const { return first_sync() + 16 + kPayloadBytesMax; }
  bool is_sync_first(Mistake mistake) const { return is_wrong && mistake == Mistake::sync_first; }
  std::uint64_t payload(Mistake mistake) const {
    return is_sync_first(mistake) ? first_sync() + 16 : last_sync() - payload_bytes;
  }
  // Of a merged one.
  std::uint64_t sync(Mistake mistake) const {
    return is_sync_first(mistake) ? first_sync() : last_sync();
  }
};

std::vector<Channel> random_channels(sim::Random& random, Mistake mistake) {
  std::vector<Channel> channels;
  const auto count = static_cast<int>(random.between(1, 7));
  for (int number = 1; number <= count; ++number) {
    channels.push_back({.number = number,
                        .from = static_cast<int>(random.below(2)),
                        .mode = static_cast<Mode>(random.below(3)),
                        .payload_bytes = 16 * static_cast<std::uint64_t>(random.between(1, 256)),
                        .packets = static_cast<int>(random.between(1, 4))});
  }
  Channel& first = channels.front();
  first.is_wrong = mistake != Mistake::none;
  if (mistake == Mistake::no_teardown) first.mode = Mode::separate;
  if (mistake == Mistake::sync_first) first.mode = Mode::merged;
  if (mistake == Mistake::acknowledgement_aliased) first.mode = Mode::acknowledged;
  return channels;
}

constexpr std::uint64_t kAckWord = kBuffer;

class Sender {
 public:
  Sender(const Channel& channel, Mistake mistake)
      : channel_(channel),
        mistake_(channel.is_wrong ? mistake : Mistake::none),
        left_(channel.packets) {}

  bool is_over() const { return left_ == 0 && !is_waiting_; }

  bool advance(EthernetCore& core) {
    if (!is_waiting_) {
      if (left_ == 0) return false;
      send(core);
      is_waiting_ = --left_ > 0 || mistake_ != Mistake::no_teardown;
      return true;
    }
    if (!is_done(core)) return false;
    is_waiting_ = false;
    return true;
  }

 private:
  void send(EthernetCore& core) {
    const std::uint64_t payload = channel_.payload(mistake_);
    core.store(payload, pattern(channel_.payload_bytes, static_cast<unsigned>(left_)));
    if (channel_.mode == Mode::merged) {
      core.store_word(channel_.sync(mistake_), 1);
      const std::uint64_t first = std::min(payload, channel_.sync(mistake_));
      core.eth_send_packet(0, first / 16, first / 16, channel_.payload_bytes / 16 + 1);
    } else {
      core.eth_send_bytes_over_channel(payload, payload, channel_.payload_bytes, channel_.number,
                                       channel_.payload_bytes, channel_.payload_bytes / 16);
    }
    if (mistake_ == Mistake::source_overwritten) {
      core.store(payload, pattern(channel_.payload_bytes, 99));
    }
  }

  bool is_done(EthernetCore& core) {
    return channel_.mode == Mode::merged ? core.load_word(channel_.sync(mistake_)) == 0
                                         : core.eth_is_receiver_channel_send_done(channel_.number);
  }

  Channel channel_;
  Mistake mistake_;
  int left_;
  bool is_waiting_ = false;
};

class Receiver {
 public:
  Receiver(const Channel& channel, Mistake mistake)
      : channel_(channel),
        mistake_(channel.is_wrong ? mistake : Mistake::none),
        left_(channel.packets) {}

  bool is_over() const { return left_ == 0; }

  bool advance(EthernetCore& core) {
    if (left_ == 0 || !is_there(core)) return false;
    --left_;
    if (channel_.mode == Mode::acknowledged) {
      const bool is_aliased = mistake_ == Mistake::acknowledgement_aliased;
      core.eth_receiver_channel_ack(
          channel_.number, is_aliased ? EthernetCore::bytes_sent_at(channel_.number) : kAckWord);
    }
    noc::Data seen(channel_.payload_bytes);
    core.load(channel_.payload(mistake_), seen);
    EXPECT_EQ(seen, pattern(channel_.payload_bytes, static_cast<unsigned>(left_ + 1)));
    if (channel_.mode == Mode::merged) {
      const std::uint64_t sync = channel_.sync(mistake_);
      core.store_word(sync, 0);
      core.eth_send_packet(0, sync / 16, sync / 16, 1);
    } else {
      core.eth_receiver_channel_done(channel_.number);
    }
    return true;
  }

 private:
  bool is_there(EthernetCore& core) {
    return channel_.mode == Mode::merged ? core.load_word(channel_.sync(mistake_)) != 0
                                         : core.eth_bytes_are_available_on_channel(channel_.number);
  }

  Channel channel_;
  Mistake mistake_;
  int left_;
};

void move_packets(EthernetCore& core, const std::vector<Channel>& channels, int end,
                  Mistake mistake) {
  core.store_word(kAckWord, 1);
  core.store_word(kAckWord + 4, 1);
  if (mistake != Mistake::no_handshake) handshake(core, end == 0);
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  for (const Channel& channel : channels) {
    if (channel.from == end) {
      senders.emplace_back(channel, mistake);
    } else {
      receivers.emplace_back(channel, mistake);
    }
  }
  const auto is_over = [](const auto& channel) { return channel.is_over(); };
  while (!std::ranges::all_of(senders, is_over) || !std::ranges::all_of(receivers, is_over)) {
    bool has_advanced = false;
    for (Sender& sender : senders) has_advanced |= sender.advance(core);
    for (Receiver& receiver : receivers) has_advanced |= receiver.advance(core);
    if (!has_advanced) core.idle(8);
  }
}

// A ring of chips, some programs one after the other; the mistake is in one link of one of them.
Failure run_random(std::uint64_t seed, Mistake mistake) {
  sim::Random random(seed, "random programs");
  const auto chips = static_cast<int>(random.between(2, 4));
  const auto programs = static_cast<int>(random.between(1, 3));
  RunOptions options{.seed = seed,
                     .start_skew_cycles = random.between(0, 2000),
                     .program_skew_cycles = random.between(0, 20'000)};
  for (int link = 0; link < chips; ++link) {  // half of the links lose frames, or drop once
    const std::uint64_t kind = random.below(4);
    options.link_faults.push_back({.frame_loss = kind == 0 ? 0.05 : 0});
    if (kind == 1) options.link_faults.back().drop_at = Time::from_us(random.uniform() * 40);
  }
  Cluster cluster(ring_of_chips(chips), options);
  const auto wrong_program = static_cast<int>(random.below(static_cast<std::uint64_t>(programs)));
  for (int number = 0; number < programs; ++number) {
    std::vector<Program*> of_chip;
    for (int chip = 0; chip < chips; ++chip) of_chip.push_back(&cluster.create_program(chip));
    for (int chip = 0; chip < chips; ++chip) {
      const bool is_wrong = number == wrong_program && chip == 0;
      const Mistake here = is_wrong ? mistake : Mistake::none;
      const std::vector<Channel> channels = random_channels(random, here);
      const auto next = static_cast<std::size_t>((chip + 1) % chips);
      of_chip[static_cast<std::size_t>(chip)]->create_kernel(
          {0, 1}, {.name = "one"},
          [=](EthernetCore& core) { move_packets(core, channels, 0, here); });
      of_chip[next]->create_kernel({0, 0}, {.name = "other"}, [=](EthernetCore& core) {
        move_packets(core, channels, 1, here);
      });
    }
  }
  return run_to_failure(cluster);
}

constexpr std::uint64_t kPrograms = 150;

TEST(RandomEthernetPrograms, AreCleanWhenTheyAreCorrect) {
  for (std::uint64_t seed = 1; seed <= 2 * kPrograms; ++seed) {
    ASSERT_EQ(run_random(seed, Mistake::none).sentence, "") << "seed " << seed;
  }
}

TEST(RandomEthernetPrograms, AreFoundWithTheirMistake) {
  const std::map<Mistake, std::string> names{
      {Mistake::no_handshake, "missing_handshake"},
      {Mistake::no_teardown, "missing_teardown"},
      {Mistake::source_overwritten, "source_overwritten"},
      {Mistake::sync_first, "sync_before_payload"},
      {Mistake::acknowledgement_aliased, "acknowledgement_from_channel_word"}};
  for (const auto& [mistake, name] : names) {
    for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
      const Failure failure = run_random(seed, mistake);
      ASSERT_EQ(failure.hazard, name) << "seed " << seed << ": " << failure.sentence;
      ASSERT_LE(failure.chip, 1) << "seed " << seed << ": " << failure.sentence;
    }
  }
}

}  // namespace
}  // namespace towpath::device::tenstorrent
