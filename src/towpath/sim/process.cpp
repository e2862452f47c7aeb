// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/sim/process.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace towpath::sim {

namespace {

// Boost's stack allocator, which a fiber keeps on its own stack.
class PooledStack {
 public:
  PooledStack(StackPool& stacks, std::size_t stack_bytes)
      : stacks_(&stacks), stack_bytes_(stack_bytes) {}
  boost::context::stack_context allocate() { return stacks_->acquire(stack_bytes_); }
  void deallocate(boost::context::stack_context& stack) { stacks_->release(stack); }

 private:
  StackPool* stacks_;
  std::size_t stack_bytes_;
};

}  // namespace

Process::Process(Simulation& simulation, std::string name, std::function<void()> body,
                 StackPool& stacks, std::size_t stack_bytes)
    : simulation_(&simulation), name_(std::move(name)), body_(std::move(body)) {
  here_ = boost::context::fiber(
      std::allocator_arg, PooledStack(stacks, stack_bytes), [this](boost::context::fiber&& caller) {
        there_ = std::move(caller);
        try {
          body_();
        } catch (const boost::context::detail::forced_unwind&) {
          throw;
        } catch (...) {
          error_ = std::current_exception();
        }
        state_ = State::finished;
        return std::move(there_);
      });
}

Process::~Process() {
  if (!here_) return;
  exchange_exception_state();
  here_ = boost::context::fiber();
  exchange_exception_state();
}

void Process::run_until_it_waits() {
  state_ = State::running;
  exchange_exception_state();
  here_ = std::move(here_).resume();
  exchange_exception_state();
}

void Process::wait() { there_ = std::move(there_).resume(); }

void Process::exchange_exception_state() {
  ExceptionState current;
  void* const runtime = abi::__cxa_get_globals();
  std::memcpy(current.data(), runtime, sizeof(current));
  std::memcpy(runtime, exception_state_.data(), sizeof(current));
  exception_state_ = current;
}

}  // namespace towpath::sim
