// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/signal_waits.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace towpath::transport {

namespace {

constexpr std::size_t kWaitsInSentenceMax = 4;

}  // namespace

void SignalWaits::add(SignalWait& wait) {
  if (wait.is_waiting) throw std::invalid_argument("a wait that is already waiting began again");
  wait.is_waiting = true;
  wait.next = nullptr;
  wait.previous = last_;
  (last_ == nullptr ? first_ : last_->next) = &wait;
  last_ = &wait;
}

void SignalWaits::remove(SignalWait& wait) {
  if (!wait.is_waiting) return;
  if (next_ == &wait) next_ = wait.next;
  (wait.previous == nullptr ? first_ : wait.previous->next) = wait.next;
  (wait.next == nullptr ? last_ : wait.next->previous) = wait.previous;
  wait.next = wait.previous = nullptr;
  wait.is_waiting = false;
}

std::string SignalWaits::describe(const SignalWait& wait, const Transport& transport) {
  if (wait.describe != nullptr) return wait.describe(wait);
  const std::string from = wait.peer == kNoPeer ? "" : fmt::format(" from rank {}", wait.peer);
  return fmt::format("signal {} (it is {}, compared with {}){}", wait.signal,
                     transport.signal_fetch(wait.signal), wait.value, from);
}

std::string SignalWaits::pending(const Transport& transport) const {
  std::string lines;
  for (const SignalWait* wait = first_; wait != nullptr; wait = wait->next) {
    lines += describe(*wait, transport) + '\n';
  }
  return lines;
}

std::string SignalWaits::describe_all(int culprit, const std::string& what,
                                      const Transport& transport) const {
  std::string first = what;
  std::string all = what;
  std::size_t count = 0;
  for (const SignalWait* wait = first_; wait != nullptr; wait = wait->next, ++count) {
    const bool concerns_culprit = wait->peer == culprit && culprit != kNoPeer;
    if (first.empty() || (first == what && concerns_culprit)) first = describe(*wait, transport);
    if (count < kWaitsInSentenceMax) {
      all += (all.empty() ? "" : "; ") + describe(*wait, transport);
    }
  }
  if (count > kWaitsInSentenceMax) all += fmt::format("; and {} more", count - kWaitsInSentenceMax);
  if (first.empty()) return "nothing in particular";
  return first == all ? first : fmt::format("{} (all waits: {})", first, all);
}

}  // namespace towpath::transport
