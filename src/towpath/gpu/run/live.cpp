// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/run/live.hpp"

#include <fmt/format.h>

#include "towpath/gpu/kernel_limit.hpp"
#include "towpath/os/spin_wait.hpp"

namespace towpath::gpu {

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
  pe_->host().close();
  simulation_.reset();
}

int LivePe::run_main(const std::vector<std::string>& arguments) {
  pe_->host().start_main(arguments);
  finish();
  return pe_->host().status();
}

void LivePe::run(const std::function<void(Pe&)>& body) {
  pe_->host().start([this, &body] { body(*pe_); });
  finish();
}

void LivePe::finish() {
  const KernelLimit limit(run_);
  os::SpinWait spin_wait(true);
  Time progressed = transport_.now();
  while (!pe_->host().is_finished()) {
    const bool has_stepped = simulation_->step();
    if (run_.failure != nullptr) std::rethrow_exception(run_.failure);
    if (has_stepped || transport_.progress()) {
      meeting_.note_progress();
      spin_wait.renew();
      progressed = Time::max();
      continue;
    }
    if (meeting_.is_inside() && meeting_.is_complete()) {
      meeting_.note_progress();
      pe_->host().wake();
      continue;
    }
    if (spin_wait.spin()) continue;
    const Time now = transport_.now();
    if (progressed == Time::max()) progressed = now;
    pe_->pollers().look_again();
    if (pe_->pollers().empty()) {
      meeting_.note_pass();
      meeting_.check(now, [this] { return joined(pe_->waiting()); });
    }
    spin_wait.rest_or_nap(now);
    if (now - progressed < run_.timeout) continue;
    if (pe_->pollers().wake_all() > 0) {
      progressed = Time::max();
      continue;
    }
    pe_->hazards().check_overshot();
    std::string lines = pe_->waiting();
    lines = joined(lines);
    throw KernelError(KernelError::Kind::deadlock,
                      fmt::format("PE {} has waited for {} s; {}", pe_->rank(),
                                  static_cast<double>(run_.timeout.ps()) / 1e12, lines));
  }
}

}  // namespace towpath::gpu
