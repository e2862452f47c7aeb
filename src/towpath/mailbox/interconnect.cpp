// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/mailbox/interconnect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "towpath/sim/hardware_priority.hpp"
#include "towpath/sim/trace.hpp"

namespace towpath::mailbox {

Interconnect::Interconnect(sim::Simulation& simulation,
                           std::shared_ptr<const machine::MailboxCluster> cluster)
    : simulation_(simulation),
      cluster_(std::move(cluster)),
      clock_(cluster_->interconnect_clock),
      ring_(simulation, cluster_, [this](Packet& packet, Time rest) { arrive(packet, rest); }),
      nodes_(static_cast<std::size_t>(cluster_->nodes)) {
  for (Node& node : nodes_) {
    node.contexts.resize(static_cast<std::size_t>(cluster_->packetizer.contexts));
  }
}

Interconnect::Node& Interconnect::checked(int node) {
  if (node >= 0 && node < cluster_->nodes) return nodes_[static_cast<std::size_t>(node)];
  throw std::invalid_argument(fmt::format("cluster '{}' has no node {}; it has 0 to {}",
                                          cluster_->name, node, cluster_->nodes - 1));
}

void Interconnect::trace_instant(int node, std::string_view event, Time time) const {
  sim::Trace* const trace = simulation_.trace();
  if (trace == nullptr) return;
  trace->instant(trace->track(fmt::format("node {}", node)), trace->name(event), time);
}

// --- contexts

Address Interconnect::open(int node, int domain) {
  Node& owner = checked(node);
  for (std::size_t number = 0; number < owner.contexts.size(); ++number) {
    Context& context = owner.contexts[number];
    if (context.is_open || context.unacknowledged > 0) continue;
    context = {};
    context.is_open = true;
    context.domain = domain;
    return {node, static_cast<int>(number)};
  }
  throw std::invalid_argument(fmt::format("all {} contexts of node {} of cluster '{}' are open",
                                          owner.contexts.size(), node, cluster_->name));
}

void Interconnect::close(Address address) {
  Context& context = at(address);
  if (!context.is_open) return;
  context.is_open = false;
  context.process = nullptr;
  context.fifo.clear();
  for (const Packet& packet : std::exchange(context.waiting, {})) {
    answer(packet, Packet::Kind::refused);
  }
}

void Interconnect::wake(Context& context) {
  if (context.process != nullptr) simulation_.wake(*context.process);
}

// --- packetizer

void Interconnect::submit(Address from, Address to, std::span<const std::byte> payload) {
  const machine::PacketizerParameters& figures = cluster_->packetizer;
  Node& node = checked(from.node);
  checked(to.node);
  if (payload.empty() || payload.size() > static_cast<std::size_t>(figures.payload_bytes_max)) {
    throw std::invalid_argument(fmt::format("a packet carries {} bytes; it must carry 1 to {}",
                                            payload.size(), figures.payload_bytes_max));
  }
  TOWPATH_CHECK(has_room(from), "context {} of node {} submits a packet, but has no room for it",
                from.context, from.node);
  Context& context = at(from);
  ++context.unacknowledged;
  const Cycles begin = std::max(clock_.cycle_at(simulation_.now()), node.packetizer_free_at);
  node.packetizer_free_at = begin + Cycles(figures.formation_cycles);
  if (free_forming_.empty()) free_forming_.push_back(&forming_.emplace_back());
  Forming& forming = *free_forming_.back();
  free_forming_.pop_back();
  forming.interconnect = this;
  forming.packet = {Packet::Kind::message, from, to, context.domain,
                    std::vector<std::byte>(payload.begin(), payload.end())};
  simulation_.at(clock_.edge(node.packetizer_free_at), &formed, &forming, sim::kHardwarePriority);
}

void Interconnect::formed(void* context) {
  Forming& forming = *static_cast<Forming*>(context);
  Interconnect& self = *forming.interconnect;
  Packet packet = std::move(forming.packet);
  self.free_forming_.push_back(&forming);
  self.trace_instant(packet.from.node, "header leaves", self.simulation_.now());
  self.ring_.send(std::move(packet));
}

void Interconnect::on_notice(Context& sender, Packet::Kind kind) {
  --sender.unacknowledged;
  switch (kind) {
    case Packet::Kind::full: ++sender.notices.full; break;
    case Packet::Kind::refused: ++sender.notices.refused; break;
    default: ++sender.notices.acknowledged;
  }
  wake(sender);
}

// --- mailboxes

void Interconnect::arrive(Packet& packet, Time rest) {
  const Address to = packet.to;
  if (packet.kind != Packet::Kind::message) {
    trace_instant(to.node, "acknowledgement arrives", simulation_.now());
    return on_notice(at(to), packet.kind);
  }
  trace_instant(to.node, "header arrives", simulation_.now());
  const bool exists = to.context >= 0 && to.context < cluster_->packetizer.contexts;
  if (!exists || !at(to).is_open || at(to).domain != packet.domain) {
    return answer(packet, Packet::Kind::refused);
  }
  Context& mailbox = at(to);
  if (mailbox.fifo.size() < static_cast<std::size_t>(cluster_->mailbox.depth_packets)) {
    return enqueue(mailbox, std::move(packet), rest);
  }
  if (cluster_->mailbox.drops_when_full) return answer(packet, Packet::Kind::full);
  mailbox.waiting.push_back(std::move(packet));
}

void Interconnect::enqueue(Context& mailbox, Packet packet, Time rest) {
  const Time now = simulation_.now();
  answer(packet, Packet::Kind::acknowledgement);
  // A packet is read after its predecessor, so its own time suffices.
  const Time visible = std::max(clock_.edge_after(now, Cycles(cluster_->mailbox.enqueue_cycles)),
                                clock_.next_edge(now + rest));
  const bool is_first = mailbox.fifo.empty();
  mailbox.fifo.push_back({std::move(packet), visible});
  if (is_first) wake(mailbox);
}

std::optional<Time> Interconnect::visible_from(Address context) const {
  const std::deque<Entry>& fifo = at(context).fifo;
  if (fifo.empty()) return std::nullopt;
  return fifo.front().visible_from;
}

Message Interconnect::first(Address context) const {
  const std::deque<Entry>& fifo = at(context).fifo;
  TOWPATH_CHECK(!fifo.empty() && fifo.front().visible_from <= simulation_.now(),
                "context {} of node {} reads a packet that it cannot see", context.context,
                context.node);
  return {fifo.front().packet.from, fifo.front().packet.payload};
}

void Interconnect::release(Address context) {
  Context& mailbox = at(context);
  TOWPATH_CHECK(!mailbox.fifo.empty(), "context {} of node {} releases a packet that is not there",
                context.context, context.node);
  mailbox.fifo.pop_front();
  if (mailbox.waiting.empty()) return;
  Packet next = std::move(mailbox.waiting.front());
  mailbox.waiting.pop_front();
  enqueue(mailbox, std::move(next), Time());  // complete
}

}  // namespace towpath::mailbox
