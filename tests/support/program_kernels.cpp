// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "program_kernels.hpp"

#include <algorithm>
#include <span>

#include "chip_bench.hpp"
#include "towpath/sim/random.hpp"
#include "towpath/tenstorrent/kernels/handshake.hpp"

namespace towpath::tenstorrent::kernels {

namespace {

constexpr std::int64_t kPollsPerContextSwitch = 1000;
constexpr noc::Cycle kPollCycles = 8;
constexpr std::uint64_t kWordBytes = 16;

// No two messages are equal at any place: bytes that keep their value do no harm.
noc::Data content_of(const ChannelPlan& plan, std::uint64_t message) {
  sim::Random random(plan.content + message, "content");
  noc::Data content(plan.sizes[message]);
  for (std::size_t begin = 0; begin < content.size(); begin += sizeof(std::uint64_t)) {
    const std::uint64_t bits = random.bits();
    std::ranges::copy(std::as_bytes(std::span(&bits, 1)),
                      content.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return content;
}

void note(RunLog& log, bool is_counted, Time now) {
  if (is_counted && ++log.received == log.messages / 2) log.half_time = now;
}

}  // namespace

// --- workers ------------------------------------------------------------------------------------

namespace {

std::uint64_t own_semaphore(DataMovementCore& core, const WorkerTask& task, std::uint64_t message) {
  return core.get_semaphore(task.channel.slots[message % task.channel.slots.size()].semaphore);
}

void push(DataMovementCore& core, const WorkerTask& task, std::uint64_t message, Mistake mistake) {
  const DataMoverMessage what{task.staging, task.plan.sizes[message]};
  if (mistake == Mistake::semaphore_cleared_after_notification) {
    const std::uint64_t semaphore = own_semaphore(core, task, message);
    core.noc_semaphore_wait_min(semaphore, 1);
    push_message(core, task.channel, message, what);
    core.noc_semaphore_set(semaphore, 0);
    return;
  }
  if (mistake == Mistake::source_overwritten) {
    const DataMoverWorker::Slot& slot = task.channel.slots[message % task.channel.slots.size()];
    core.noc_async_write(what.offset, {task.channel.mover, slot.end - what.size_bytes},
                         what.size_bytes);
  }
  wait_for_buffer(core, task.channel, message);
  push_message(core, task.channel, message, what);
}

}  // namespace

void send_messages(DataMovementCore& core, const WorkerTask& task) {
  const ChannelPlan& plan = task.plan;
  std::uint64_t message = 0;
  for (; message < plan.sizes.size(); ++message) {
    core.work(plan.sender_cycles);
    core.noc_async_writes_flushed();
    core.store(task.staging, content_of(plan, message));
    const bool is_mistaken = !plan.is_receivers_mistake && message == plan.mistaken_message;
    push(core, task, message, is_mistaken ? plan.mistake : Mistake::none);
  }
  if (!task.channel.messages) push_stop(core, task.channel, message);
  core.noc_async_write_barrier();
  core.noc_async_atomic_barrier();
}

void receive_messages(DataMovementCore& core, const WorkerTask& task, RunLog& log) {
  const ChannelPlan& plan = task.plan;
  for (std::uint64_t message = 0; !task.channel.messages || message < plan.sizes.size();
       ++message) {
    const bool clears_late = plan.is_receivers_mistake && message == plan.mistaken_message;
    const std::uint64_t semaphore = own_semaphore(core, task, message);
    std::uint32_t size_bytes = 0;
    if (clears_late) {
      core.noc_semaphore_wait_min(semaphore, 1);
      size_bytes = core.load_word(semaphore);
    } else {
      size_bytes = wait_for_message(core, task.channel, message);
    }
    if (size_bytes == kStop) {
      log.is_data_right &= message == plan.sizes.size();
      release_message(core, task.channel, message);
      break;
    }
    core.work(plan.receiver_cycles);
    pull_message(core, task.channel, message, {task.staging, size_bytes});
    noc::Data got(size_bytes);
    core.load(task.staging, got);
    log.is_data_right &= got == content_of(plan, message);
    release_message(core, task.channel, message);
    if (clears_late) core.noc_semaphore_set(semaphore, 0);
    note(log, task.is_counted, core.network().simulation().now());
  }
  core.noc_async_atomic_barrier();
}

void send_uncalled(DataMovementCore& core, const WorkerTask& task) {
  core.store(task.staging, noc::pattern(kWordBytes, 1));
  core.noc_async_write(
      task.staging, {task.channel.mover, task.channel.slots.front().end - kWordBytes}, kWordBytes);
  core.noc_async_write_barrier();
}

// --- kernels on Ethernet cores ------------------------------------------------------------------

namespace {

// One end of a bare link.
class BareEnd {
 public:
  BareEnd(EthernetCore& core, const BareLink& link)
      : core_(core),
        link_(link),
        polls_(link.plan.mistake == Mistake::link_down_without_routing &&
                       link.plan.is_first_ends_mistake == link.is_first_end
                   ? EthernetCore::kNever
                   : kPollsPerContextSwitch) {}

  bool is_merged() const { return link_.plan.sync == ChannelSync::merged; }
  static int sync_channel(std::size_t channel) { return static_cast<int>(channel) + 1; }
  std::uint64_t sync_word(std::size_t channel) const {
    return is_merged() ? link_.ends[channel] : EthernetCore::bytes_sent_at(sync_channel(channel));
  }
  std::uint32_t bytes_sent(std::size_t channel) const {
    return core_.load_word(sync_word(channel));
  }
  bool is_acknowledged(std::size_t channel) const {
    return core_.load_word(sync_word(channel) + 4) != 0;
  }
  // Merged sync words are where an earlier program may have left any value.
  void prepare() {
    for (std::size_t channel = 0; is_merged() && channel < link_.ends.size(); ++channel) {
      for (std::uint64_t word = 0; word < kWordBytes; word += 4) {
        core_.store_word(sync_word(channel) + word, 0);
      }
    }
  }
  template <typename Condition>
  void wait_until(Condition holds) {
    while (!holds()) core_.idle(kPollCycles, polls_);
  }
  void send_words(std::uint64_t from, std::uint64_t to, std::uint64_t size_bytes) {
    wait_until([&] { return !core_.eth_txq_is_busy(); });
    core_.eth_send_packet(0, from / kWordBytes, to / kWordBytes, size_bytes / kWordBytes);
  }
  std::size_t rounds() const {
    std::size_t rounds = 0;
    for (const ChannelPlan& channel : link_.plan.channels) {
      rounds = std::max(rounds, channel.sizes.size());
    }
    return rounds;
  }
  bool is_mistaken(Mistake mistake, std::size_t channel, std::uint64_t message) const {
    const LinkPlan& plan = link_.plan;
    return plan.mistake == mistake && plan.mistaken_channel == channel &&
           plan.mistaken_message == message;
  }

 protected:
  EthernetCore& core_;
  const BareLink& link_;
  std::int64_t polls_;
};

class BareSender : public BareEnd {
 public:
  using BareEnd::BareEnd;

  void wait_for_source(std::size_t channel) {
    wait_until([&] {
      return bytes_sent(channel) == 0 || (link_.plan.acknowledges && is_acknowledged(channel));
    });
  }
  void wait_for_done(std::size_t channel) {
    wait_until([&] { return bytes_sent(channel) == 0; });
  }
  void fill(std::size_t channel, std::uint64_t message) {
    const noc::Data content = content_of(link_.plan.channels[channel], message);
    core_.store(link_.ends[channel] - content.size(), content);
  }
  void send(std::size_t channel, std::uint64_t message) {
    const std::uint32_t size_bytes = link_.plan.channels[channel].sizes[message];
    const bool is_sync_first = is_mistaken(Mistake::sync_before_payload, channel, message);
    const std::uint64_t end = link_.ends[channel];
    const std::uint64_t begin = end - size_bytes;
    const std::uint64_t far_end = link_.far_ends[channel];
    const std::uint64_t far_begin = far_end - size_bytes;
    if (is_merged()) {
      core_.store_word(end, size_bytes);
      if (is_sync_first) {
        send_words(end, far_end, kWordBytes);
        send_words(begin, far_begin, size_bytes);
      } else {
        send_words(begin, far_begin, size_bytes + kWordBytes);
      }
      return;
    }
    const int number = sync_channel(channel);
    if (is_sync_first) core_.eth_send_payload_complete_signal_over_channel(number, size_bytes);
    core_.eth_send_bytes_over_channel(begin, far_begin, size_bytes, number, size_bytes,
                                      size_bytes / kWordBytes);
  }
};

}  // namespace

void send_bare(EthernetCore& core, const BareLink& link) {
  BareSender end(core, link);
  end.prepare();
  if (link.plan.mistake != Mistake::missing_handshake) handshake(core, true);
  for (std::size_t message = 0; message < end.rounds(); ++message) {
    for (std::size_t channel = 0; channel < link.ends.size(); ++channel) {
      if (message >= link.plan.channels[channel].sizes.size()) continue;
      if (!end.is_mistaken(Mistake::source_overwritten, channel, message)) {
        end.wait_for_source(channel);
      }
      end.fill(channel, message);
      end.wait_for_done(channel);
      end.send(channel, message);
    }
  }
  if (link.plan.mistake == Mistake::missing_teardown) return;
  for (std::size_t channel = 0; channel < link.ends.size(); ++channel) end.wait_for_done(channel);
}

void receive_bare(EthernetCore& core, const BareLink& link, RunLog& log) {
  constexpr std::uint64_t kAckWord = tenstorrent::ethernet_memory_map::kAcknowledgementWord;
  BareEnd end(core, link);
  end.prepare();
  if (link.plan.mistake != Mistake::missing_handshake) handshake(core, false);
  core.store_word(kAckWord, 1);
  core.store_word(kAckWord + 4, 1);
  for (std::size_t message = 0; message < end.rounds(); ++message) {
    for (std::size_t channel = 0; channel < link.ends.size(); ++channel) {
      const ChannelPlan& plan = link.plan.channels[channel];
      if (message >= plan.sizes.size()) continue;
      end.wait_until([&] { return end.bytes_sent(channel) != 0; });
      const std::uint64_t sync = end.sync_word(channel);
      const bool is_from_own_word =
          end.is_mistaken(Mistake::acknowledgement_from_channel_word, channel, message);
      if (link.plan.acknowledges && end.is_merged()) {
        end.send_words(kAckWord, link.far_ends[channel], kWordBytes);
      } else if (link.plan.acknowledges) {
        core.eth_receiver_channel_ack(BareEnd::sync_channel(channel),
                                      is_from_own_word ? sync : kAckWord);
      }
      core.work(plan.receiver_cycles);
      noc::Data got(plan.sizes[message]);
      core.load(link.ends[channel] - got.size(), got);
      log.is_data_right &= got == content_of(plan, message);
      if (end.is_merged()) {
        core.store_word(sync, 0);
        end.send_words(sync, link.far_ends[channel], kWordBytes);
      } else {
        core.eth_receiver_channel_done(BareEnd::sync_channel(channel));
      }
      note(log, link.plan.mistake != Mistake::none, core.network().simulation().now());
    }
  }
}

}  // namespace towpath::tenstorrent::kernels
