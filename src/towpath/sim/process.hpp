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

// A body of code with a stack of its own, which may wait in the middle (a fiber). Made by
// Simulation::spawn(); the reference is valid until the body has returned.
//
// The body is unwound by an exception when its simulation is destroyed first. A `catch (...)` in it
// must therefore rethrow.
//
// Aligned so that a switch touches one line of it.
class alignas(64) Process {
 public:
  // Simulation::spawn() makes them.
  Process(Simulation& simulation, std::string name, std::function<void()> body, StackPool& stacks,
          std::size_t stack_bytes);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  const std::string& name() const { return name_; }
  // What it told suspend(), while it is suspended.
  std::string_view waiting_for() const { return waiting_for_; }
  bool is_suspended() const { return state_ == State::suspended; }

 private:
  friend class Simulation;

  enum class State : std::uint8_t { scheduled, running, suspended, finished };

  // Whether the stack is in the middle of an exception is kept by the C++ runtime per thread; the
  // two words that say so are exchanged at every switch, so that a body may wait in a handler.
  using ExceptionState = std::array<std::uint64_t, 2>;

  void run_body();
  void run_until_it_waits();
  void wait();
  void prefetch_stack() const;
  void exchange_exception_state();

  boost::context::fiber here_;   // where it goes on; empty while it runs, and in the end
  boost::context::fiber there_;  // who switched to it, while it runs
  std::uintptr_t frame_ = 0;     // where on its stack it waits
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
