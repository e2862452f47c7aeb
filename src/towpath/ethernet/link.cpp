// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/ethernet/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "towpath/ethernet/port.hpp"
#include "towpath/sim/hardware_priority.hpp"

namespace towpath::ethernet {

namespace {

std::string name_of(const Port& a, const Port& b) {
  return fmt::format("link between {} and {}", a.name(), b.name());
}

}  // namespace

Link::Link(sim::Simulation& simulation, Port& a, Port& b, const LinkFaults& faults)
    : simulation_(simulation),
      ports_{&a, &b},
      faults_(faults),
      has_faults_(faults != LinkFaults{}),
      name_(name_of(a, b)),
      random_(simulation.random(name_)) {
  check_faults();
  if (&a == &b) {
    throw std::invalid_argument(fmt::format("{} cannot be connected to itself", a.name()));
  }
  for (Port* const port : ports_) {
    if (!port->is_connected()) continue;
    throw std::invalid_argument(
        fmt::format("{} is already connected to {}; a port can have only one link", port->name(),
                    port->far_end()->name()));
  }
  for (Port* const port : ports_) port->link_ = this;
  if (faults_.drop_at < Time::max()) {
    drop_.arm_in_background(simulation_, faults_.drop_at, &dropped, this, sim::kHardwarePriority);
  }
}

Time Link::training_time() const {
  return faults_.training_time.value_or(ports_[0]->figures_.training_time);
}

void Link::check_faults() const {
  if (!(faults_.frame_loss >= 0 && faults_.frame_loss < 1)) {
    throw std::invalid_argument(
        fmt::format("the {} has a frame loss of {}; it must be a probability from 0 to below 1",
                    name_, faults_.frame_loss));
  }
  if (faults_.drop_at < simulation_.now()) {
    throw std::invalid_argument(fmt::format("the {} first drops at {} ns, but it is {} ns already",
                                            name_, faults_.drop_at.ns(), simulation_.now().ns()));
  }
  if (faults_.dead_time < Time()) {
    throw std::invalid_argument(
        fmt::format("the {} is dead for {} ns after a drop; it must be at least 0", name_,
                    faults_.dead_time.ns()));
  }
  if (training_time() < Time()) {
    throw std::invalid_argument(fmt::format("the {} is trained for {} ns; it must be at least 0",
                                            name_, training_time().ns()));
  }
  if (faults_.drop_period < Time::max() &&
      faults_.dead_time >= faults_.drop_period - training_time()) {
    throw std::invalid_argument(
        fmt::format("the {} drops every {} ns, before it is up again: it is dead for {} ns and "
                    "trained for {} ns",
                    name_, faults_.drop_period.ns(), faults_.dead_time.ns(), training_time().ns()));
  }
}

Time Link::down_time() const {
  if (is_up()) return earlier_down_time_;
  return earlier_down_time_ + (simulation_.now() - *down_since_);
}

std::string Link::outage() const {
  if (is_up()) return {};
  std::string sentence = fmt::format("the {} is down since {} ns", name_, down_since_->ns());
  if (dead_until_ == Time::max()) return sentence + " and cannot be trained again";
  if (training_.is_armed()) return sentence + " and is being trained";
  if (!is_ready_[0] && !is_ready_[1]) return sentence + ", and neither end has called run_routing";
  const Port& silent = *ports_[is_ready_[0] ? 1 : 0];
  return sentence + fmt::format(", and {} has not called run_routing", silent.name());
}

void Link::on_frame_sent() {
  if (!has_faults_) return;
  is_used_ = true;
  if (drops_ > 0 && !drop_.is_armed()) arm_drop();
}

// Arms the timer for the next drop of the schedule.
void Link::arm_drop() {
  if (faults_.drop_period == Time::max()) return;
  const std::int64_t period = faults_.drop_period.ps();
  const std::int64_t passed = (simulation_.now() - faults_.drop_at).ps() / period;
  const Time next = faults_.drop_at + faults_.drop_period * (passed + 1);
  drop_.arm_in_background(simulation_, next, &dropped, this, sim::kHardwarePriority);
}

// A frame has crossed the line since the previous drop, so the line has been up.
void Link::drop() {
  if (drops_ > 0 && !is_used_) return;
  ++drops_;
  is_used_ = false;
  is_ready_ = {};
  down_since_ = simulation_.now();
  dead_until_ = simulation_.from_now(faults_.dead_time);
  arm_drop();
  for (Port* const port : ports_) port->on_link_down();
}

void Link::say_ready(const Port& port) {
  if (is_up() || training_.is_armed()) return;
  is_ready_[index_of(port)] = true;
  if (!is_ready_[0] || !is_ready_[1] || dead_until_ == Time::max()) return;
  const Time begin = std::max(simulation_.now(), dead_until_);
  training_.arm(simulation_, begin + training_time(), &trained, this, sim::kHardwarePriority);
}

void Link::come_up() {
  const Time since = *down_since_;
  earlier_down_time_ += simulation_.now() - since;
  down_since_.reset();
  is_ready_ = {};
  if (sim::Trace* const trace = simulation_.trace(); trace != nullptr) {
    trace->span(trace->track("ethernet " + name_), trace->name("down"), since, simulation_.now());
  }
  for (Port* const port : ports_) port->on_link_up();
}

}  // namespace towpath::ethernet
