// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "towpath/sim/random.hpp"
#include "towpath/sim/simulation.hpp"
#include "towpath/sim/timer.hpp"

namespace towpath::ethernet {

class Port;

// Faults of a link; by default it has none.
struct LinkFaults {
  double frame_loss = 0;           // probability that a frame, or an acknowledgement, is lost
  Time drop_at = Time::max();      // time of the first drop; default: never
  Time drop_period = Time::max();  // time from one drop to the next; default: it drops only once
  Time dead_time = Time();         // time from a drop until training is possible; Time::max():
                                   // never
  std::optional<Time> training_time{};  // default: from the parameters of its ports

  bool operator==(const LinkFaults&) const = default;
};

// The line between two ports: up or down.
//
// It is up at first. A drop loses the frame on the wire, and no frame crosses until the line has
// been trained: the software of both ends must call run_routing(), and the dead time must have
// passed. The line is up again training_time later, and the ports continue with the first
// unacknowledged frame.
//
// Wrong: a port whose core never calls run_routing(). Its link stays down, and outage() reports it.
//
// The ports of a link with faults share its state, so they must be in one simulation.
//
// A future drop does not keep an otherwise idle simulation running. A line without frames since its
// last drop does not drop again.
class Link {
 public:
  // Joins two unconnected ports; all of them live as long as the simulation runs. Throws
  // std::invalid_argument if a port is already connected or joined to itself, if the loss is not a
  // probability below 1, or if the link would drop before it is up again.
  Link(sim::Simulation& simulation, Port& a, Port& b, const LinkFaults& faults = {});
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // "link between Ethernet core (9, 0) of chip 0 and ...", with the ports' names.
  const std::string& name() const { return name_; }
  // In the order of the constructor's arguments.
  const std::array<Port*, 2>& ports() const { return ports_; }
  Port& far_end(const Port& port) const { return *ports_[1 - index_of(port)]; }
  bool is_up() const { return !down_since_.has_value(); }
  std::optional<Time> down_since() const { return down_since_; }
  // True if an end's software has called run_routing() since the link went down.
  bool is_ready_to_train(const Port& port) const { return is_ready_[index_of(port)]; }
  // True if it is down without training in progress. It then stays down until run_routing().
  bool is_stuck() const { return !is_up() && !training_.is_armed(); }
  const LinkFaults& faults() const { return faults_; }
  bool has_faults() const { return has_faults_; }
  std::uint64_t drops() const { return drops_; }
  // Total down time of all drops.
  Time down_time() const;
  // Start and cause of the current outage; empty if the link is up.
  std::string outage() const;

 private:
  friend class Port;

  std::size_t index_of(const Port& port) const { return ports_[0] == &port ? 0 : 1; }
  bool loses_frame() { return faults_.frame_loss > 0 && random_.uniform() < faults_.frame_loss; }
  bool may_lose_frames() const { return faults_.frame_loss > 0; }
  void on_frame_sent();
  void say_ready(const Port& port);
  void check_faults() const;
  Time training_time() const;
  void arm_drop();
  void drop();
  void come_up();
  static void dropped(void* link) { static_cast<Link*>(link)->drop(); }
  static void trained(void* link) { static_cast<Link*>(link)->come_up(); }

  sim::Simulation& simulation_;
  std::array<Port*, 2> ports_;
  LinkFaults faults_;
  bool has_faults_;
  std::string name_;
  sim::Random random_;

  std::optional<Time> down_since_;
  Time dead_until_;
  std::array<bool, 2> is_ready_{};
  bool is_used_ = false;  // since the last drop
  sim::Timer drop_;
  sim::Timer training_;

  std::uint64_t drops_ = 0;
  Time earlier_down_time_;
};

}  // namespace towpath::ethernet
