// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "program_generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "towpath/sim/random.hpp"

// Plans and mistakes; program_kernels.cpp runs them.

namespace towpath::tenstorrent::kernels {

using machine::Coordinate;
using machine::EthernetEnd;
using sim::Random;
using tenstorrent::Hazard;

namespace {

constexpr int kWorkers = 8;
constexpr std::uint32_t kSizeMax = 2048;
constexpr int kMessagesMax = 6;

bool chance(Random& random, double probability) { return random.uniform() < probability; }
int pick(Random& random, int first, int last) {
  return static_cast<int>(random.between(first, last));
}
template <typename Value>
Value& any_of(Random& random, std::vector<Value>& values) {
  return values[random.below(values.size())];
}

std::vector<WorkerPlace> worker_places() {
  std::vector<WorkerPlace> places;
  for (int i = 0; i < 2 * kWorkers; ++i) places.push_back({{i % 4, 1 + i / 4 % 2}, i / kWorkers});
  return places;
}

// The workers of each chip that have no kernel yet.
class FreeWorkers {
 public:
  FreeWorkers(const Plan& plan, Random& random) {
    for (int chip = 0; chip < plan.shape.chips; ++chip) {
      std::vector<WorkerPlace>& places = places_.emplace_back(worker_places());
      for (std::size_t i = places.size(); i > 1; --i) {
        std::swap(places[i - 1], places[random.below(i)]);
      }
    }
  }
  std::size_t left(int chip) const { return places_[static_cast<std::size_t>(chip)].size(); }
  WorkerPlace take(int chip) {
    std::vector<WorkerPlace>& places = places_[static_cast<std::size_t>(chip)];
    const WorkerPlace place = places.back();
    places.pop_back();
    return place;
  }

 private:
  std::vector<std::vector<WorkerPlace>> places_;
};

// Ends of a link of joined_chips(), in order.
std::pair<EthernetEnd, EthernetEnd> ends_of(const Plan& plan, std::size_t link) {
  const int number = static_cast<int>(link);
  const int chip = number / plan.shape.links;
  const int channel = number % plan.shape.links;
  return {{chip, channel}, {(chip + 1) % plan.shape.chips, 2 + channel}};
}
std::size_t links_of(const Plan& plan) {
  const int neighbours = plan.shape.is_ring ? plan.shape.chips : plan.shape.chips - 1;
  return static_cast<std::size_t>(neighbours * plan.shape.links);
}
Core ethernet_core(const Plan& plan, const LinkPlan& link, bool is_first) {
  const auto [one, other] = ends_of(plan, link.link);
  const EthernetEnd end = is_first ? one : other;
  return {end.chip, {end.channel, 0}};
}
int sending_chip(const Plan& plan, const LinkPlan& link, const ChannelPlan& channel) {
  const auto [one, other] = ends_of(plan, link.link);
  return channel.is_forward ? one.chip : other.chip;
}
int receiving_chip(const Plan& plan, const LinkPlan& link, const ChannelPlan& channel) {
  const auto [one, other] = ends_of(plan, link.link);
  return channel.is_forward ? other.chip : one.chip;
}

// --- random plans -------------------------------------------------------------------------------

void give_sizes(Random& random, ChannelPlan& channel, int messages) {
  channel.size_bytes_max = static_cast<std::uint32_t>(16 * random.between(1, kSizeMax / 16));
  channel.sizes.clear();
  for (int i = 0; i < messages; ++i) {
    channel.sizes.push_back(
        static_cast<std::uint32_t>(16 * random.between(1, channel.size_bytes_max / 16)));
  }
  channel.content = random.bits();
}

ChannelPlan random_channel(Random& random) {
  ChannelPlan channel;
  give_sizes(random, channel, pick(random, 1, kMessagesMax));
  channel.is_forward = chance(random, 0.5);
  channel.slots = pick(random, 1, 3);
  channel.is_count_fixed = chance(random, 0.6);
  if (chance(random, 0.5)) channel.sender_cycles = random.between(0, 3000);
  if (chance(random, 0.5)) channel.receiver_cycles = random.between(0, 3000);
  return channel;
}

// Adds channels for which there are workers, and separate sync words.
void add_mover_channels(const Plan& plan, LinkPlan& link, Random& random, FreeWorkers& workers) {
  int slots_left = link.sync == ChannelSync::separate ? 7 : 24;
  for (const ChannelPlan& channel : link.channels) slots_left -= channel.slots;
  for (int i = pick(random, 1, 4); i > 0; --i) {
    ChannelPlan channel = random_channel(random);
    const int from = sending_chip(plan, link, channel);
    const int to = receiving_chip(plan, link, channel);
    if (workers.left(from) == 0 || workers.left(to) == 0 || slots_left < channel.slots) continue;
    slots_left -= channel.slots;
    channel.sender = workers.take(from);
    channel.receiver = workers.take(to);
    link.channels.push_back(channel);
  }
}

void add_bare_channels(LinkPlan& link, Random& random) {
  const bool is_forward = chance(random, 0.5);
  for (int i = pick(random, 1, 7); i > 0; --i) {
    ChannelPlan channel = random_channel(random);
    channel.is_forward = is_forward;
    channel.slots = 1;
    channel.is_count_fixed = true;
    link.channels.push_back(channel);
  }
}

// Workers that send as much as the buffers hold before they receive anything: around the ring, or
// to and fro between the first two chips.
void add_exchange(const Plan& plan, Plan::Generation& generation, Random& random,
                  FreeWorkers& workers) {
  const bool is_around = plan.shape.is_ring && plan.shape.chips > 2;
  const int chips = is_around ? plan.shape.chips : 2;
  const int slots = pick(random, 1, 2);
  std::vector<WorkerPlace> places;
  for (int chip = 0; chip < chips; ++chip) places.push_back(workers.take(chip));
  for (int chip = 0; chip < chips; ++chip) {
    const auto number = static_cast<std::size_t>(is_around ? chip * plan.shape.links : 0);
    auto link = std::ranges::find(generation.links, number, &LinkPlan::link);
    if (link == generation.links.end()) {
      generation.links.push_back({.link = number});
      link = generation.links.end() - 1;
    }
    ChannelPlan channel = random_channel(random);
    give_sizes(random, channel, pick(random, 1, slots));
    channel.is_forward = is_around || chip == 0;
    channel.slots = slots;
    channel.is_count_fixed = true;
    channel.is_exchanged = true;
    channel.sender = places[static_cast<std::size_t>(chip)];
    channel.receiver = places[static_cast<std::size_t>((chip + 1) % chips)];
    link->channels.push_back(channel);
  }
}

void add_pairs(const Plan& plan, Plan::Generation& generation, Random& random,
               FreeWorkers& workers) {
  for (int chip = 0; chip < plan.shape.chips; ++chip) {
    while (workers.left(chip) >= 2 && chance(random, 0.3)) {
      const WorkerPlace one = workers.take(chip);
      const WorkerPlace other = workers.take(chip);
      if (one.core == other.core) continue;
      generation.pairs.push_back({chip, one, other, pick(random, 1, 5),
                                  static_cast<std::uint32_t>(16 * random.between(1, 256))});
    }
  }
}

Plan::Generation random_generation(const Plan& plan, Random& random, bool has_exchange) {
  Plan::Generation generation;
  FreeWorkers workers(plan, random);
  if (has_exchange) add_exchange(plan, generation, random, workers);
  for (std::size_t number = 0; number < links_of(plan); ++number) {
    auto link = std::ranges::find(generation.links, number, &LinkPlan::link);
    if (link == generation.links.end()) {
      if (number > 0 && chance(random, 0.25)) continue;
      generation.links.push_back({.link = number, .is_data_mover = chance(random, 0.6)});
      link = generation.links.end() - 1;
    }
    link->sync = chance(random, 0.5) ? ChannelSync::merged : ChannelSync::separate;
    link->acknowledges = chance(random, 0.5);
    link->noc_index = pick(random, 0, 1);
    if (link->is_data_mover) {
      add_mover_channels(plan, *link, random, workers);
    } else {
      add_bare_channels(*link, random);
    }
  }
  std::erase_if(generation.links, [](const LinkPlan& link) { return link.channels.empty(); });
  add_pairs(plan, generation, random, workers);
  return generation;
}

void add_faults(Plan& plan, Random& random) {
  if (!chance(random, 0.15)) return;
  for (std::size_t link = 0; link < links_of(plan); ++link) {
    ethernet::LinkFaults faults;
    if (chance(random, 0.5)) faults.frame_loss = 0.1 * random.uniform();
    if (chance(random, 0.5)) {
      faults.drop_at = Time::from_ns(static_cast<double>(random.between(0, 30'000)));
      faults.drop_period = Time::from_us(100);
      faults.dead_time = Time::from_us(1);
    }
    plan.link_faults.push_back(faults);
  }
}

Plan make_plan(std::uint64_t seed, bool has_exchange) {
  Random random(seed, "program generator");
  Plan plan;
  plan.seed = seed;
  plan.shape.chips = pick(random, 2, 4);
  plan.shape.links = pick(random, 1, 2);
  plan.shape.is_ring = plan.shape.chips > 2 && chance(random, 0.5);
  const int generations = pick(random, 1, 2);
  for (int i = 0; i < generations; ++i) {
    const bool is_exchanging = chance(random, 0.2) || (has_exchange && i == 0);
    plan.generations.push_back(random_generation(plan, random, is_exchanging));
  }
  if (chance(random, 0.8)) plan.start_skew_cycles = random.between(0, 2000);
  if (chance(random, 0.8)) plan.program_skew_cycles = random.between(0, 20'000);
  add_faults(plan, random);
  return plan;
}

}  // namespace

Plan random_plan(std::uint64_t seed, bool is_in_source_form) {
  Plan plan = make_plan(seed, false);
  plan.is_in_source_form = is_in_source_form;
  return plan;
}

std::string Plan::describe() const {
  std::string text =
      fmt::format("seed {}: {} chips, {} links{}, skew {} and {}", seed, shape.chips, shape.links,
                  shape.is_ring ? " in a ring" : "", start_skew_cycles, program_skew_cycles);
  for (const Generation& generation : generations) {
    text += "; program:";
    for (const LinkPlan& link : generation.links) {
      text += fmt::format(" link {} {} {} {}", link.link, link.is_data_mover ? "mover" : "bare",
                          link.sync == ChannelSync::merged ? "merged" : "separate",
                          link.acknowledges ? "acknowledged" : "plain");
      for (const ChannelPlan& channel : link.channels) {
        text += fmt::format(" [{}{} of {} slots, {}]", channel.is_forward ? ">" : "<",
                            channel.is_exchanged ? "x" : "", channel.slots, channel.sizes.size());
      }
    }
  }
  return text;
}

// --- mistakes -----------------------------------------------------------------------------------

std::string_view name_of(Mistake mistake) {
  switch (mistake) {
    case Mistake::none: return "none";
    case Mistake::missing_handshake: return name_of(Hazard::missing_handshake);
    case Mistake::missing_teardown: return name_of(Hazard::missing_teardown);
    case Mistake::source_overwritten: return name_of(Hazard::source_overwritten);
    case Mistake::sync_before_payload: return name_of(Hazard::sync_before_payload);
    case Mistake::acknowledgement_from_channel_word:
      return name_of(Hazard::acknowledgement_from_channel_word);
    case Mistake::semaphore_cleared_after_notification:
      return name_of(Hazard::semaphore_cleared_after_notification);
    case Mistake::two_workers_on_one_channel: return name_of(Hazard::two_workers_on_one_channel);
    case Mistake::buffer_chain_too_small: return "deadlock";
    case Mistake::link_down_without_routing: return name_of(Hazard::link_down_without_routing);
  }
  return "";
}

namespace {

// More messages, if there are not as many.
void lengthen(Random& random, ChannelPlan& channel, std::size_t messages) {
  while (channel.sizes.size() < messages) {
    channel.sizes.push_back(
        static_cast<std::uint32_t>(16 * random.between(1, channel.size_bytes_max / 16)));
  }
}

// A link with channels of this kind.
LinkPlan& link_of_kind(Plan& plan, Random& random, bool is_data_mover, std::size_t generation) {
  std::vector<LinkPlan>& links = plan.generations[generation].links;
  std::vector<LinkPlan*> fitting;
  for (LinkPlan& link : links) {
    const bool has_own = std::ranges::any_of(
        link.channels, [](const ChannelPlan& channel) { return !channel.is_exchanged; });
    if (link.is_data_mover == is_data_mover && has_own) fitting.push_back(&link);
  }
  if (!fitting.empty()) return *any_of(random, fitting);
  // The first link gets one of its own in place of what it has.
  FreeWorkers workers(plan, random);
  plan.generations[generation] = {};
  LinkPlan& link = plan.generations[generation].links.emplace_back();
  link.is_data_mover = is_data_mover;
  while (link.channels.empty()) {
    if (is_data_mover) {
      add_mover_channels(plan, link, random, workers);
    } else {
      add_bare_channels(link, random);
    }
  }
  return link;
}

ChannelPlan& own_channel(LinkPlan& link, Random& random) {
  std::vector<ChannelPlan*> own;
  for (ChannelPlan& channel : link.channels) {
    if (!channel.is_exchanged) own.push_back(&channel);
  }
  return *any_of(random, own);
}

std::vector<Core> senders_of(const Plan& plan, const LinkPlan& link) {
  std::vector<Core> cores;
  for (const bool is_first : {true, false}) {
    if (std::ranges::any_of(link.channels, [&](const ChannelPlan& channel) {
          return channel.is_forward == is_first;
        })) {
      cores.push_back(ethernet_core(plan, link, is_first));
    }
  }
  return cores;
}

// A mistake of the kernels on the Ethernet cores.
Expected inject_into_bare(Plan& plan, Mistake mistake, Random& random, std::size_t generation) {
  LinkPlan& link = link_of_kind(plan, random, false, generation);
  link.mistake = mistake;
  link.mistaken_channel = random.below(link.channels.size());
  ChannelPlan& channel = link.channels[link.mistaken_channel];
  const bool is_forward = channel.is_forward;
  const Core sender = ethernet_core(plan, link, is_forward);
  const Core receiver = ethernet_core(plan, link, !is_forward);
  switch (mistake) {
    case Mistake::source_overwritten:
      lengthen(random, channel, 2);
      link.mistaken_message = 1 + random.below(channel.sizes.size() - 1);
      return {std::string(name_of(mistake)), {sender}};
    case Mistake::sync_before_payload:
      link.mistaken_message = random.below(channel.sizes.size());
      // An acknowledgement would free a source that has not arrived either.
      if (link.sync == ChannelSync::merged) link.acknowledges = false;
      return {std::string(name_of(mistake)),
              {link.sync == ChannelSync::separate ? sender : receiver}};
    case Mistake::acknowledgement_from_channel_word:
      link.sync = ChannelSync::separate;
      link.acknowledges = true;
      link.mistaken_message = random.below(channel.sizes.size());
      return {std::string(name_of(mistake)), {receiver}};
    default: return {std::string(name_of(mistake)), {sender}};
  }
}

// For another kernel, on another core of the chip than this one.
WorkerPlace free_place(const Plan& plan, const Plan::Generation& generation, const Core& not_here) {
  std::set<std::pair<Coordinate, int>> taken;
  for (const LinkPlan& link : generation.links) {
    for (const ChannelPlan& channel : link.channels) {
      if (sending_chip(plan, link, channel) == not_here.chip) {
        taken.emplace(channel.sender.core, channel.sender.noc_index);
      }
      if (receiving_chip(plan, link, channel) == not_here.chip) {
        taken.emplace(channel.receiver.core, channel.receiver.noc_index);
      }
    }
  }
  for (const WorkerPlace& place : worker_places()) {
    if (place.core != not_here.at && !taken.contains({place.core, place.noc_index})) return place;
  }
  throw std::logic_error("all workers have kernels");
}

// A mistake of a worker of a data mover; its channel has one slot.
Expected inject_into_worker(Plan& plan, Mistake mistake, Random& random, std::size_t generation) {
  LinkPlan& link = link_of_kind(plan, random, true, generation);
  ChannelPlan& channel = own_channel(link, random);
  channel.mistake = mistake;
  channel.slots = 1;
  lengthen(random, channel, 2);
  const Core sender{sending_chip(plan, link, channel), channel.sender.core};
  const Core receiver{receiving_chip(plan, link, channel), channel.receiver.core};
  const std::string hazard(name_of(mistake));
  if (mistake == Mistake::source_overwritten) {
    channel.mistaken_message = 1 + random.below(channel.sizes.size() - 1);
    return {hazard, {sender}};
  }
  if (mistake == Mistake::semaphore_cleared_after_notification) {
    channel.is_receivers_mistake = chance(random, 0.5);
    channel.mistaken_message = random.below(channel.sizes.size() - 1);  // another one follows
    return {hazard, {channel.is_receivers_mistake ? receiver : sender}};
  }
  std::erase_if(plan.generations[generation].pairs,
                [&](const WorkerPair& pair) { return pair.chip == sender.chip; });
  channel.second_sender = free_place(plan, plan.generations[generation], sender);
  channel.second_sender_start = random.between(0, 20'000);
  return {hazard, {sender, {sender.chip, channel.second_sender.core}}};
}

Expected inject_deadlock(Plan& plan, std::uint64_t seed, Random& random) {
  const bool is_in_source_form = plan.is_in_source_form;
  plan = make_plan(seed, true);
  plan.is_in_source_form = is_in_source_form;
  plan.link_faults.clear();
  // Around the ring all workers are in the cycle; between two chips it is that of a worker and its
  // mover.
  Expected expected{"deadlock", {}, plan.shape.is_ring};
  for (LinkPlan& link : plan.generations.front().links) {
    for (ChannelPlan& channel : link.channels) {
      if (!channel.is_exchanged) continue;
      const auto slots = static_cast<std::size_t>(channel.slots);
      // At least as many as all buffers hold, and one more.
      lengthen(random, channel, 2 * slots + 1 + random.below(3));
      expected.cores.push_back({sending_chip(plan, link, channel), channel.sender.core});
    }
  }
  return expected;
}

// The link goes down when half of the messages are through, and one of its cores never yields.
Expected inject_outage(Plan& plan, Random& random, std::size_t generation) {
  plan.link_faults.clear();
  LinkPlan& link = link_of_kind(plan, random, chance(random, 0.5), generation);
  link.mistake = Mistake::link_down_without_routing;
  link.sync = ChannelSync::merged;
  link.is_first_ends_mistake = chance(random, 0.5);
  for (ChannelPlan& channel : link.channels) {
    if (channel.is_exchanged) continue;
    channel.slots = 1;
    lengthen(random, channel, 4);
  }
  const std::size_t number = link.link;
  const Expected expected{std::string(name_of(link.mistake)),
                          {ethernet_core(plan, link, link.is_first_ends_mistake)}};
  plan.link_faults.resize(links_of(plan));
  plan.link_faults[number].drop_at = run(plan).half_time;
  return expected;
}

}  // namespace

Expected inject(Plan& plan, Mistake mistake, std::uint64_t seed) {
  Random random(seed, fmt::format("mistake {}", name_of(mistake)));
  const std::size_t generation = random.below(plan.generations.size());
  switch (mistake) {
    case Mistake::none: return {"none", {}};
    case Mistake::missing_handshake: {
      LinkPlan& link = link_of_kind(plan, random, chance(random, 0.5), generation);
      link.mistake = mistake;
      return {std::string(name_of(mistake)), senders_of(plan, link)};
    }
    case Mistake::source_overwritten:
      if (chance(random, 0.5)) return inject_into_worker(plan, mistake, random, generation);
      return inject_into_bare(plan, mistake, random, generation);
    case Mistake::missing_teardown:
    case Mistake::sync_before_payload:
    case Mistake::acknowledgement_from_channel_word:
      return inject_into_bare(plan, mistake, random, generation);
    case Mistake::semaphore_cleared_after_notification:
      return inject_into_worker(plan, mistake, random, generation);
    case Mistake::two_workers_on_one_channel: return inject_into_worker(plan, mistake, random, 0);
    case Mistake::buffer_chain_too_small: return inject_deadlock(plan, seed, random);
    case Mistake::link_down_without_routing: return inject_outage(plan, random, generation);
  }
  return {};
}

bool is_right(const Outcome& outcome, const Expected& expected) {
  if (outcome.hazard != expected.hazard) return false;
  const auto is_named = [&](const Core& core) {
    return std::ranges::find(outcome.cores, core) != outcome.cores.end();
  };
  if (expected.names_all) return std::ranges::all_of(expected.cores, is_named);
  return expected.hazard == "none" || std::ranges::any_of(expected.cores, is_named);
}

}  // namespace towpath::tenstorrent::kernels
