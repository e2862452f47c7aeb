// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/signal_waits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace towpath::transport {

namespace {

constexpr std::size_t kOthersInSentenceMax = 3;

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
  std::vector<std::string> others;
  for (const SignalWait* wait = first_; wait != nullptr; wait = wait->next) {
    std::string one = describe(*wait, transport);
    const bool concerns_culprit = wait->peer == culprit && culprit != kNoPeer;
    if (first.empty() || (first == what && concerns_culprit)) {
      std::swap(first, one);
      if (one.empty() || first.find(one) != std::string::npos) continue;
    }
    others.push_back(std::move(one));
  }
  if (others.empty()) return first;
  const std::size_t shown = std::min(others.size(), kOthersInSentenceMax);
  const auto end = others.begin() + static_cast<std::ptrdiff_t>(shown);
  const std::string more =
      shown < others.size() ? fmt::format("; and {} more", others.size() - shown) : "";
  return fmt::format("{} (also for {}{})", first, fmt::join(others.begin(), end, "; "), more);
}

}  // namespace towpath::transport
