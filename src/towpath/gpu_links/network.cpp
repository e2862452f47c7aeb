// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu_links/network.hpp"

#include <algorithm>
#include <utility>

#include "towpath/sim/trace.hpp"

namespace towpath::gpu_links {

Network::Network(const Parts& parts, std::shared_ptr<const machine::Machine> machine)
    : machine_(std::move(machine)), part_of_device_(parts.of_device) {
  for (sim::Simulation* const simulation : parts.simulations) {
    parts_.push_back(std::make_unique<Part>(*simulation, *machine_));
  }
  if (parts_.size() > 1) begin_loads();
  for (const machine::Link& link : machine_->links()) {
    part_of_link_.push_back(parts.of(link.from));
    const machine::Device& from = machine_->devices()[static_cast<std::size_t>(link.from)];
    leaves_adapter_.push_back(from.kind == machine::DeviceKind::nic &&
                              link.kind == machine::LinkKind::network);
  }
}

void Network::fold(std::shared_ptr<const std::vector<FoldedLink>> folded) {
  folded_ = std::move(folded);
  is_shared_.resize(folded_->size());
}

void Network::take_representatives(Route& route) {
  for (int& number : route.links) {
    const FoldedLink& link = (*folded_)[static_cast<std::size_t>(number)];
    number = link.representative;
    route.moves.push_back(link.moves);
    const auto [first, is_first] = first_moves_.try_emplace(number, link.moves);
    if (!is_first && first->second != link.moves) {
      is_shared_[static_cast<std::size_t>(number)] = true;
    }
  }
}

const Route& Network::route(int from_rank, int to_rank) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(from_rank) << 32 | static_cast<std::uint32_t>(to_rank);
  const auto part = [this](int rank) {
    if (part_of_device_.empty()) return std::uint32_t{0};
    return part_of_device_[static_cast<std::size_t>(machine_->device_of_rank(rank))];
  };
  const std::uint32_t from_part = part(from_rank);
  Part& own = *parts_[from_part];
  std::unique_ptr<Route>& found = own.routes[key];
  if (found != nullptr) return *found;
  found = std::make_unique<Route>();
  if (from_rank != to_rank) found->links = own.search.route(from_rank, to_rank);
  found->from_part = from_part;
  found->to_part = part(to_rank);
  for (const int number : found->links) {
    const machine::Link& link = machine_->links()[static_cast<std::size_t>(number)];
    found->latency += link.latency;
    found->leaves_host |= link.kind == machine::LinkKind::network;
  }
  if (folded_ != nullptr) take_representatives(*found);
  return *found;
}

void Network::begin_loads() {
  free_at_.resize(machine_->links().size());
  loads_.resize(machine_->links().size());
}

void Network::send(Message& message) {
  if (free_at_.empty()) begin_loads();
  message.network = this;
  message.remaining = message.size;
  message.first.is_first = true;
  if (message.size == Bytes(0) || message.route->links.empty()) {
    // Within the rank, or empty: only the sender's pace matters.
    Part& from = *parts_[message.route->from_part];
    const Time end = from.simulation.now() + transfer_time(message.size, message.pace);
    if (message.left != nullptr) from.simulation.at(end, leave_sender, &message);
    schedule(from, *parts_[message.route->to_part], end + message.route->latency + message.delay,
             arrive, &message);
    return;
  }
  offer_segment(message, message.first);
}

void Network::send_at(Time when, Message& message) {
  message.network = this;
  schedule_entry(when, 0, message, send_now, &message);
}

// In another part, before all other events at that moment.
void Network::schedule(Part& from, Part& to, Time when, sim::Action action, void* context) {
  if (&from == &to) {
    to.simulation.at(when, action, context);
  } else {
    from.crossing.at(to.simulation, when, action, context);
  }
}

// A message's head reaches a link of its route.
void Network::schedule_entry(Time when, std::size_t hop, Message& message, sim::Action action,
                             void* context) {
  const Route& route = *message.route;
  Part& from = hop == 0 ? *parts_[route.from_part] : part_of_link(route.links[hop - 1]);
  Part& to = hop == 0 ? from : part_of_link(route.links[hop]);
  if (message.turn == kNoTurn) return schedule(from, to, when, action, context);
  from.crossing.at_ordered(to.simulation, {when, kEntryPriority, message.turn << 8 | hop}, action,
                           context);
}

void Network::send_now(void* context) {
  Message& message = *static_cast<Message*>(context);
  message.network->send(message);
}

void Network::offer_next(void* context) {
  Message& message = *static_cast<Message*>(context);
  Network& network = *message.network;
  network.offer_segment(message, new_segment(*network.parts_[message.route->from_part]));
}

void Network::leave_sender(void* context) {
  Message& message = *static_cast<Message*>(context);
  message.left(message);
}

void Network::arrive(void* context) {
  Message& message = *static_cast<Message*>(context);
  message.arrived(message);
}

void Network::offer_segment(Message& message, Segment& segment) {
  segment.message = &message;
  segment.size =
      std::min(next_segment(message.remaining, message.segment_min), message.segment_max);
  segment.hop = 0;
  message.remaining = message.remaining - segment.size;
  segment.is_last = message.remaining == Bytes(0);
  Part& from = *parts_[message.route->from_part];
  segment.tail_in = from.simulation.now() + transfer_time(segment.size, message.pace);
  const bool is_last = segment.is_last;
  const Time has_left = pass_link(segment);
  if (!is_last) {
    schedule_entry(has_left, 0, message, offer_next, &message);
  } else if (message.left != nullptr) {
    from.simulation.at(has_left, leave_sender, &message);
  }
}

void Network::enter_link(void* context) {
  Segment& segment = *static_cast<Segment*>(context);
  segment.message->network->pass_link(segment);
}

// The head has arrived. Returns the time at which the tail has left the sending end of this link.
Time Network::pass_link(Segment& segment) {
  const Message& message = *segment.message;
  const std::vector<int>& links = message.route->links;
  const int number = links[segment.hop];
  if (is_shared(number)) {
    ties_.note(static_cast<std::size_t>(number), message.route->moves[segment.hop],
               part_of_link(number).simulation.now());
  }
  Passage passage = enter(number, segment);
  const auto occupy_beside = [&](std::span<const int> others) {
    for (const int other : others) {
      const Passage beside = enter(other, segment);
      passage.start = std::max(passage.start, beside.start);
      passage.tail_left = std::max(passage.tail_left, beside.tail_left);
    }
  };
  if (segment.hop == 0) occupy_beside(message.beside_first);
  if (segment.hop + 1 == links.size()) occupy_beside(message.beside_last);
  const Time latency = machine_->links()[static_cast<std::size_t>(number)].latency;
  forward(segment, passage.start + latency, passage.tail_left + latency);
  return passage.tail_left;
}

Network::Passage Network::enter(int number, const Segment& segment) {
  const auto place = static_cast<std::size_t>(number);
  const sim::Simulation& simulation = part_of_link(number).simulation;
  const Message& message = *segment.message;
  const Time occupied = use_of(number, message.protocol, message.rate_max)
                            .occupied_by(segment.size, segment.is_first);
  const Time start = occupy(simulation.now(), occupied, free_at_[place]);
  LinkLoad& load = loads_[place];
  load.bytes += segment.size;
  load.busy += occupied;
  load.messages += segment.is_first;
  if (history_ != nullptr) history_->add(place, start, start + occupied, segment.size);
  if (simulation.trace() != nullptr) trace_link(number, start, start + occupied, segment.size);
  return {start, tail_left(free_at_[place], segment.tail_in)};
}

LinkUse Network::use_of(int number, Protocol protocol, Rate rate_max) const {
  const machine::Link& link = machine_->links()[static_cast<std::size_t>(number)];
  const Rate rate = rate_on(static_cast<std::size_t>(number), protocol);
  return {rate_max == Rate() ? rate : std::min(rate, rate_max), link.message_overhead,
          link.latency};
}

// A proxy may slow down an adapter. See machine::ProtocolCost.
Rate Network::rate_on(std::size_t link, Protocol protocol) const {
  const Rate own = machine_->links()[link].rate;
  if (!leaves_adapter_[link]) return own;
  const int from = machine_->links()[link].from;
  const int host = machine_->devices()[static_cast<std::size_t>(from)].host;
  const Rate adapter =
      machine_->gpu_of_host(host).protocol[static_cast<std::size_t>(protocol)].adapter_rate;
  if (adapter == Rate()) return own;
  return std::min(own, on_wire(adapter, protocol));
}

void Network::forward(Segment& segment, Time head_out, Time tail_out) {
  Message& message = *segment.message;
  const Route& route = *message.route;
  Part& from = part_of_link(route.links[segment.hop]);
  if (++segment.hop < route.links.size()) {
    segment.tail_in = tail_out;
    schedule_entry(head_out, segment.hop, message, enter_link, &segment);
    return;
  }
  const bool is_own = !segment.is_first;
  // Segments of a message arrive in order, so the last one is the message.
  if (segment.is_last) {
    schedule(from, *parts_[route.to_part], tail_out + message.delay, arrive, &message);
  }
  if (is_own) from.free_segments.push_back(&segment);
}

Segment& Network::new_segment(Part& part) {
  if (part.free_segments.empty()) return part.segments.emplace_back();
  Segment& segment = *part.free_segments.back();
  part.free_segments.pop_back();
  return segment;
}

void Network::trace_link(int number, Time start, Time end, Bytes size) {
  const machine::Link& link = machine_->links()[static_cast<std::size_t>(number)];
  const auto& devices = machine_->devices();
  sim::Trace& trace = *part_of_link(number).simulation.trace();
  trace.span(trace.track("link " + devices[static_cast<std::size_t>(link.from)].name + " > " +
                         devices[static_cast<std::size_t>(link.to)].name),
             trace.name("segment"), start, end, static_cast<std::int64_t>(size.count()));
}

}  // namespace towpath::gpu_links
