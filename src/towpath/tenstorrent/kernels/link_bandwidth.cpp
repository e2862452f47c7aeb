// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/kernels/link_bandwidth.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "towpath/tenstorrent/kernels/handshake.hpp"
#include "towpath/tenstorrent/kernels/merged_channel.hpp"
#include "towpath/tenstorrent/kernels/timestamp.hpp"

namespace towpath::tenstorrent::kernels {

namespace {

using machine::TileKind;

// Slots are used in turn; the indices count on.
class SlotRing {
 public:
  SlotRing(std::uint64_t offset, const LinkBandwidth& test)
      : slots_(merged_channels(offset, test.message_bytes, test.slots)) {}
  const std::vector<MergedChannel>& slots() const { return slots_; }
  std::size_t index(int message) const { return static_cast<std::size_t>(message) % slots_.size(); }
  const MergedChannel& operator[](int message) const { return slots_[index(message)]; }
  // One slot stays free, so that full and empty differ.
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

Time send_all(EthernetCore& core, const SlotRing& slots, const LinkBandwidth& test) {
  for (const MergedChannel& slot : slots.slots()) clear(core, slot);
  handshake(core, true);
  const noc::Cycle cycles = core.network().chip().ethernet_software.bandwidth_sender_cycles;
  const Time begin = timestamp(core);
  int sent = 0;
  int answered = 0;
  while (answered < test.messages) {
    bool did_anything = false;
    if (sent < test.messages && slots.has_room(sent, answered)) {
      send(core, slots[sent++]);
      did_anything = true;
    }
    if (answered < sent && is_free(core, slots[answered])) {
      ++answered;
      did_anything = true;
    }
    end_pass(core, did_anything, cycles);
  }
  return core.network().simulation().now() - begin;
}

// --- the receiver --------------------------------------------------------------------------------

// There are enough ids that each is reused only when its last message has been answered.
int transaction_id(const SlotRing& slots, int message) {
  return static_cast<int>(slots.index(message)) % (slots.ssize() / 2) + 1;
}

bool has_left(EthernetCore& core, int transaction_id) {
  core.work(core.network().chip().software.poll_cycles);
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

void receive_all(EthernetCore& core, const SlotRing& slots, const LinkBandwidth& test,
                 const NocAddress& worker) {
  for (const MergedChannel& slot : slots.slots()) clear(core, slot);
  handshake(core, false);
  const bool waits = test.kind == LinkBandwidthKind::erisc_write_worker;
  if (test.kind != LinkBandwidthKind::erisc)
    core.noc_async_write_one_packet_with_trid_set_state(worker);
  const noc::Cycle cycles = core.network().chip().ethernet_software.bandwidth_receiver_cycles;
  int taken = 0;
  int answered = 0;
  while (answered < test.messages) {
    bool did_anything = false;
    if (slots.has_room(taken, answered) && has_payload(core, slots[taken])) {
      take(core, slots, taken++, test, worker);
      did_anything = true;
    }
    if (answered < taken && (!waits || has_left(core, transaction_id(slots, answered)))) {
      const MergedChannel& slot = slots[answered++];
      test.returns_payload ? return_payload(core, slot) : ack_done(core, slot);
      did_anything = true;
    }
    end_pass(core, did_anything, cycles);
  }
  core.noc_async_full_barrier();
}

void check(const LinkBandwidth& test) {
  if (test.slots < 2 || test.slots % 2 != 0 || test.slots > 30) {
    throw std::invalid_argument(
        fmt::format("there are {} slots; an even number from 2 to 30 is possible", test.slots));
  }
  if (test.messages < 1) {
    throw std::invalid_argument(
        fmt::format("{} messages are to be sent; at least 1 is", test.messages));
  }
}

}  // namespace

Time run_link_bandwidth(Cluster& cluster, const Socket& socket, const LinkBandwidth& test) {
  check(test);
  Program& sender = cluster.create_program(socket.sender_chip);
  Program& receiver = cluster.create_program(socket.receiver_chip);
  const std::uint64_t size_bytes =
      static_cast<std::uint64_t>(test.slots) * (test.message_bytes + MergedChannel::kSyncBytes);
  const SlotRing slots(sender.allocate(size_bytes, TileKind::ethernet), test);
  receiver.allocate(size_bytes, TileKind::ethernet);  // the same offset
  const NocAddress worker{cluster.device(socket.receiver_chip).chip().workers.front(),
                          receiver.allocate(test.message_bytes)};
  Time time;
  sender.create_kernel(socket.sender, {.name = "sender"},
                       [&](EthernetCore& core) { time = send_all(core, slots, test); });
  receiver.create_kernel(socket.receiver, {.name = "receiver"},
                         [&](EthernetCore& core) { receive_all(core, slots, test, worker); });
  cluster.run();
  return time;
}

}  // namespace towpath::tenstorrent::kernels
