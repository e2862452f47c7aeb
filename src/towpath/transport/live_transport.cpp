// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/live_transport.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace towpath::transport {

namespace {

constexpr std::size_t kRendezvousBytesMax = 64;

}  // namespace

void FailureNotice::post(RankFailure failure) {
  const std::lock_guard lock(mutex_);
  if (is_posted_.load(std::memory_order_relaxed)) return;
  failure_ = std::move(failure);
  is_posted_.store(true, std::memory_order_release);
}

std::optional<RankFailure> FailureNotice::read() const {
  if (!is_posted_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_;
}

Time timeout_from(double seconds) {
  constexpr double kLongestSeconds = 1e6;  // 64 bits of picoseconds are 9e6 s
  if (!(seconds >= 0)) {
    throw std::invalid_argument(fmt::format(
        "a timeout of {} s is not possible; it must be 0 or more, or infinity", seconds));
  }
  return seconds > kLongestSeconds ? Time::max() : Time::from_seconds(seconds);
}

void check_membership(const LiveOptions& options) {
  const auto reject = [](const std::string& sentence) { throw std::invalid_argument(sentence); };
  if (options.rendezvous.empty() || options.rendezvous.size() > kRendezvousBytesMax) {
    reject(fmt::format("the rendezvous name \"{}\" has {} bytes; it must have 1 to {}",
                       options.rendezvous, options.rendezvous.size(), kRendezvousBytesMax));
  }
  if (options.ranks < 1)
    reject(fmt::format("there are {} ranks; there must be at least 1", options.ranks));
  if (options.rank < 0 || options.rank >= options.ranks) {
    reject(fmt::format("rank {} is outside the range 0 to {}", options.rank, options.ranks - 1));
  }
}

void look_around(const LiveOptions& options) {
  if (options.on_look) options.on_look();
  if (options.notice == nullptr) return;
  const std::optional<RankFailure> failure = options.notice->read();
  if (!failure) return;
  throw TransportError(TransportError::Kind::peer_died, failure->culprit,
                       fmt::format("rank {} {} while group \"{}\" was connecting", failure->culprit,
                                   failure->what, options.rendezvous));
}

}  // namespace towpath::transport
