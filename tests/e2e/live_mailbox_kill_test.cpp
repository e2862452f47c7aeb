// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "processes.hpp"
#include "towpath/riscv_mailbox/live/mailbox.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::riscv_mailbox::live {
namespace {
using namespace literals;
using conformance::Processes;
using Clock = std::chrono::steady_clock;

bool is_long() { return std::getenv("TOWPATH_LONG_TESTS") != nullptr; }

// What a sender says: who it is, and its how manieth message this is, from 1 on.
struct Word {
  std::uint32_t sender = 0;
  std::uint32_t count = 0;
  std::uint64_t check = 0;
  std::uint64_t padding[4] = {};
};

std::uint64_t check_of(std::uint32_t sender, std::uint32_t count) {
  return (static_cast<std::uint64_t>(sender) << 32 | count) * 0x9e3779b97f4a7c15;
}

Word word_of(std::uint32_t sender, std::uint32_t count) {
  const std::uint64_t check = check_of(sender, count);
  return {sender, count, check, {check, ~check, check, ~check}};
}

bool is_whole(const Message& message, Word& word) {
  if (message.size_bytes != sizeof(Word)) return false;
  std::memcpy(&word, message.bytes.data(), sizeof(word));
  const Word expected = word_of(word.sender, word.count);
  return std::memcmp(&word, &expected, sizeof(word)) == 0;
}

template <class T>
class Shared {
 public:
  explicit Shared(std::size_t count = 1)
      : bytes_(count * sizeof(T)),
        items_(static_cast<T*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Shared() { ::munmap(items_, bytes_); }
  T& operator[](std::size_t i) const { return items_[i]; }

 private:
  std::size_t bytes_;
  T* items_;
};

// --- kills

constexpr int kSlots = 3;  // processes that send at a time
constexpr std::size_t kPerLane = 1 << 23;
constexpr std::uint32_t kLanes = 2 * kSlots;
constexpr std::uint32_t kDepth = 64;

// What docs/mailbox.md promises; held by the long run, which has the machine to itself. A short one
// may share it with anything, and only has to go on.
constexpr std::chrono::seconds kPromise{1};
constexpr std::chrono::seconds kPatience{60};
constexpr std::uint64_t kProgress = 100;  // messages after a kill

// Everything that the processes know, where a kill does not reach it.
struct Ground {
  explicit Ground(int senders)
      : acknowledged(static_cast<std::size_t>(senders) + 1), log(kLanes * kPerLane) {}
  Shared<std::atomic<std::uint32_t>> acknowledged;  // by sender: messages for which send returned
  Shared<std::atomic<std::uint64_t>> log;           // by lane and number: sender and count
  Shared<std::atomic<std::uint64_t>> limit{1};      // no lane goes further; it rises with each kill
  Shared<std::atomic<std::uint64_t>> received{1};
  Shared<std::atomic<std::uint64_t>> repeated{1};
  Shared<std::atomic<std::uint64_t>> torn{1};
};

pid_t start(const std::function<void()>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

// A process of the test that is killed now and then, and followed by another.
void send_for_ever(const std::string& name, std::uint32_t number, Ground& ground) {
  Sender sender(Mailbox::find(name));
  for (std::uint32_t count = 1;; ++count) {
    while (sender.sent() >= ground.limit[0].load()) ::sched_yield();
    const Word word = word_of(number, count);
    const auto bytes = std::as_bytes(std::span(&word, 1));
    for (bool is_sent = false; !is_sent;) {
      try {
        sender.send(bytes);
        is_sent = true;
      } catch (const transport::TransportError&) {
        std::this_thread::yield();  // between two receivers
      }
    }
    ground.acknowledged[number].store(count);
    if (count % 16 == 0) ::sched_yield();
  }
}

void record(const Message& message, Ground& ground) {
  Word word;
  if (!is_whole(message, word)) ground.torn[0].fetch_add(1);
  auto& place = ground.log[message.lane * kPerLane + message.number];
  const std::uint64_t entry = static_cast<std::uint64_t>(word.sender) << 32 | word.count;
  if (place.load() != 0) ground.repeated[0].fetch_add(1);
  if (place.load() != 0 && place.load() != entry) ground.torn[0].fetch_add(1);
  place.store(entry);
  ground.received[0].fetch_add(1);
}

void receive_for_ever(const std::string& name, Ground& ground) {
  Receiver receiver(Mailbox::find(name));
  Message message;
  for (;;) {
    if (receiver.receive(message)) record(message, ground);
  }
}

// Nothing is missing in any lane, and of each sender its messages in order, each once, and all that
// were acknowledged.
void expect_exactly_once(const Ground& ground, std::uint32_t senders) {
  std::map<std::uint32_t, std::uint32_t> counts;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    bool is_over = false;
    for (std::size_t number = 1; number < kPerLane && !is_over; ++number) {
      const std::uint64_t entry = ground.log[lane * kPerLane + number].load();
      is_over = entry == 0;
      if (is_over) continue;
      const auto sender = static_cast<std::uint32_t>(entry >> 32);
      ASSERT_EQ(static_cast<std::uint32_t>(entry), ++counts[sender])
          << "sender " << sender << ", message " << number << " of lane " << lane;
    }
  }
  for (std::uint32_t sender = 1; sender <= senders; ++sender) {
    const std::uint32_t acknowledged = ground.acknowledged[sender].load();
    EXPECT_GE(counts[sender], acknowledged) << "sender " << sender;
    EXPECT_LE(counts[sender], acknowledged + 1) << "sender " << sender;
  }
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// It must have been alive until now: none of these processes ends by itself.
void kill_and_reap(pid_t pid) {
  int status = 0;
  ::kill(pid, SIGKILL);
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
}

// How long it took since then until messages passed again.
Clock::duration await_progress(const Ground& ground, Clock::time_point begin) {
  const std::uint64_t before = ground.received[0].load();
  while (ground.received[0].load() < before + kProgress && Clock::now() - begin < kPatience) {
    ::sched_yield();
  }
  return Clock::now() - begin;
}

TEST(LiveMailboxKill, NothingIsLostOrDoubledWhoeverIsKilled) {
  const int kills = is_long() ? 1000 : 40;
  const std::string name = fmt::format("kills-{}", ::getpid());
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  Ground ground(kills + kSlots);
  const auto raise_limit = [&](int i) {
    ground.limit[0].store((kPerLane - 1) * static_cast<std::uint64_t>(i + 1) / (kills + 1u));
  };
  raise_limit(0);
  {
    const Mailbox mailbox(name, {.depth_messages = kDepth, .senders_max = kLanes});
    std::uint32_t senders = 0;
    std::vector<pid_t> pids(1 + kSlots);  // the receiver first
    const auto begin = [&](std::size_t slot) {
      const std::uint32_t number = slot == 0 ? 0 : ++senders;
      pids[slot] = start([&, number] {
        if (number == 0) receive_for_ever(name, ground);
        send_for_ever(name, number, ground);
      });
    };
    for (std::size_t slot = 0; slot < pids.size(); ++slot) begin(slot);
    std::uint64_t receiver_kills = 0;
    Clock::duration slowest{};
    for (int i = 0; i < kills && slowest < kPatience; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
      const std::size_t victim = random() % pids.size();
      kill_and_reap(pids[victim]);
      const Clock::time_point killed = Clock::now();
      receiver_kills += victim == 0;
      raise_limit(i + 1);
      begin(victim);
      slowest = std::max(slowest, await_progress(ground, killed));
      mailbox.serve_lookups();  // this process keeps it and does not receive
    }
    EXPECT_LT(slowest, is_long() ? kPromise : kPatience);
    for (const pid_t pid : pids) kill_and_reap(pid);
    // The place of the receiver is free again, and the lanes are below.
    Message message;
    for (Receiver receiver(mailbox); receiver.try_receive(message);) record(message, ground);
    expect_exactly_once(ground, senders);
    EXPECT_LE(ground.repeated[0].load(), receiver_kills + 1);
    RecordProperty("slowest_us",
                   std::to_string(std::chrono::duration<double, std::micro>(slowest).count()));
    RecordProperty("messages", std::to_string(ground.received[0].load()));
    RecordProperty("repeated", std::to_string(ground.repeated[0].load()));
    std::vector<Sender> all;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) all.emplace_back(mailbox);
  }
  EXPECT_EQ(ground.torn[0].load(), 0u);
  EXPECT_EQ(text_of("/proc/net/unix").find(name), std::string::npos);
  EXPECT_EQ(text_of("/proc/self/maps").find(name), std::string::npos);
}

TEST(LiveMailboxKill, AKilledMakerLeavesNothingAndItsNameIsFree) {
  const std::string name = fmt::format("maker-{}", ::getpid());
  const pid_t maker = start([&] {
    const Mailbox mailbox(name, {.depth_messages = 4});
    Receiver receiver(mailbox);
    for (Message message;;) receiver.receive(message);
  });
  std::optional<Sender> sender;
  for (const Clock::time_point begin = Clock::now(); !sender;) {
    try {
      sender.emplace(Mailbox::find(name));
    } catch (const std::runtime_error&) {
      ASSERT_LT(Clock::now() - begin, kPatience);
      ::sched_yield();
    }
  }
  kill_and_reap(maker);
  EXPECT_THROW(Mailbox::find(name), std::runtime_error);
  EXPECT_EQ(text_of("/proc/net/unix").find(name), std::string::npos);
  const auto fill = [&] {
    for (int i = 0; i < 5; ++i) sender->send({});
  };
  EXPECT_THROW(fill(), transport::TransportError);

  const Mailbox successor(name);
  Receiver receiver(successor);
  EXPECT_TRUE(Sender(Mailbox::find(name)).try_send({}));
  Message message;
  EXPECT_TRUE(receiver.try_receive(message));
}

// --- many messages

TEST(LiveMailboxSoak, MessagesOfEightSendersArriveExactlyOnceAndInOrder) {
  constexpr int kSenders = 8;
  const std::uint32_t each = is_long() ? 1'250'000 : 25'000;
  const Mailbox mailbox(fmt::format("soak-{}", ::getpid()));
  Shared<std::atomic<bool>> has_receiver(1);
  Processes processes(kSenders, [&](int sender) {
    while (!has_receiver[0].load()) ::sched_yield();
    Sender to(Mailbox::find(mailbox.name()));
    for (std::uint32_t count = 1; count <= each; ++count) {
      const Word word = word_of(static_cast<std::uint32_t>(sender), count);
      to.send(std::as_bytes(std::span(&word, 1)));
    }
  });
  Receiver receiver(mailbox);
  has_receiver[0].store(true);
  Message message;
  std::vector<std::uint32_t> counts(kSenders);
  for (std::uint64_t i = 0; i < std::uint64_t{kSenders} * each; ++i) {
    ASSERT_TRUE(receiver.receive(message)) << "after " << i;
    Word word;
    ASSERT_TRUE(is_whole(message, word));
    ASSERT_EQ(word.count, ++counts[word.sender]);
  }
  EXPECT_FALSE(receiver.try_receive(message));
  EXPECT_EQ(processes.wait(std::chrono::seconds(60)), std::vector<std::string>(kSenders));
}

}  // namespace
}  // namespace towpath::riscv_mailbox::live
