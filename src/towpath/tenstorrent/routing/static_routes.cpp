// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/routing/static_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace towpath::tenstorrent::routing {

namespace {

using machine::EthernetEnd;

template <typename... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw std::invalid_argument(fmt::format(format, std::forward<Arguments>(arguments)...));
}

std::string name_of(EthernetEnd end) { return fmt::format("{}/{}", end.chip, end.channel); }

const Hop& hop_of(std::span<const Route> routes, HopName name) {
  return routes[static_cast<std::size_t>(name.route)][static_cast<std::size_t>(name.hop)];
}

std::string name_of(std::span<const Route> routes, HopName name) {
  const Hop& hop = hop_of(routes, name);
  return fmt::format("hop {} of route {} ({} to {})", name.hop, name.route, name_of(hop.from),
                     name_of(hop.to));
}

const char* name_of(Command::Kind kind) { return kind == Command::Kind::send ? "send" : "receive"; }

// Numbers the hops of all routes consecutively.
class HopNumbers {
 public:
  explicit HopNumbers(std::span<const Route> routes) : routes_(routes) {
    for (const Route& route : routes) {
      first_.push_back(names_.size());
      for (int hop = 0; hop < static_cast<int>(route.size()); ++hop) {
        names_.push_back({static_cast<int>(first_.size()) - 1, hop});
      }
    }
  }

  std::size_t size() const { return names_.size(); }
  HopName name(std::size_t number) const { return names_[number]; }
  std::size_t number(HopName name) const {
    return first_[static_cast<std::size_t>(name.route)] + static_cast<std::size_t>(name.hop);
  }
  bool holds(HopName name) const {
    return name.route >= 0 && static_cast<std::size_t>(name.route) < routes_.size() &&
           name.hop >= 0 &&
           static_cast<std::size_t>(name.hop) <
               routes_[static_cast<std::size_t>(name.route)].size();
  }
  bool is_last(HopName name) const {
    return static_cast<std::size_t>(name.hop) + 1 ==
           routes_[static_cast<std::size_t>(name.route)].size();
  }

 private:
  std::span<const Route> routes_;
  std::vector<std::size_t> first_;
  std::vector<HopName> names_;
};

void check_lists(std::span<const Route> routes, std::span<const CoreCommands> lists,
                 const HopNumbers& numbers) {
  std::vector<int> seen[2] = {std::vector<int>(numbers.size()), std::vector<int>(numbers.size())};
  for (const CoreCommands& list : lists) {
    for (const Command& command : list.commands) {
      if (!numbers.holds(command.of)) {
        fail("the list of {} names hop {} of route {}, which does not exist", name_of(list.core),
             command.of.hop, command.of.route);
      }
      const Hop& hop = hop_of(routes, command.of);
      const bool is_send = command.kind == Command::Kind::send;
      if ((is_send ? hop.from : hop.to) != list.core) {
        fail("the list of {} has the command to {} {}, which belongs to {}", name_of(list.core),
             name_of(command.kind), name_of(routes, command.of),
             name_of(is_send ? hop.from : hop.to));
      }
      if (++seen[is_send ? 0 : 1][numbers.number(command.of)] > 1) {
        fail("the list of {} has the command to {} {} twice", name_of(list.core),
             name_of(command.kind), name_of(routes, command.of));
      }
    }
  }
  for (std::size_t number = 0; number < numbers.size(); ++number) {
    for (const Command::Kind kind : {Command::Kind::send, Command::Kind::receive}) {
      if (seen[kind == Command::Kind::send ? 0 : 1][number] == 0) {
        fail("no list has the command to {} {}", name_of(kind),
             name_of(routes, numbers.name(number)));
      }
    }
  }
}

// By hop: its waits.
std::vector<std::vector<Wait>> waits_of(std::span<const Route> routes,
                                        std::span<const CoreCommands> lists,
                                        const HopNumbers& numbers, std::size_t buffers) {
  std::vector<std::vector<Wait>> waits(numbers.size());
  const auto add = [&](const Wait& wait) { waits[numbers.number(wait.hop)].push_back(wait); };
  for (std::size_t number = 0; number < numbers.size(); ++number) {
    const HopName name = numbers.name(number);
    if (name.hop > 0) {
      add({name, {name.route, name.hop - 1}, WaitReason::route, hop_of(routes, name).from});
    }
  }
  for (const CoreCommands& list : lists) {
    std::vector<HopName> received;
    for (std::size_t place = 0; place < list.commands.size(); ++place) {
      const Command& command = list.commands[place];
      if (place > 0) {
        add({command.of, list.commands[place - 1].of, WaitReason::order, list.core});
      }
      if (command.kind == Command::Kind::send) continue;
      if (received.size() >= buffers) {
        const HopName earlier = received[received.size() - buffers];
        if (!numbers.is_last(earlier)) {
          add({command.of, {earlier.route, earlier.hop + 1}, WaitReason::buffer, list.core});
        }
      }
      received.push_back(command.of);
    }
  }
  return waits;
}

// Follows one wait from each blocked hop until a hop repeats.
std::vector<Wait> cycle_of(const std::vector<std::vector<Wait>>& waits, const HopNumbers& numbers,
                           const std::vector<int>& timesteps) {
  const auto is_stuck = [&](std::size_t number) { return timesteps[number] == 0; };
  std::size_t at = 0;
  while (!is_stuck(at)) ++at;
  std::vector<Wait> way;
  std::vector<std::size_t> place(waits.size(), waits.size());
  while (place[at] == waits.size()) {
    place[at] = way.size();
    const auto next = std::find_if(waits[at].begin(), waits[at].end(), [&](const Wait& wait) {
      return is_stuck(numbers.number(wait.waits_for));
    });
    way.push_back(*next);
    at = numbers.number(next->waits_for);
  }
  way.erase(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(place[at]));
  std::rotate(
      way.begin(),
      std::min_element(way.begin(), way.end(),
                       [](const Wait& one, const Wait& other) { return one.hop < other.hop; }),
      way.end());
  return way;
}

// By hop: the first timestep after all its waits; 0 for hops blocked by a cycle.
std::vector<int> timesteps_of(const std::vector<std::vector<Wait>>& waits,
                              const HopNumbers& numbers) {
  std::vector<std::vector<std::size_t>> waiting(waits.size());
  std::vector<std::size_t> open(waits.size());
  std::vector<std::size_t> ready;
  for (std::size_t number = 0; number < waits.size(); ++number) {
    open[number] = waits[number].size();
    if (open[number] == 0) ready.push_back(number);
    for (const Wait& wait : waits[number]) {
      waiting[numbers.number(wait.waits_for)].push_back(number);
    }
  }
  std::vector<int> earliest(waits.size(), 1);
  std::vector<int> timesteps(waits.size(), 0);
  while (!ready.empty()) {
    const std::size_t number = ready.back();
    ready.pop_back();
    timesteps[number] = earliest[number];
    for (const std::size_t other : waiting[number]) {
      earliest[other] = std::max(earliest[other], timesteps[number] + 1);
      if (--open[other] == 0) ready.push_back(other);
    }
  }
  return timesteps;
}

}  // namespace

std::vector<Route> route_over_links(const machine::ChipCluster& cluster,
                                    std::span<const std::vector<int>> chip_lists) {
  std::vector<int> hops_over(cluster.links.size());
  std::vector<Route> routes;
  for (std::size_t number = 0; number < chip_lists.size(); ++number) {
    const std::vector<int>& chips = chip_lists[number];
    if (chips.size() < 2) {
      fail("route {} has {} chips; it needs at least two", number, chips.size());
    }
    Route& route = routes.emplace_back();
    for (std::size_t place = 0; place + 1 < chips.size(); ++place) {
      const int chip = chips[place];
      const int next = chips[place + 1];
      const std::vector<int> channels = cluster.channels_to(chip, next, false);
      if (chip == next || channels.empty()) {
        fail("route {} goes from chip {} to chip {}, between which no link is available", number,
             chip, next);
      }
      const auto hops = [&](int channel) -> int& {
        return hops_over[*cluster.link_at({chip, channel})];
      };
      const int channel =
          *std::min_element(channels.begin(), channels.end(),
                            [&](int one, int other) { return hops(one) < hops(other); });
      ++hops(channel);
      route.push_back({{chip, channel}, *cluster.connected({chip, channel})});
    }
  }
  return routes;
}

std::vector<int> given_order(std::span<const Route> routes) {
  std::vector<int> order(routes.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<CoreCommands> commands_in_order(std::span<const Route> routes,
                                            std::span<const int> order) {
  const std::vector<int> all = given_order(routes);
  if (!std::is_permutation(order.begin(), order.end(), all.begin(), all.end())) {
    fail("the order must name the routes 0 to {}, each once", routes.size() - 1);
  }
  std::map<EthernetEnd, std::vector<Command>> lists;
  for (const int number : order) {
    const Route& route = routes[static_cast<std::size_t>(number)];
    for (int hop = 0; hop < static_cast<int>(route.size()); ++hop) {
      const Hop& over = route[static_cast<std::size_t>(hop)];
      lists[over.from].push_back({Command::Kind::send, {number, hop}});
      lists[over.to].push_back({Command::Kind::receive, {number, hop}});
    }
  }
  std::vector<CoreCommands> commands;
  for (auto& [core, list] : lists) commands.push_back({core, std::move(list)});
  return commands;
}

Outcome execute(std::span<const Route> routes, std::span<const CoreCommands> lists,
                int buffers_per_core) {
  if (buffers_per_core < 1) {
    fail("buffers_per_core is {}; a core needs at least one", buffers_per_core);
  }
  const HopNumbers numbers(routes);
  check_lists(routes, lists, numbers);
  const auto waits = waits_of(routes, lists, numbers, static_cast<std::size_t>(buffers_per_core));
  const std::vector<int> timesteps = timesteps_of(waits, numbers);
  Outcome outcome;
  if (std::count(timesteps.begin(), timesteps.end(), 0) > 0) {
    outcome.deadlock = cycle_of(waits, numbers, timesteps);
    return outcome;
  }
  outcome.timestep_of.resize(routes.size());
  for (std::size_t number = 0; number < numbers.size(); ++number) {
    const auto route = static_cast<std::size_t>(numbers.name(number).route);
    outcome.timestep_of[route].push_back(timesteps[number]);
    outcome.timesteps = std::max(outcome.timesteps, timesteps[number]);
  }
  return outcome;
}

std::string describe_deadlock(std::span<const Route> routes, const Outcome& outcome) {
  constexpr std::size_t kShown = 8;
  if (outcome.deadlock.empty()) return "";
  std::string text = name_of(routes, outcome.deadlock.front().hop);
  for (std::size_t place = 0; place < outcome.deadlock.size(); ++place) {
    if (place == kShown) {
      return fmt::format("{}, and so on: a cycle of {}", text, outcome.deadlock.size());
    }
    const Wait& wait = outcome.deadlock[place];
    text += fmt::format("{} waits for {}", place == 0 ? "" : ", which",
                        name_of(routes, wait.waits_for));
    if (wait.reason == WaitReason::order) {
      text += fmt::format(" before it in the list of {}", name_of(wait.core));
    } else if (wait.reason == WaitReason::buffer) {
      text += fmt::format(" to free a buffer of {}", name_of(wait.core));
    } else {
      text += " to bring its packet";
    }
  }
  return text;
}

}  // namespace towpath::tenstorrent::routing
