// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/mailbox/mailbox_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>

#include "towpath/riscv_mailbox/context.hpp"
#include "towpath/transport/simulated/endpoint.hpp"

namespace towpath::transport::simulated {
namespace {

using riscv_mailbox::Address;
using riscv_mailbox::Context;
using riscv_mailbox::Core;
using riscv_mailbox::Message;

// Precedes the bytes of a packet.
struct Header {
  std::uint64_t place = 0;  // an offset, or the word of a signal
  std::uint32_t kind = 0;
  std::uint32_t is_last = 0;  // completes its sender's operation
};
constexpr std::uint32_t kPut = 0, kSet = 1, kAdd = 2;
constexpr std::size_t kHeaderBytes = sizeof(Header);
static_assert(kHeaderBytes == 16);

std::uint32_t kind_of(SignalOperation operation) {
  return operation == SignalOperation::set ? kSet : kAdd;
}

std::shared_ptr<const machine::MailboxCluster> checked(
    std::shared_ptr<const machine::MailboxCluster> cluster, const MailboxRanksOptions& options) {
  const auto fail = [&](const std::string& problem) {
    throw std::invalid_argument(fmt::format("cluster '{}': {}", cluster->name, problem));
  };
  if (options.ranks < 0 || options.ranks > cluster->nodes) {
    fail(fmt::format("there are {} ranks; it has {} nodes", options.ranks, cluster->nodes));
  }
  const auto least = static_cast<int>(kHeaderBytes + sizeof(std::uint64_t));
  if (cluster->packetizer.payload_bytes_max < least) {
    fail(fmt::format("a packet carries {} bytes; ranks need {}",
                     cluster->packetizer.payload_bytes_max, least));
  }
  if (cluster->mailbox.drops_when_full) {
    fail("its mailboxes drop packets when they are full; ranks need back-pressure");
  }
  return cluster;
}

}  // namespace

class MailboxRanks::Endpoint final : public simulated::Endpoint {
 public:
  Endpoint(MailboxRanks& all, int rank, int ranks, const Options& options)
      : simulated::Endpoint(all.simulation_, rank, ranks, options),
        all_(all),
        core_(all.simulation_, all.interconnect_.cluster(), fmt::format("rank {}", rank)),
        context_(all.interconnect_, core_, {.node = rank}),
        payload_bytes_max_(
            static_cast<std::size_t>(all.interconnect_.cluster().packetizer.payload_bytes_max) -
            kHeaderBytes),
        agent_(all.simulation_.spawn(fmt::format("core of rank {}", rank), [this] { work(); })) {
    all_.interconnect_.set_process(context_.address(), &agent_);
  }

  bool is_addressable(int) const override { return false; }
  void start(Move& move) override;
  void fence() override {}
  bool is_quiet() const override { return under_way_ == 0; }

  Address address() const { return context_.address(); }

 private:
  // The core's work for a Move.
  struct Task {
    Move* move = nullptr;  // until done
    bool is_local = false;
    int peer = kNoPeer;
    Offset remote = 0;
    std::uint64_t size_bytes = 0;
    std::vector<std::byte> payload;  // empty in a time-only run
    std::uint64_t sent_bytes = 0;
    bool has_signal = false;
    std::uint32_t signal_kind = kSet;
    std::uint64_t signal_word = 0;
    std::uint64_t signal_value = 0;
  };

  void check(const Move& move) const;
  void combine(const Move& move, Task& task);
  void work();
  bool can_send() const { return all_.interconnect_.has_room(context_.address()); }
  bool has_message() const {
    return all_.interconnect_.visible_from(context_.address()).has_value();
  }
  void go_on();
  void send_part(Task& task);
  void send_signal(const Task& task);
  void apply(const Message& message);
  int local_cycles(const Move& move) const;

  MailboxRanks& all_;
  Core core_;
  Context context_;
  std::size_t payload_bytes_max_;
  std::deque<Task> tasks_;
  std::uint64_t under_way_ = 0;  // tasks not yet visible at their peer
  sim::Process& agent_;
};

// --- starting

void MailboxRanks::Endpoint::check(const Move& move) const {
  if (move.peer != kNoPeer && (move.peer < 0 || move.peer >= ranks())) {
    throw std::out_of_range(
        fmt::format("rank {} puts to rank {}; there are {}", rank(), move.peer, ranks()));
  }
  if (move.peer != kNoPeer && move.has_source) heap().check_range(move.remote, move.size_bytes);
  if (move.has_signal) heap().check_signal(move.signal);
}

// Reads the operands immediately, so that they may change after completion of the Move.
void MailboxRanks::Endpoint::combine(const Move& move, Task& task) {
  if (!carries_data() || move.size_bytes == 0) return;
  const bool is_put = move.peer != kNoPeer;
  if (is_put) task.payload.resize(move.size_bytes);
  simulated::combine(move, move.has_destination ? move.destination : task.payload.data());
  if (is_put && move.has_destination) {
    std::memcpy(task.payload.data(), move.destination, move.size_bytes);
  }
}

void MailboxRanks::Endpoint::start(Move& move) {
  check(move);
  Task task;
  task.move = &move;
  task.is_local = move.peer == kNoPeer;
  task.peer = move.peer;
  task.remote = move.remote;
  task.size_bytes = move.has_source && !task.is_local ? move.size_bytes : 0;
  task.has_signal = move.has_signal;
  if (move.has_signal) task.signal_word = heap().word_of(move.signal);
  task.signal_kind = kind_of(move.signal_operation);
  task.signal_value = move.signal_value;
  if (move.has_source) combine(move, task);
  // A lone signal is a posted store: its sender continues immediately.
  const bool is_posted = !move.has_source && !task.is_local;
  if (is_posted) task.move = nullptr;
  if (!task.is_local) ++under_way_;
  tasks_.push_back(std::move(task));
  simulation().wake(agent_);
  if (is_posted) finish(move);
}

// --- the core

void MailboxRanks::Endpoint::work() {
  for (;;) {
    while (has_message()) apply(*context_.receive());
    if (!tasks_.empty() && (tasks_.front().is_local || can_send())) {
      go_on();
    } else {
      simulation().suspend("messages and puts");
    }
  }
}

// A word of memory costs one cycle to load and one to store.
int MailboxRanks::Endpoint::local_cycles(const Move& move) const {
  const int passes =
      (move.has_source ? 1 : 0) + (move.has_addend ? 1 : 0) + (move.has_destination ? 1 : 0);
  const auto word = static_cast<std::uint64_t>(all_.interconnect_.cluster().word_bytes);
  return passes * static_cast<int>((move.size_bytes + word - 1) / word);
}

// Sends the next packet of the first task, or completes a local task.
void MailboxRanks::Endpoint::go_on() {
  Task& task = tasks_.front();
  const bool is_new = task.sent_bytes == 0;
  if (is_new && task.move != nullptr) core_.spend(local_cycles(*task.move));
  if (task.sent_bytes < task.size_bytes) {
    send_part(task);
    if (task.sent_bytes < task.size_bytes) return;
  }
  if (Move* const move = std::exchange(task.move, nullptr); move != nullptr) finish(*move);
  if (task.has_signal) {
    if (!can_send()) return;  // the next turn sends it
    send_signal(task);
  } else if (!task.is_local && task.size_bytes == 0) {
    --under_way_;  // an empty put
    notify_blocked();
  }
  tasks_.pop_front();
}

void MailboxRanks::Endpoint::send_part(Task& task) {
  const std::size_t size =
      std::min<std::size_t>(payload_bytes_max_, task.size_bytes - task.sent_bytes);
  const bool is_last = task.sent_bytes + size == task.size_bytes && !task.has_signal;
  std::vector<std::byte> packet(kHeaderBytes + size);
  const Header header{task.remote + task.sent_bytes, kPut, is_last};
  std::memcpy(packet.data(), &header, kHeaderBytes);
  if (!task.payload.empty()) {
    std::memcpy(packet.data() + kHeaderBytes, task.payload.data() + task.sent_bytes, size);
  }
  context_.send(all_.endpoints_[static_cast<std::size_t>(task.peer)]->address(), packet);
  task.sent_bytes += size;
}

void MailboxRanks::Endpoint::send_signal(const Task& task) {
  std::array<std::byte, kHeaderBytes + sizeof(task.signal_value)> packet;
  const Header header{task.signal_word, task.signal_kind, true};
  std::memcpy(packet.data(), &header, kHeaderBytes);
  std::memcpy(packet.data() + kHeaderBytes, &task.signal_value, sizeof(task.signal_value));
  context_.send(all_.endpoints_[static_cast<std::size_t>(task.peer)]->address(), packet);
}

void MailboxRanks::Endpoint::apply(const Message& message) {
  Header header;
  std::memcpy(&header, message.payload.data(), kHeaderBytes);
  const std::byte* const body = message.payload.data() + kHeaderBytes;
  if (header.is_last != 0) {
    Endpoint& sender = *all_.endpoints_[static_cast<std::size_t>(message.from.node)];
    --sender.under_way_;
    sender.notify_blocked();
  }
  if (header.kind == kPut) {
    const std::size_t size = message.payload.size() - kHeaderBytes;
    if (carries_data()) std::memcpy(data(header.place), body, size);
    notify_blocked();
    return;
  }
  std::uint64_t value;
  std::memcpy(&value, body, sizeof(value));
  raise(header.place, value, header.kind == kSet ? SignalOperation::set : SignalOperation::add);
}

// --- all of them

MailboxRanks::MailboxRanks(sim::Simulation& simulation,
                           std::shared_ptr<const machine::MailboxCluster> cluster,
                           const MailboxRanksOptions& options)
    : simulation_(simulation), interconnect_(simulation, checked(std::move(cluster), options)) {
  const int ranks = options.ranks == 0 ? interconnect_.cluster().nodes : options.ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    endpoints_.push_back(std::make_unique<Endpoint>(
        *this, rank, ranks,
        simulated::Endpoint::Options{options.carries_data, options.heap_bytes, options.signals}));
  }
}

MailboxRanks::~MailboxRanks() = default;

Transport& MailboxRanks::transport(int rank) {
  return *endpoints_.at(static_cast<std::size_t>(rank));
}

}  // namespace towpath::transport::simulated
