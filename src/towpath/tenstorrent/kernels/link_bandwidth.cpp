// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "towpath/tenstorrent/kernels/handshake.hpp"
#include "towpath/tenstorrent/kernels/link_benchmarks.hpp"
#include "towpath/tenstorrent/kernels/merged_channel.hpp"

namespace towpath::tenstorrent::kernels {

namespace {

using machine::TileKind;

// Passes of the sender and of the receiver, in addition to their calls. Fitted to tt-metal
// test_all_ethernet_links_bandwidth, erisc and erisc_write_worker, 128 B.
constexpr noc::Cycle kSenderPassCycles = 20;
constexpr noc::Cycle kReceiverPassCycles = 23;

// Slots are reused cyclically. Indices increase without wrapping.
class SlotRing {
 public:
  SlotRing(std::uint64_t offset, const LinkBandwidth& test)
      : slots_(merged_channels(offset, test.message_bytes, test.slots)) {}
  const std::vector<MergedChannel>& slots() const { return slots_; }
  std::size_t index(int message) const { return static_cast<std::size_t>(message) % slots_.size(); }
  const MergedChannel& operator[](int message) const { return slots_[index(message)]; }
  // One slot stays free to distinguish full from empty.
  bool has_room(int begun, int done) const { return begun - done < ssize() - 1; }
  int ssize() const { return static_cast<int>(slots_.size()); }

 private:
  std::vector<MergedChannel> slots_;
};

void end_pass(EthernetCore& core, bool did_anything, noc::Cycle cycles) {
  if (did_anything) {
    core.work(cycles);
  } else {
    core.idle(cycles, EthernetCore::kNever);
  }
}

// Sends messages and polls for their answers.
class Sender {
 public:
  Sender(EthernetCore& core, const SlotRing& slots, const LinkBandwidth& test)
      : core_(core), slots_(slots), messages_(test.messages) {}

  bool is_done() const { return answered_ == messages_; }
  // One pass of the loop. Returns true if there was any work.
  bool step() {
    bool did_anything = false;
    if (sent_ < messages_ && slots_.has_room(sent_, answered_)) {
      send(core_, slots_[sent_++]);
      did_anything = true;
    }
    if (answered_ < sent_ && is_free(core_, slots_[answered_])) {
      ++answered_;
      did_anything = true;
    }
    return did_anything;
  }

 private:
  EthernetCore& core_;
  const SlotRing& slots_;
  int messages_;
  int sent_ = 0;
  int answered_ = 0;
};

void clear_all(EthernetCore& core, const SlotRing& slots) {
  for (const MergedChannel& slot : slots.slots()) clear(core, slot);
}

Time send_all(EthernetCore& core, const SlotRing& slots, const LinkBandwidth& test) {
  clear_all(core, slots);
  handshake(core, true);
  const noc::Cycle cycles = kSenderPassCycles;
  const Time begin = timestamp(core);
  Sender sender(core, slots, test);
  while (!sender.is_done()) end_pass(core, sender.step(), cycles);
  return core.network().simulation().now() - begin;
}

// --- the receiver --------------------------------------------------------------------------------

// There are enough ids to reuse each only after its last message has been answered.
int transaction_id(const SlotRing& slots, int message) {
  return static_cast<int>(slots.index(message)) % (slots.ssize() / 2) + 1;
}

bool has_left(EthernetCore& core, int transaction_id) {
  core.work(kPollCycles);
  const auto& counters = core.network().counters(core.config().noc_index, core.config().core);
  return counters.outgoing[static_cast<std::size_t>(transaction_id)] == 0;
}

void take(EthernetCore& core, const SlotRing& slots, int message, const LinkBandwidth& test,
          const NocAddress& worker) {
  const MergedChannel& slot = slots[message];
  if (test.kind == LinkBandwidthKind::erisc) return;
  core.noc_async_write_one_packet_with_trid_with_state(slot.offset, worker.offset, slot.size_bytes,
                                                       transaction_id(slots, message));
}

// Receives the far end's messages and answers them.
class Receiver {
 public:
  Receiver(EthernetCore& core, const SlotRing& slots, const LinkBandwidth& test,
           const NocAddress& worker)
      : core_(core), slots_(slots), test_(test), worker_(worker) {
    if (test.kind != LinkBandwidthKind::erisc) {
      core.noc_async_write_one_packet_with_trid_set_state(worker);
    }
  }

  bool is_done() const { return answered_ == test_.messages; }
  bool step() {
    const bool waits = test_.kind == LinkBandwidthKind::erisc_write_worker;
    bool did_anything = false;
    if (slots_.has_room(taken_, answered_) && has_payload(core_, slots_[taken_])) {
      take(core_, slots_, taken_++, test_, worker_);
      did_anything = true;
    }
    if (answered_ < taken_ && (!waits || has_left(core_, transaction_id(slots_, answered_)))) {
      const MergedChannel& slot = slots_[answered_++];
      test_.returns_payload ? return_payload(core_, slot) : ack_done(core_, slot);
      did_anything = true;
    }
    return did_anything;
  }

 private:
  EthernetCore& core_;
  const SlotRing& slots_;
  const LinkBandwidth& test_;
  const NocAddress& worker_;
  int taken_ = 0;
  int answered_ = 0;
};

void receive_all(EthernetCore& core, const SlotRing& slots, const LinkBandwidth& test,
                 const NocAddress& worker) {
  clear_all(core, slots);
  handshake(core, false);
  const noc::Cycle cycles = kReceiverPassCycles;
  Receiver receiver(core, slots, test, worker);
  while (!receiver.is_done()) end_pass(core, receiver.step(), cycles);
  core.noc_async_full_barrier();
}

// One end in a bidirectional run.
struct DuplexEnd {
  SlotRing out;
  SlotRing in;
  NocAddress worker;
  bool is_master = false;
};

// Each pass of the loop sends and receives, at the cost of two separate loops.
Time exchange_all(EthernetCore& core, const DuplexEnd& end, const LinkBandwidth& test) {
  clear_all(core, end.out);
  clear_all(core, end.in);
  handshake(core, end.is_master);
  const Time begin = timestamp(core);
  Sender sender(core, end.out, test);
  Receiver receiver(core, end.in, test, end.worker);
  while (!sender.is_done() || !receiver.is_done()) {
    const bool has_sent = sender.step();
    if (has_sent) core.work(kSenderPassCycles);
    const bool has_received = receiver.step();
    if (has_received) core.work(kReceiverPassCycles);
    if (!has_sent && !has_received) end_pass(core, false, kReceiverPassCycles);
  }
  const Time time = core.network().simulation().now() - begin;
  core.noc_async_full_barrier();
  return time;
}

void check(const LinkBandwidth& test) {
  if (test.slots < 2 || test.slots % 2 != 0 || test.slots > 30) {
    throw std::invalid_argument(
        fmt::format("there are {} slots; use an even number from 2 to 30", test.slots));
  }
  if (test.messages < 1) {
    throw std::invalid_argument(
        fmt::format("there are {} messages; there must be at least 1", test.messages));
  }
}

}  // namespace

Time run_link_bandwidth(Cluster& cluster, const Socket& socket, const LinkBandwidth& test) {
  check(test);
  Program& sender = cluster.create_program(socket.sender_chip);
  Program& receiver = cluster.create_program(socket.receiver_chip);
  const std::uint64_t ring_bytes =
      static_cast<std::uint64_t>(test.slots) * (test.message_bytes + MergedChannel::kSyncBytes);
  const std::uint64_t size_bytes = (test.is_both_ways ? 2 : 1) * ring_bytes;
  const std::uint64_t offset = sender.allocate(size_bytes, TileKind::ethernet);
  receiver.allocate(size_bytes, TileKind::ethernet);  // the same offset
  const SlotRing slots(offset, test);
  const auto worker_of = [&](Program& program, int chip) {
    return NocAddress{cluster.device(chip).chip().workers.front(),
                      program.allocate(test.message_bytes)};
  };
  const NocAddress worker = worker_of(receiver, socket.receiver_chip);
  if (test.is_both_ways) {
    const SlotRing back(offset + ring_bytes, test);
    const DuplexEnd first{slots, back, worker_of(sender, socket.sender_chip), true};
    const DuplexEnd second{back, slots, worker, false};
    std::array<Time, 2> times;
    sender.create_kernel(socket.sender, {.name = "first end"},
                         [&](EthernetCore& core) { times[0] = exchange_all(core, first, test); });
    receiver.create_kernel(socket.receiver, {.name = "second end"}, [&](EthernetCore& core) {
      times[1] = exchange_all(core, second, test);
    });
    cluster.run();
    return std::max(times[0], times[1]);
  }
  Time time;
  sender.create_kernel(socket.sender, {.name = "sender"},
                       [&](EthernetCore& core) { time = send_all(core, slots, test); });
  receiver.create_kernel(socket.receiver, {.name = "receiver"},
                         [&](EthernetCore& core) { receive_all(core, slots, test, worker); });
  cluster.run();
  return time;
}

}  // namespace towpath::tenstorrent::kernels
