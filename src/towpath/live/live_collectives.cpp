// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/live_collectives.hpp"

#include <fmt/format.h>

#include <utility>

namespace towpath::live {

using transport::kNoPeer;
using transport::SignalWait;
using transport::TransportError;

namespace {

std::string describe_wait(const SignalWait& wait) {
  const auto& request = *static_cast<const Request*>(wait.context);
  return fmt::format("the part of rank {} in {} of {} bytes", wait.peer, request.name,
                     size_of(request));
}

}  // namespace

LiveCollectives::LiveCollectives(transport::LiveTransport& transport)
    : transport_(transport),
      board_(transport),
      never_(transport.allocate_signals(1)),
      waits_(static_cast<std::size_t>(transport.ranks())) {
  if (SharedCollectives::is_possible(transport)) {
    shared_ = std::make_unique<SharedCollectives>(transport);
  } else {
    channels_ = std::make_unique<Channels>(transport);
  }
}

LiveCollectives::~LiveCollectives() {
  for (SignalWait& wait : waits_) transport_.cancel(wait);
}

bool LiveCollectives::advance() {
  if (chunked_ == nullptr) return shared_->advance(), shared_->is_done();
  return chunked_->advance(), chunked_->is_done();
}

void LiveCollectives::run(const Request& request, Time timeout) {
  constexpr int kTurns = 40;
  check_request(request, transport_.rank(), transport_.ranks());
  board_.begin(request, ++call_.sequence);
  transport_.note_activity();
  try {
    if (shared_ != nullptr && SharedCollectives::serves(request.kind)) {
      shared_->begin(request);
    } else {
      if (channels_ == nullptr) {
        throw std::invalid_argument(fmt::format("{}: a group's own kind of call", request.name));
      }
      auto call = std::make_shared<Call>();
      call->request = request;
      call->sequence = call_.sequence;
      chunked_ = std::make_unique<CollectiveCall>(*channels_, std::move(call));
    }
    bool is_done = false;
    // Most calls end within microseconds: neither a clock nor a peer is looked at before.
    for (int turn = 0; turn < kTurns && !(is_done = advance()); ++turn) transport_.relax();
    if (!is_done) wait(request, timeout);
  } catch (const Mismatch& mismatch) {
    if (shared_ != nullptr) shared_->cancel();
    chunked_.reset();
    throw_disagreement(request, mismatch.peer);
  } catch (...) {
    if (shared_ != nullptr) shared_->cancel();
    chunked_.reset();
    throw;
  }
  chunked_.reset();
  board_.end();
}

bool LiveCollectives::awaits(int peer) {
  return chunked_ != nullptr ? chunked_->awaits(peer) : shared_->awaits(peer);
}

// A wait per rank that something is awaited from: the transport then names one that has left.
void LiveCollectives::look_after_peers() {
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    SignalWait& wait = waits_[static_cast<std::size_t>(peer)];
    if (wait.is_waiting && !awaits(peer)) transport_.cancel(wait);
  }
}

void LiveCollectives::wait(const Request& request, Time timeout) {
  for (int peer = 0; peer < transport_.ranks(); ++peer) {
    SignalWait& wait = waits_[static_cast<std::size_t>(peer)];
    wait = {};
    wait.signal = never_;
    wait.value = 1;
    wait.peer = peer;
    wait.describe = describe_wait;
    wait.context = const_cast<Request*>(&request);
    if (awaits(peer)) transport_.wait(wait);
  }
  const auto cancel = [&] {
    for (SignalWait& wait : waits_) transport_.cancel(wait);
  };
  try {
    transport_.block_until(
        [&] {
          const bool is_done = advance();
          if (!is_done) look_after_peers();
          return is_done;
        },
        timeout, kNoPeer, [&] { return wish_of(request); });
  } catch (...) {
    cancel();
    throw;
  }
  cancel();
}

std::string LiveCollectives::wish_of(const Request& request) const {
  return fmt::format("{} of {} bytes", request.name, size_of(request));
}

void LiveCollectives::throw_disagreement(const Request& request, int peer) {
  const std::string theirs = board_.wish_of(peer);
  throw TransportError(
      TransportError::Kind::disagreement, peer,
      fmt::format("rank {} wants {}, but rank {} wants {}; all ranks call the same, with the same "
                  "sizes, types and roots",
                  transport_.rank(), wish_of(request), peer, theirs));
}

}  // namespace towpath::live
