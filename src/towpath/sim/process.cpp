// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/process.hpp"

#include <cxxabi.h>

#include <cstring>
#include <utility>

namespace towpath::sim {

namespace {

// Unwinds the stack of a process when its simulation is destroyed.
struct Unwinding {};

// Adapts StackPool to Boost's stack allocator, which each fiber stores on its stack.
class PooledStack {
 public:
  PooledStack(StackPool& stacks, std::size_t stack_bytes, StackSwitch& stack_switch)
      : stacks_(&stacks), stack_bytes_(stack_bytes), switch_(&stack_switch) {}
  boost::context::stack_context allocate() {
    const boost::context::stack_context stack = stacks_->acquire(stack_bytes_);
    switch_->set_stack(stack);
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) { stacks_->release(stack); }

 private:
  StackPool* stacks_;
  std::size_t stack_bytes_;
  StackSwitch* switch_;
};

}  // namespace

Process::Process(Simulation& simulation, std::string name, std::function<void()> body,
                 StackPool& stacks, std::size_t stack_bytes)
    : simulation_(&simulation), name_(std::move(name)), body_(std::move(body)) {
  here_ = boost::context::fiber(std::allocator_arg, PooledStack(stacks, stack_bytes, switch_),
                                [this](boost::context::fiber&& caller) {
                                  switch_.after_entering();
                                  there_ = std::move(caller);
                                  run_body();
                                  switch_.before_finishing();
                                  return std::move(there_);
                                });
}

Process::~Process() {
  if (!here_) return;
  is_unwinding_ = true;
  run_until_it_waits();
}

void Process::run_body() {
  try {
    if (!is_unwinding_) body_();
  } catch (const Unwinding&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  state_ = State::finished;
}

void Process::run_until_it_waits() {
  state_ = State::running;
  exchange_exception_state();
  switch_.before_entering();
  here_ = std::move(here_).resume();
  switch_.after_leaving();
  exchange_exception_state();
}

void Process::wait() {
  frame_ = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  switch_.before_leaving();
  there_ = std::move(there_).resume();
  switch_.after_entering();
  if (is_unwinding_) [[unlikely]]
    throw Unwinding();
}

// A switch touches the lines around the frame of wait(): saved registers below, callers' frames
// above.
void Process::prefetch_stack() const {
  constexpr std::uintptr_t kLineBytes = 64;
  const std::uintptr_t first = frame_ - 3 * kLineBytes;
  for (std::uintptr_t line = 0; line < 6; ++line) {
    __builtin_prefetch(reinterpret_cast<const void*>(first + line * kLineBytes), 1);
  }
}

void Process::exchange_exception_state() {
  ExceptionState current;
  void* const runtime = abi::__cxa_get_globals();
  std::memcpy(current.data(), runtime, sizeof(current));
  std::memcpy(runtime, exception_state_.data(), sizeof(current));
  exception_state_ = current;
}

}  // namespace towpath::sim
