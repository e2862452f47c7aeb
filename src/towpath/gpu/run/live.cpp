// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/run/live.hpp"

#include <fmt/format.h>

#include "towpath/gpu/kernel_limit.hpp"
#include "towpath/os/spin_wait.hpp"

namespace towpath::gpu {

namespace {

using namespace literals;

// A kernel may read one word a few times before it does other work.
constexpr int kLooksMax = 64;
constexpr Time kBetweenLooks = 5_ms;
// Until the PEs have determined together that none of them can continue.
constexpr Time kForTheMeeting = 1000_ms;

}  // namespace

LivePe::LivePe(transport::LiveTransport& transport, const std::filesystem::path& object,
               const LiveOptions& options)
    : transport_(transport),
      simulation_(std::make_unique<sim::Simulation>()),
      meeting_(transport),
      run_{.simulation = *simulation_,
           .stack = stack_,
           .ranks = transport.ranks(),
           .ranks_per_host = transport.ranks(),
           .pes = std::vector<Pe*>(static_cast<std::size_t>(transport.ranks())),
           .timeout = options.timeout,
           .profile = options.profile,
           .meeting = &meeting_,
           .kernel_limit = options.kernel_limit} {
  pe_ = std::make_unique<Pe>(
      run_, transport, std::make_unique<LoadedObject>(object),
      Pe::Options{.heap_bytes = options.heap_bytes, .gpu_name = "threads of this host"});
}

// Unwinds a host program that is still running while its PE exists.
LivePe::~LivePe() {
  run_.is_over = true;
  pe_->host().close();
  simulation_.reset();
}

int LivePe::run_main(const std::vector<std::string>& arguments) {
  finish([&] { pe_->host().start_main(arguments); });
  return pe_->host().status();
}

void LivePe::run(const std::function<void(Pe&)>& body) {
  finish([&] { pe_->host().start([this, &body] { body(*pe_); }); });
}

// A PE that has failed stays in this state. Static objects of its program are destroyed later, and
// may still call it.
void LivePe::finish(const std::function<void()>& start) {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  try {
    start();
    advance();
  } catch (...) {
    failure_ = std::current_exception();
    run_.is_over = true;
    pe_->host().close();
    throw;
  }
}

// Names a PE that is stopped, or has not checked its peers for a while.
void LivePe::give_up() {
  pe_->hazards().check_overshot();
  constexpr Time kLookFor = Time::from_seconds(0.2);
  const std::string waits = fmt::format("PE {} has waited for {:g} s; {}", pe_->rank(),
                                        run_.timeout.seconds(), joined(pe_->waiting()));
  try {
    transport_.block_until([] { return false; }, kLookFor, transport::kNoPeer,
                           [] { return std::string("a sign of life"); });
  } catch (const transport::TransportError& error) {
    if (error.peer() != transport::kNoPeer) {
      throw transport::TransportError(error.kind(), error.peer(),
                                      fmt::format("{}; {}", waits, error.what()));
    }
  }
  throw KernelError(KernelError::Kind::deadlock, waits);
}

Time LivePe::patience() const {
  if (looks_ == 0) return run_.timeout;
  return looks_ < kLooksMax ? kBetweenLooks : kForTheMeeting;
}

bool LivePe::step() {
  const bool has_stepped = simulation_->step();
  if (run_.failure != nullptr) std::rethrow_exception(run_.failure);
  if (has_stepped) return true;
  if (transport_.progress()) {
    looks_ = 0;
    return true;
  }
  if (!meeting_.is_inside() || !meeting_.is_complete()) return false;
  pe_->host().wake();
  return true;
}

// Checks all memory that threads poll, and the other PEs.
void LivePe::look_around(Time now) {
  const std::size_t polling = pe_->pollers().count();
  pe_->pollers().look_again();
  if (pe_->pollers().count() < polling) looks_ = 0;
  if (!pe_->pollers().empty() && looks_ < kLooksMax) return;
  meeting_.note_pass();
  meeting_.check(now, [this] { return joined(pe_->waiting()); });
}

void LivePe::advance() {
  const KernelLimit limit(run_);
  os::SpinWait spin_wait(true);
  Time progressed = transport_.now();
  while (!pe_->host().is_finished()) {
    if (step()) {
      meeting_.note_progress();
      spin_wait.renew();
      progressed = Time::max();
      continue;
    }
    if (spin_wait.spin()) continue;
    const Time now = transport_.now();
    if (progressed == Time::max()) progressed = now;
    look_around(now);
    spin_wait.rest_or_nap(now);
    if (now - progressed < patience()) continue;
    if (looks_ == kLooksMax) give_up();
    ++looks_;
    progressed = pe_->pollers().wake_all() > 0 ? Time::max() : now;
  }
}

}  // namespace towpath::gpu
