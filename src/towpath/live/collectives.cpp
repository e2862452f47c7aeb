// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/collectives.hpp"

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::live {

using transport::kNoPeer;
using transport::SignalWait;
using transport::TransportError;

namespace {

Request request_of_statement(std::string statement) {
  Request request;
  request.kind = Kind::barrier;
  request.element = static_cast<std::uint32_t>(std::hash<std::string>{}(statement));
  request.name = std::move(statement);
  return request;
}

// True if this rank only sends. No wait then shows that another rank makes a different call.
bool waits_for_nobody(const Request& request, int rank) {
  const bool is_root = request.peer == rank;
  return (request.kind == Kind::broadcast && is_root) || (request.kind == Kind::reduce && !is_root);
}

std::string describe_wait(const SignalWait& wait) {
  const auto& request = *static_cast<const Request*>(wait.context);
  return fmt::format("the part of rank {} in {}", wait.peer, describe(request));
}

}  // namespace

Collectives::Collectives(transport::LiveTransport& transport, bool serves_exchanges)
    : transport_(transport),
      status_(transport),
      never_(transport.allocate_signals(1)),
      waits_(index(transport.ranks())) {
  if (SharedRank::is_possible(transport)) shared_.emplace(transport);
  if (!shared_ || serves_exchanges) channels_.emplace(transport);
}

Collectives::~Collectives() { cancel_waits(true); }

void Collectives::begin(const Request& request) {
  const bool is_shared = shared_ && SharedCollectives::serves(request.kind);
  if (!is_shared && !channels_) {
    throw std::invalid_argument(fmt::format("{}: a group's own kind of call", request.name));
  }
  const std::uint64_t number = status_.begin(request);
  request_ = &request;
  if (is_shared) {
    shared_->begin(request);
  } else {
    by_puts_ = std::make_unique<ChannelCollective>(*channels_, request, number);
  }
}

bool Collectives::advance() {
  if (request_ == nullptr) return false;
  const bool any = by_puts_ ? by_puts_->advance() : shared_->advance();
  if (by_puts_ ? by_puts_->is_done() : shared_->is_done()) {
    if (waits_for_nobody(*request_, transport_.rank())) {
      // After this call is visible: of two ranks that differ, the later one then finds it.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      check_peers();
    }
    status_.end();
    by_puts_.reset();
    request_ = nullptr;
  }
  return any;
}

bool Collectives::awaits(int peer) {
  if (request_ == nullptr) return false;
  return by_puts_ ? by_puts_->awaits(peer) : shared_->awaits(peer);
}

void Collectives::check_peers() {
  if (request_ == nullptr) return;
  if (shared_) shared_->check_peers();
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    if (status_.makes_another_call(peer)) throw Mismatch{peer};
  }
}

// A rank may have left because a third rank made a different call. Ranks of other hosts are not
// checked: they may have ended.
void Collectives::check_last_calls() const {
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    if (!transport_.is_addressable(peer)) continue;
    if (!status_.difference(peer).empty()) throw Mismatch{peer};
  }
}

void Collectives::cancel() {
  if (shared_) shared_->cancel();
  by_puts_.reset();
  request_ = nullptr;
}

void Collectives::run(const Request& request, Time timeout) {
  constexpr int kTurns = 40;
  if (fork_.is_forked()) {
    refuse(request,
           fmt::format("this process is forked from rank {} and is not a rank", transport_.rank()));
  }
  check_request(request, transport_.rank(), transport_.ranks());
  transport_.note_activity();
  try {
    begin(request);
    // Most calls end within microseconds, before any check of a clock or of a peer's health.
    for (int turn = 0; turn < kTurns; ++turn) {
      advance();
      if (is_done()) return;
      transport_.relax();
    }
    wait(request, timeout);
  } catch (const Mismatch& mismatch) {
    cancel();
    throw_disagreement(request, mismatch.peer);
  } catch (...) {
    cancel();
    throw;
  }
}

void Collectives::synchronize(std::string statement, Time timeout) {
  run(request_of_statement(std::move(statement)), timeout);
}

void Collectives::announce(std::string statement) {
  announced_ = request_of_statement(std::move(statement));
  status_.begin(announced_);
  status_.end();
}

void Collectives::compare_calls() {
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    if (peer == transport_.rank() || status_.difference(peer).empty()) continue;
    throw_disagreement(announced_, peer);
  }
}

void Collectives::wait(const Request& request, Time timeout) {
  try {
    transport_.block_until(
        [&] {
          advance();
          check_peers();
          cancel_waits(is_done());
          if (!is_done()) begin_waits(request);
          return is_done();
        },
        timeout, kNoPeer, [&] { return describe(request); });
  } catch (const TransportError&) {
    cancel_waits(true);
    check_last_calls();
    throw;
  } catch (...) {
    cancel_waits(true);
    throw;
  }
}

// One wait per rank that the call depends on: the transport then names a rank that has left.
void Collectives::begin_waits(const Request& request) {
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    SignalWait& wait = waits_[index(peer)];
    if (wait.is_waiting || !awaits(peer)) continue;
    wait = {};
    wait.signal = never_;
    wait.value = 1;
    wait.peer = peer;
    wait.describe = describe_wait;
    wait.context = const_cast<Request*>(&request);
    transport_.wait(wait);
  }
}

void Collectives::cancel_waits(bool are_all_over) {
  for (SignalWait& wait : waits_) {
    if (wait.is_waiting && (are_all_over || !awaits(wait.peer))) transport_.cancel(wait);
  }
}

void Collectives::throw_disagreement(const Request& request, int peer) {
  const std::string here = describe(request);
  const std::string there = status_.describe_call(peer);
  std::string difference;
  if (here == there || !status_.is_in_step_with(peer)) difference = status_.difference(peer);
  if (difference.empty() && here != there) {
    difference =
        fmt::format("rank {} wants {}, but rank {} wants {}", transport_.rank(), here, peer, there);
  }
  if (difference.empty()) difference = fmt::format("rank {} made other calls before", peer);
  throw TransportError(
      TransportError::Kind::disagreement, peer,
      difference + "; all ranks must make the same call, with the same sizes, types and roots");
}

}  // namespace towpath::live
