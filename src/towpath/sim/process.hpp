// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <string>
#include <string_view>

#include "towpath/sim/stack_pool.hpp"
#include "towpath/sim/stack_switch.hpp"

namespace towpath::sim {

class Simulation;

// A fiber: code with its own stack that can wait at any point. Created by Simulation::spawn(). The
// reference is valid until the body returns.
//
// An exception unwinds the body if its simulation is destroyed first. A `catch (...)` in it must
// therefore rethrow.
//
// Aligned so that a switch touches only one of its cache lines.
class alignas(64) Process {
 public:
  // Called by Simulation::spawn().
  Process(Simulation& simulation, std::string name, std::function<void()> body, StackPool& stacks,
          std::size_t stack_bytes);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  const std::string& name() const { return name_; }
  // The argument of suspend(), while suspended.
  std::string_view waiting_for() const { return waiting_for_; }
  bool is_suspended() const { return state_ == State::suspended; }

 private:
  friend class Simulation;

  enum class State : std::uint8_t { scheduled, running, suspended, finished };

  // The C++ runtime keeps exception state per thread. These two words are swapped at every switch,
  // so that a body can wait in a handler.
  using ExceptionState = std::array<std::uint64_t, 2>;

  void run_body();
  void run_until_it_waits();
  void wait();
  void prefetch_stack() const;
  void exchange_exception_state();

  boost::context::fiber here_;   // resume point; empty while running and after the end
  boost::context::fiber there_;  // the context that resumed it, while running
  std::uintptr_t frame_ = 0;     // stack address at which it waits
  Simulation* simulation_;
  ExceptionState exception_state_{};
  State state_ = State::scheduled;
  bool is_unwinding_ = false;
  [[no_unique_address]] StackSwitch switch_;
  std::string_view waiting_for_;
  std::list<Process>::iterator place_;
  std::string name_;
  std::function<void()> body_;
  std::exception_ptr error_;
};

}  // namespace towpath::sim
