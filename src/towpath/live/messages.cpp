// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "towpath/base/index.hpp"

namespace towpath::live {

using transport::kNoPeer;
using transport::TransportError;

namespace {

bool matches(const Call& receive, int source, std::uint64_t tag) {
  const Request& request = receive.request;
  return request.tag == tag && (request.peer == kNoPeer || request.peer == source);
}

}  // namespace

Messages::Messages(Channels& channels, std::function<void(const CallPointer&)> ended)
    : channels_(channels),
      ended_(std::move(ended)),
      sending_(index(channels.ranks())),
      incoming_(index(channels.ranks())) {}

void Messages::post(const CallPointer& call) {
  ++pending_;
  const Request& request = call->request;
  if (request.kind == Kind::send) {
    sending_[index(request.peer)].push_back({call});
    return;
  }
  for (auto found = unexpected_.begin(); found != unexpected_.end(); ++found) {
    if (!matches(*call, (*found)->source, (*found)->tag)) continue;
    const IncomingPointer incoming = *found;
    unexpected_.erase(found);
    attach(incoming, call);
    settle(incoming);
    return;
  }
  receives_.push_back(call);
}

bool Messages::advance() {
  bool any = false;
  for (int peer = 0; peer < channels_.ranks(); ++peer) {
    if (!sending_[index(peer)].empty()) any |= send_to(peer);
    if (peer != channels_.rank()) any |= receive_from(peer);
  }
  return any;
}

bool Messages::send_to(int peer) {
  std::deque<Sending>& queue = sending_[index(peer)];
  bool any = false;
  while (!queue.empty()) {
    Sending& front = queue.front();
    const Span& from = front.call->request.inputs[0];
    while (!front.has_begun || front.sent < from.size_bytes) {
      if (!channels_.can_send(peer)) return any;
      Head head{front.call->request.tag, from.size_bytes};
      const std::uint64_t head_bytes = front.has_begun ? 0 : Channels::kHeadBytes;
      std::byte padded[Channels::kHeadBytes] = {};
      std::memcpy(padded, &head, sizeof(head));
      const std::uint64_t size =
          std::min(Channels::kSlotBytes - head_bytes, from.size_bytes - front.sent);
      channels_.send(peer, {padded, head_bytes}, {from.data + front.sent, size}, 0);
      front.has_begun = true;
      front.sent += size;
      any = true;
    }
    if (!channels_.all_sent()) return any;
    const CallPointer call = front.call;
    queue.pop_front();
    finish(call);
  }
  return any;
}

bool Messages::receive_from(int peer) {
  bool any = false;
  while (true) {
    const Arrival arrival = channels_.arrival(peer);
    if (arrival.data == nullptr) return any;
    if (incoming_[index(peer)] == nullptr) {
      begin_incoming(peer, arrival.data);
      take(peer, arrival.data + Channels::kHeadBytes);
    } else {
      take(peer, arrival.data);
    }
    any = true;
  }
}

void Messages::begin_incoming(int peer, const std::byte* head) {
  Head said{};
  std::memcpy(&said, head, sizeof(said));
  const auto incoming = std::make_shared<Incoming>();
  incoming->source = peer;
  incoming->tag = said.tag;
  incoming->size_bytes = said.size_bytes;
  incoming_[index(peer)] = incoming;
  const auto found = std::find_if(receives_.begin(), receives_.end(), [&](const CallPointer& call) {
    return matches(*call, peer, said.tag);
  });
  if (found == receives_.end()) {
    incoming->kept.resize(said.size_bytes);
    unexpected_.push_back(incoming);
    return;
  }
  const CallPointer call = *found;
  receives_.erase(found);
  attach(incoming, call);
}

// Gives a message to its receive, with the bytes that have arrived. A message of another length
// fails the receive and is dropped.
void Messages::attach(const IncomingPointer& incoming, const CallPointer& call) {
  const Span& to = call->request.outputs[0];
  call->source = incoming->source;
  incoming->receive = call;
  if (to.size_bytes != incoming->size_bytes) {
    call->error.emplace(
        TransportError::Kind::disagreement, incoming->source,
        fmt::format("rank {} sent a message of {} bytes with tag {}, but rank {} receives {} bytes",
                    incoming->source, incoming->size_bytes, incoming->tag, channels_.rank(),
                    to.size_bytes));
    return;
  }
  if (incoming->arrived > 0) std::memcpy(to.data, incoming->kept.data(), incoming->arrived);
  incoming->kept = {};
}

void Messages::take(int peer, const std::byte* chunk) {
  const IncomingPointer incoming = incoming_[index(peer)];
  const std::uint64_t room =
      Channels::kSlotBytes - (incoming->arrived == 0 ? Channels::kHeadBytes : 0);
  const std::uint64_t size = std::min(room, incoming->size_bytes - incoming->arrived);
  const CallPointer& receive = incoming->receive;
  if (receive == nullptr) {
    if (size > 0) std::memcpy(incoming->kept.data() + incoming->arrived, chunk, size);
  } else if (!receive->error && size > 0) {
    std::memcpy(receive->request.outputs[0].data + incoming->arrived, chunk, size);
  }
  incoming->arrived += size;
  channels_.consume(peer);
  settle(incoming);
}

void Messages::settle(const IncomingPointer& incoming) {
  if (incoming->arrived < incoming->size_bytes) return;
  IncomingPointer& current = incoming_[index(incoming->source)];
  if (current == incoming) current = nullptr;
  if (incoming->receive != nullptr) finish(incoming->receive);
}

void Messages::finish(const CallPointer& call) {
  --pending_;
  ended_(call);
}

std::vector<CallPointer> Messages::pending() const {
  std::vector<CallPointer> calls(receives_.begin(), receives_.end());
  for (const auto& queue : sending_) {
    for (const Sending& sending : queue) calls.push_back(sending.call);
  }
  for (const IncomingPointer& incoming : incoming_) {
    if (incoming != nullptr && incoming->receive != nullptr) calls.push_back(incoming->receive);
  }
  return calls;
}

bool Messages::cancel(const CallPointer& call) {
  const auto receive = std::find(receives_.begin(), receives_.end(), call);
  if (receive != receives_.end()) {
    receives_.erase(receive);
    --pending_;
    return true;
  }
  if (call->request.kind != Kind::send) return false;
  std::deque<Sending>& queue = sending_[index(call->request.peer)];
  const auto sending = std::find_if(queue.begin(), queue.end(), [&](const Sending& candidate) {
    return candidate.call == call && !candidate.has_begun;
  });
  if (sending == queue.end()) return false;
  queue.erase(sending);
  --pending_;
  return true;
}

}  // namespace towpath::live
