// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "program_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "data_mover.hpp"

namespace towpath::tenstorrent::kernels {

namespace {

using metalium::CompiledKernel;
using metalium::KernelLog;
using metalium::Processor;

// Arguments in order, and the content of messages: no two are equal at any place.
constexpr const char* kCommon = R"(
#include <cstring>
static uint32_t next_argument;
static uint32_t argument() { return get_common_arg_val<uint32_t>(next_argument++); }
enum Mistake : uint32_t { kNone, kNoHandshake, kNoTeardown, kOverwrites, kSyncFirst, kOwnAck,
                          kClearsLate, kNeverYields };
static uint32_t word_of(uint32_t content, uint32_t message, uint32_t number) {
  uint32_t x = content + message * 0x9e3779b9u + number * 0x85ebca6bu;
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
  return x;
}
static void fill(uint32_t at, uint32_t content, uint32_t message, uint32_t size) {
  uint32_t words[512];
  for (uint32_t i = 0; i < size / 4; ++i) words[i] = word_of(content, message, i);
  std::memcpy(reinterpret_cast<void*>(uintptr_t(at)), words, size);
}
static void check(uint32_t at, uint32_t content, uint32_t message, uint32_t size) {
  uint32_t words[512];
  std::memcpy(words, reinterpret_cast<const void*>(uintptr_t(at)), size);
  for (uint32_t i = 0; i < size / 4; ++i) {
    if (words[i] != word_of(content, message, i)) {
      DeviceTimestampedData("wrong", message);
      return;
    }
  }
}
static volatile tt_l1_ptr uint32_t* word_at(uint32_t at) {
  return reinterpret_cast<volatile tt_l1_ptr uint32_t*>(uintptr_t(at));
}
)";

constexpr const char* kWorker = R"(
struct Slot { uint32_t end, mover_semaphore, semaphore; };
struct Channel {
  uint32_t x, y, staging, is_count_fixed, cycles, content, mistake, mistaken, is_counted;
  uint32_t slots, messages;
  Slot slot[4];
  uint32_t sizes[32];
  const Slot& of(uint32_t message) const { return slot[message % slots]; }
};
static Channel channel;
static void read_arguments() {
  channel = {argument(), argument(), argument(), argument(), argument(), argument(), argument(),
             argument(), argument(), argument(), argument()};
  for (uint32_t i = 0; i < channel.slots; ++i) {
    channel.slot[i] = {argument(), argument(), argument()};
  }
  for (uint32_t i = 0; i < channel.messages; ++i) channel.sizes[i] = argument();
}
static uint32_t take(uint32_t message) {
  volatile tt_l1_ptr uint32_t* semaphore = word_at(channel.of(message).semaphore);
  noc_semaphore_wait_min(semaphore, 1);
  const uint32_t value = *semaphore;
  noc_semaphore_set(semaphore, 0);
  return value;
}
static void tell(uint32_t message, uint32_t increment) {
  noc_semaphore_inc(get_noc_addr(channel.x, channel.y, channel.of(message).mover_semaphore),
                    increment);
}
static uint64_t buffer_of(uint32_t message, uint32_t size) {
  return get_noc_addr(channel.x, channel.y, channel.of(message).end - size);
}
)";

constexpr const char* kSender = R"(
static void push(uint32_t message) {
  noc_async_write(channel.staging, buffer_of(message, channel.sizes[message]),
                  channel.sizes[message]);
  tell(message, channel.sizes[message]);
}
void kernel_main() {
  read_arguments();
  uint32_t message = 0;
  for (; message < channel.messages; ++message) {
    riscv_wait(channel.cycles);
    noc_async_writes_flushed();
    fill(channel.staging, channel.content, message, channel.sizes[message]);
    const uint32_t mistake = message == channel.mistaken ? channel.mistake : uint32_t(kNone);
    if (mistake == kClearsLate) {
      volatile tt_l1_ptr uint32_t* semaphore = word_at(channel.of(message).semaphore);
      noc_semaphore_wait_min(semaphore, 1);
      push(message);
      noc_semaphore_set(semaphore, 0);
      continue;
    }
    if (mistake == kOverwrites) {
      noc_async_write(channel.staging, buffer_of(message, channel.sizes[message]),
                      channel.sizes[message]);
    }
    take(message);
    push(message);
  }
  if (!channel.is_count_fixed) {
    take(message);
    tell(message, kStop);
    for (uint32_t other = 1; other < channel.slots; ++other) take(message + other);
  }
  noc_async_write_barrier();
  noc_async_atomic_barrier();
}
)";

constexpr const char* kUncalledSender = R"(
void kernel_main() {
  read_arguments();
  fill(channel.staging, 1, 0, 16);
  noc_async_write(channel.staging, buffer_of(0, 16), 16);
  noc_async_write_barrier();
}
)";

constexpr const char* kReceiver = R"(
void kernel_main() {
  read_arguments();
  for (uint32_t message = 0; !channel.is_count_fixed || message < channel.messages; ++message) {
    const bool clears_late = channel.mistake == kClearsLate && message == channel.mistaken;
    volatile tt_l1_ptr uint32_t* semaphore = word_at(channel.of(message).semaphore);
    uint32_t size = 0;
    if (clears_late) {
      noc_semaphore_wait_min(semaphore, 1);
      size = *semaphore;
    } else {
      size = take(message);
    }
    if (size == kStop) {
      if (message != channel.messages) DeviceTimestampedData("wrong", message);
      tell(message, 1);
      break;
    }
    riscv_wait(channel.cycles);
    noc_async_read(buffer_of(message, size), channel.staging, size);
    noc_async_read_barrier();
    check(channel.staging, channel.content, message, size);
    tell(message, 1);
    if (clears_late) noc_semaphore_set(semaphore, 0);
    if (channel.is_counted) DeviceTimestampedData("received", get_timestamp());
  }
  noc_async_atomic_barrier();
}
)";

constexpr const char* kBare = R"(
struct Channel { uint32_t end, far_end, content, cycles, messages, sizes[32]; };
static uint32_t channels, is_merged, acknowledges, mistake, mistaken_channel, mistaken, yields;
static uint32_t is_counted;
static Channel channel[8];
static void read_arguments() {
  channels = argument(); is_merged = argument(); acknowledges = argument(); mistake = argument();
  mistaken_channel = argument(); mistaken = argument(); yields = argument();
  is_counted = argument();
  for (uint32_t c = 0; c < channels; ++c) {
    channel[c] = {argument(), argument(), argument(), argument(), argument()};
    for (uint32_t i = 0; i < channel[c].messages; ++i) channel[c].sizes[i] = argument();
  }
}
static bool is_mistaken(uint32_t which, uint32_t c, uint32_t message) {
  return mistake == which && mistaken_channel == c && mistaken == message;
}
static uint32_t sync_word(uint32_t c) {
  if (is_merged) return channel[c].end;
  return uint32_t(reinterpret_cast<uintptr_t>(&erisc_info->channels[c + 1].bytes_sent));
}
static uint32_t bytes_sent(uint32_t c) { return *word_at(sync_word(c)); }
static uint32_t acknowledged(uint32_t c) { return *word_at(sync_word(c) + 4); }
template <typename Condition>
static void wait_until(Condition holds) {
  for (uint32_t polls = 1; !holds(); ++polls) {
    if (yields && polls % 1000 == 0) run_routing();
  }
}
static void prepare() {
  for (uint32_t c = 0; is_merged && c < channels; ++c) {
    for (uint32_t word = 0; word < 16; word += 4) *word_at(sync_word(c) + word) = 0;
  }
}
static void send_words(uint32_t from, uint32_t to, uint32_t size) {
  wait_until([] { return !eth_txq_is_busy(); });
  eth_send_packet(0, from / 16, to / 16, size / 16);
}
static uint32_t rounds() {
  uint32_t most = 0;
  for (uint32_t c = 0; c < channels; ++c) {
    if (channel[c].messages > most) most = channel[c].messages;
  }
  return most;
}
constexpr uint32_t kHandshake = eth_l1_mem::address_map::ERISC_L1_UNRESERVED_BASE;
)";

constexpr const char* kBareSender = R"(
static void send(uint32_t c, uint32_t message) {
  const uint32_t size = channel[c].sizes[message];
  const bool is_sync_first = is_mistaken(kSyncFirst, c, message);
  const uint32_t end = channel[c].end, far_end = channel[c].far_end;
  if (is_merged) {
    *word_at(end) = size;
    if (is_sync_first) {
      send_words(end, far_end, 16);
      send_words(end - size, far_end - size, size);
    } else {
      send_words(end - size, far_end - size, size + 16);
    }
    return;
  }
  if (is_sync_first) eth_send_payload_complete_signal_over_channel(c + 1, size);
  eth_send_bytes_over_channel(end - size, far_end - size, size, c + 1, size, size / 16);
}
void kernel_main() {
  read_arguments();
  prepare();
  if (mistake != kNoHandshake) {
    eth_send_bytes(kHandshake, kHandshake, 16);
    eth_wait_for_receiver_done();
  }
  for (uint32_t message = 0; message < rounds(); ++message) {
    for (uint32_t c = 0; c < channels; ++c) {
      if (message >= channel[c].messages) continue;
      if (!is_mistaken(kOverwrites, c, message)) {
        wait_until([&] { return bytes_sent(c) == 0 || (acknowledges && acknowledged(c) != 0); });
      }
      const uint32_t size = channel[c].sizes[message];
      fill(channel[c].end - size, channel[c].content, message, size);
      wait_until([&] { return bytes_sent(c) == 0; });
      send(c, message);
    }
  }
  if (mistake == kNoTeardown) return;
  for (uint32_t c = 0; c < channels; ++c) wait_until([&] { return bytes_sent(c) == 0; });
}
)";

constexpr const char* kBareReceiver = R"(
void kernel_main() {
  read_arguments();
  prepare();
  if (mistake != kNoHandshake) {
    eth_wait_for_bytes(16);
    eth_receiver_channel_done(0);
  }
  // What acknowledgements are sent from, the same in every program.
  const uint32_t ack = kHandshake + 16;
  *word_at(ack) = 1;
  *word_at(ack + 4) = 1;
  for (uint32_t message = 0; message < rounds(); ++message) {
    for (uint32_t c = 0; c < channels; ++c) {
      if (message >= channel[c].messages) continue;
      wait_until([&] { return bytes_sent(c) != 0; });
      const uint32_t sync = sync_word(c);
      if (acknowledges && is_merged) {
        send_words(ack, channel[c].far_end, 16);
      } else if (acknowledges) {
        eth_receiver_channel_ack(c + 1, is_mistaken(kOwnAck, c, message) ? sync : ack);
      }
      riscv_wait(channel[c].cycles);
      const uint32_t size = channel[c].sizes[message];
      check(channel[c].end - size, channel[c].content, message, size);
      if (is_merged) {
        *word_at(sync) = 0;
        send_words(sync, channel[c].far_end, 16);
      } else {
        eth_receiver_channel_done(c + 1);
      }
      if (is_counted) DeviceTimestampedData("received", get_timestamp());
    }
  }
}
)";

// Compiled once per processor in this process; the cache on disk knows the rest.
CompiledKernel compiled(const std::string& name, const std::string& text,
                        const metalium::KernelTarget& target) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, CompiledKernel> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find({name, target.noc_index});
  if (found != known.end()) return found->second;
  const CompiledKernel kernel = metalium::compile_kernel({.file = name, .text = text}, target);
  return known.emplace(std::pair(name, target.noc_index), kernel).first->second;
}

// The numbers of the enumeration in kCommon.
std::uint32_t number_of(Mistake mistake) {
  switch (mistake) {
    case Mistake::missing_handshake: return 1;
    case Mistake::missing_teardown: return 2;
    case Mistake::source_overwritten: return 3;
    case Mistake::sync_before_payload: return 4;
    case Mistake::acknowledgement_from_channel_word: return 5;
    case Mistake::semaphore_cleared_after_notification: return 6;
    default: return 0;
  }
}

std::uint32_t word(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

std::vector<std::uint32_t> worker_arguments(DataMovementCore& core, const WorkerTask& task,
                                            bool is_receiver) {
  const ChannelPlan& plan = task.plan;
  const bool is_mistaken = plan.is_receivers_mistake == is_receiver;
  const noc::Cycle cycles = is_receiver ? plan.receiver_cycles : plan.sender_cycles;
  std::vector<std::uint32_t> words{static_cast<std::uint32_t>(task.channel.mover.x),
                                   static_cast<std::uint32_t>(task.channel.mover.y),
                                   word(task.staging),
                                   task.channel.messages ? 1u : 0u,
                                   static_cast<std::uint32_t>(cycles),
                                   word(plan.content),
                                   is_mistaken ? number_of(plan.mistake) : 0,
                                   word(plan.mistaken_message),
                                   task.is_counted ? 1u : 0u,
                                   word(task.channel.slots.size()),
                                   word(plan.sizes.size())};
  for (const DataMoverWorker::Slot& slot : task.channel.slots) {
    words.push_back(word(slot.end));
    words.push_back(word(core.get_semaphore(slot.mover_semaphore)));
    words.push_back(word(core.get_semaphore(slot.semaphore)));
  }
  words.insert(words.end(), plan.sizes.begin(), plan.sizes.end());
  return words;
}

std::vector<std::uint32_t> bare_arguments(const BareLink& link) {
  const LinkPlan& plan = link.plan;
  const bool never_yields = plan.mistake == Mistake::link_down_without_routing &&
                            plan.is_first_ends_mistake == link.is_first_end;
  std::vector<std::uint32_t> words{
      word(link.ends.size()),      plan.sync == ChannelSync::merged ? 1u : 0u,
      plan.acknowledges ? 1u : 0u, number_of(plan.mistake),
      word(plan.mistaken_channel), word(plan.mistaken_message),
      never_yields ? 0u : 1u,      plan.mistake != Mistake::none ? 1u : 0u};
  for (std::size_t channel = 0; channel < link.ends.size(); ++channel) {
    const ChannelPlan& one = plan.channels[channel];
    words.insert(words.end(),
                 {word(link.ends[channel]), word(link.far_ends[channel]), word(one.content),
                  static_cast<std::uint32_t>(one.receiver_cycles), word(one.sizes.size())});
    words.insert(words.end(), one.sizes.begin(), one.sizes.end());
  }
  return words;
}

Kernel worker_kernel(const ChipOf& chip, const std::string& name, const char* body,
                     const WorkerTask& task, KernelLog& log) {
  const std::string text =
      fmt::format("#include \"dataflow_api.h\"\nconstexpr uint32_t kStop = {};\n", kStop) +
      kCommon + kWorker + body;
  // Here, and not on the small stack of a kernel.
  const std::array kernels{compiled(name, text, {.chip = chip, .noc_index = 0}),
                           compiled(name, text, {.chip = chip, .noc_index = 1})};
  return [kernels, name, task, &log](DataMovementCore& core) {
    const CompiledKernel& kernel = kernels[static_cast<std::size_t>(core.config().noc_index)];
    const bool is_receiver = name == "receiver.cpp";
    metalium::make_kernel(
        kernel, {.common_args = worker_arguments(core, task, is_receiver), .log = &log})(core);
  };
}

EthernetKernel bare_kernel(const ChipOf& chip, const std::string& name, const char* body,
                           const BareLink& link, KernelLog& log) {
  const std::string text =
      std::string("#include \"eth/dataflow_api.h\"\n") + kCommon + kBare + body;
  const CompiledKernel kernel =
      compiled(name, text,
               {.chip = chip, .processor = Processor::ethernet, .noc_index = link.plan.noc_index});
  return [kernel, link, &log](EthernetCore& core) {
    metalium::make_kernel(kernel, {.common_args = bare_arguments(link), .log = &log})(core);
  };
}

}  // namespace

Kernel source_sender(const ChipOf& chip, const WorkerTask& task, KernelLog& log) {
  return worker_kernel(chip, "sender.cpp", kSender, task, log);
}
Kernel source_receiver(const ChipOf& chip, const WorkerTask& task, KernelLog& log) {
  return worker_kernel(chip, "receiver.cpp", kReceiver, task, log);
}
Kernel source_uncalled_sender(const ChipOf& chip, const WorkerTask& task, KernelLog& log) {
  return worker_kernel(chip, "uncalled_sender.cpp", kUncalledSender, task, log);
}
EthernetKernel source_bare_sender(const ChipOf& chip, const BareLink& link, KernelLog& log) {
  return bare_kernel(chip, "bare_sender.cpp", kBareSender, link, log);
}
EthernetKernel source_bare_receiver(const ChipOf& chip, const BareLink& link, KernelLog& log) {
  return bare_kernel(chip, "bare_receiver.cpp", kBareReceiver, link, log);
}

void add_to(RunLog& log, const KernelLog& recorded, const machine::Chip& chip) {
  std::vector<std::uint64_t> received;
  for (const KernelLog::Value& value : recorded.values) {
    if (value.name == "received") received.push_back(value.value);
    if (value.name == "wrong") log.is_data_right = false;
  }
  std::ranges::sort(received);
  const auto half = static_cast<std::size_t>(log.messages / 2);
  if (half > 0 && received.size() >= half) {
    log.half_time =
        sim::Clock(chip.clock).edge(Cycles(static_cast<std::int64_t>(received[half - 1])));
  }
}

}  // namespace towpath::tenstorrent::kernels
