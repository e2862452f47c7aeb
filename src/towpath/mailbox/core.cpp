// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/mailbox/core.hpp"

#include <algorithm>
#include <utility>

namespace towpath::mailbox {

Core::Core(sim::Simulation& simulation, const machine::MailboxCluster& cluster, std::string name)
    : simulation_(simulation),
      page_walks_(cluster.page_walks),
      name_(std::move(name)),
      clock_(cluster.core_clock),
      page_walk_random_(simulation.random(name_ + " page walks")),
      figures_(cluster.interruptions) {
  for (const machine::InterruptionParameters& figures : figures_) {
    interruptions_.push_back(
        {&figures, simulation.random(name_ + " " + figures.name), Cycles(), Cycles()});
    draw(interruptions_.back(), now());
  }
}

void Core::draw(Interruptions& interruptions, Cycles after) const {
  const machine::InterruptionParameters& figures = *interruptions.figures;
  interruptions.begin = after + cycles_of(interruptions.random.exponential(figures.interval_mean));
  interruptions.duration = cycles_of(Time::from_ps(
      interruptions.random.between(figures.duration_min.ps(), figures.duration_max.ps())));
}

Core::Interruptions* Core::next() {
  if (!is_interruptible_ || interruptions_.empty()) return nullptr;
  return &*std::ranges::min_element(interruptions_, {}, &Interruptions::begin);
}

Cycles Core::end_of(Cycles begin, std::int64_t cycles) {
  Cycles end = begin + Cycles(cycles);
  for (Interruptions* next_one = next(); next_one != nullptr && next_one->begin < end;
       next_one = next()) {
    const Cycles over = next_one->begin + next_one->duration;
    // Only the remainder of an interruption that began before the work delays it.
    const Cycles from = std::max(next_one->begin, begin);
    if (over > from) end = end + (over - from);
    draw(*next_one, over);
    // Interruptions run one at a time. Later ones wait.
    for (Interruptions& other : interruptions_) other.begin = std::max(other.begin, over);
  }
  return end;
}

Cycles Core::polled_after(Cycles polled, std::int64_t period, Cycles seen_from) {
  while (polled < seen_from) {
    // Polls up to the next interruption are evenly spaced.
    const Interruptions* const interruption = next();
    const Cycles calm =
        interruption == nullptr ? seen_from : std::min(seen_from, interruption->begin);
    const std::int64_t polls = std::max<std::int64_t>((calm - polled).count() / period, 0);
    polled = polled + Cycles(polls * period);
    if (polled < seen_from) polled = end_of(polled, period);
  }
  return polled;
}

void Core::store_to_array() {
  if (page_walks_.probability == 0) return;
  if (page_walk_random_.uniform() >= page_walks_.probability) return;
  spend(
      static_cast<int>(page_walk_random_.between(page_walks_.cycles_min, page_walks_.cycles_max)));
}

}  // namespace towpath::mailbox
