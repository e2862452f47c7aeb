// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/riscv_mailbox/live/measurement.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace towpath::riscv_mailbox::live {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The cheapest counter. tick_ns() is the length of one count.
std::int64_t ticks() {
#if defined(__x86_64__)
  return static_cast<std::int64_t>(__rdtsc());
#else
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
#endif
}

double tick_ns() {
  const Clock::time_point begin = Clock::now();
  const std::int64_t first = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double passed_ns = 1e9 * seconds_since(begin);
  return passed_ns / static_cast<double>(ticks() - first);
}

std::vector<double> one_way_ns(const std::vector<std::int64_t>& stamps) {
  const double half_tick_ns = tick_ns() / 2;
  std::vector<double> times;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    times.push_back(half_tick_ns * static_cast<double>(stamps[i] - stamps[i - 1]));
  }
  return times;
}

Mailbox found(const std::string& name, Time timeout) {
  for (const Clock::time_point begin = Clock::now();;) {
    try {
      return Mailbox::find(name);
    } catch (const std::runtime_error&) {
      if (seconds_since(begin) > timeout.seconds()) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void receive(Receiver& receiver, Message& message) {
  if (!receiver.receive(message, Time::from_seconds(30))) {
    throw std::runtime_error("the other process of the measurement sent nothing for 30 s");
  }
}

}  // namespace

Measurement::Measurement(const std::string& own, const std::string& other, bool is_initiator,
                         Time timeout)
    : is_initiator_(is_initiator),
      own_(own),
      receiver_(own_),
      other_(found(other, timeout)),
      sender_(other_) {}

std::vector<double> Measurement::line_ping_pong_ns(int iterations) {
  Control& control = (is_initiator_ ? own_ : other_).memory()->control();
  auto& mine = is_initiator_ ? control.ping : control.pong;
  const auto& theirs = is_initiator_ ? control.pong : control.ping;
  const auto await = [&](std::uint64_t value) {
    for (std::uint64_t looks = 0; theirs.load(std::memory_order_acquire) != value; ++looks) {
      // The other process may need this core, or have ended.
      if (looks < 100'000) continue;
      std::this_thread::yield();
      if (looks > 30'000'000) throw std::runtime_error("the other process of the measurement left");
    }
  };
  std::vector<std::int64_t> stamps;
  stamps.reserve(static_cast<std::size_t>(iterations) + 1);
  stamps.push_back(ticks());
  for (int i = 0; i < iterations; ++i) {
    ++line_value_;
    if (!is_initiator_) await(line_value_);
    mine.store(line_value_, std::memory_order_release);
    if (is_initiator_) await(line_value_);
    stamps.push_back(ticks());
  }
  return is_initiator_ ? one_way_ns(stamps) : std::vector<double>();
}

std::vector<double> Measurement::ping_pong_ns(int iterations, int size_bytes) {
  const std::vector<std::byte> ball(static_cast<std::size_t>(size_bytes));
  Message message;
  std::vector<std::int64_t> stamps;
  stamps.reserve(static_cast<std::size_t>(iterations) + 1);
  stamps.push_back(ticks());
  for (int i = 0; i < iterations; ++i) {
    if (!is_initiator_) receive(receiver_, message);
    sender_.send(is_initiator_ ? std::span<const std::byte>(ball) : message.payload());
    if (is_initiator_) receive(receiver_, message);
    stamps.push_back(ticks());
  }
  return is_initiator_ ? one_way_ns(stamps) : std::vector<double>();
}

std::vector<double> Measurement::messages_per_s(int blocks, int block_messages, int size_bytes) {
  Message message;
  if (is_initiator_) {
    const std::vector<std::byte> payload(static_cast<std::size_t>(size_bytes));
    for (std::int64_t i = std::int64_t{blocks} * block_messages; i > 0; --i) sender_.send(payload);
    receive(receiver_, message);  // the responder has them all
    return {};
  }
  std::vector<std::int64_t> stamps{ticks()};
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < block_messages; ++i) receive(receiver_, message);
    stamps.push_back(ticks());
  }
  sender_.send({});
  std::vector<double> rates;
  for (const double half_ns : one_way_ns(stamps))
    rates.push_back(block_messages / (2e-9 * half_ns));
  return rates;
}

std::vector<double> Measurement::local_ns(int blocks, int block_messages, int size_bytes) {
  const Mailbox mailbox(fmt::format("{} local", own_.name()));
  Sender sender(mailbox);
  Receiver receiver(mailbox);
  Message message;
  const std::vector<std::byte> payload(static_cast<std::size_t>(size_bytes));
  std::vector<std::int64_t> stamps{ticks()};
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < block_messages; ++i) {
      sender.send(payload);
      receive(receiver, message);
    }
    stamps.push_back(ticks());
  }
  std::vector<double> means;
  for (const double half_ns : one_way_ns(stamps)) means.push_back(2 * half_ns / block_messages);
  return means;
}

}  // namespace towpath::riscv_mailbox::live
