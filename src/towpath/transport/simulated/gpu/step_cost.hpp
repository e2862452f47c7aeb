// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "towpath/gpu_links/network.hpp"
#include "towpath/machine/machine.hpp"

// The cost of a step on a GPU, beyond its links: the one place that computes it, for runs event by
// event and for time-only runs.

namespace towpath::transport::simulated {

// Depends on the operands of a thread block. A stage is a copy of a pipeline through the switch.
enum class Work : std::uint8_t { copy, combine, forward, stage };

// The kernel that runs a schedule.
struct Kernel {
  bool has_work_loop = true;       // of a library: it reads its work and connections first
  bool has_switch_stages = false;  // copies and direct moves are stages of such a pipeline
  bool has_half_blocks = false;    // each thread block has half of the threads of one
};

constexpr Work work_of(bool is_sent, bool is_stored, bool is_combined) {
  if (is_sent && is_stored) return Work::forward;
  return is_combined ? Work::combine : Work::copy;
}

class StepCost {
 public:
  StepCost(const machine::GpuCost& gpu, Protocol protocol, const Kernel& kernel)
      : gpu_(&gpu),
        cost_(&gpu.protocol[static_cast<std::size_t>(protocol)]),
        protocol_(protocol),
        kernel_(kernel) {}

  // From the host's call to the first step.
  Time start() const {
    return gpu_->launch + (kernel_.has_work_loop ? cost_->start_overhead : Time());
  }

  // Through the thread block.
  Rate rate(Work work) const {
    Rate own;
    if (work == Work::copy) own = cost_->copy_rate;
    if (work == Work::forward) own = cost_->forward_rate;
    if (work == Work::stage) own = gpu_->in_switch_copy_rate;
    if (own == Rate()) own = cost_->block_rate;
    return kernel_.has_half_blocks ? Rate::from_bytes_per_second(own.bytes_per_second() / 2) : own;
  }
  Time local(Bytes size, Work work) const {
    const Time time = transfer_time(size, rate(work));
    if (work == Work::stage) return time + gpu_->in_switch_stage;
    return time - std::min(cost_->overlap, Time::from_ps(time.ps() / 2));
  }

  // From the step to its first byte on a link. An adapter sends from a buffer, so that the thread
  // block is not held up.
  Time before_put(bool leaves_host) const { return leaves_host ? Time() : cost_->send_overhead; }
  Rate pace(Bytes size, Work work) const {
    if (cost_->overlap == Time() || size == Bytes(0)) return on_wire(rate(work), protocol_);
    return on_wire(rate_of(size, local(size, work)), protocol_);
  }
  Bytes on_wire_of(Bytes size) const { return on_wire(size, protocol_); }
  // From the last byte at the far end until the receiver continues. A fenced flag is a separate
  // message that leaves when the payload is acknowledged: three trips instead of one.
  Time after_put(const gpu_links::Route& route, const StepCost& receiver) const {
    Time time = receiver.after_flag();
    if (cost_->fences) time += route.latency * 2;
    return time + by_adapter(route);
  }
  Time by_adapter(const gpu_links::Route& route) const {
    return route.leaves_host ? cost_->send_overhead + cost_->adapter_overhead : Time();
  }
  // From a flag's arrival at this GPU until its reader continues.
  Time after_flag() const { return cost_->receive_overhead; }

  // --- direct moves ------------------------------------------------------------------------------
  Time before_direct() const {
    const bool has_own = gpu_->direct_overhead > Time();
    return (has_own ? gpu_->direct_overhead : cost_->send_overhead) +
           (kernel_.has_switch_stages ? gpu_->in_switch_stage : Time());
  }
  // A move from `sources` within the GPU.
  Time direct_locally(Bytes size, std::size_t sources) const {
    return transfer_time(size * (std::max<std::size_t>(sources, 2) - 1), direct_rate());
  }
  // The pace of each of several operands at once.
  Rate direct_pace(std::size_t operands) const {
    const std::int64_t share =
        direct_rate().bytes_per_second() / static_cast<std::int64_t>(operands);
    return on_wire(Rate::from_bytes_per_second(share), protocol_);
  }
  Rate in_switch_rate() const { return gpu_->in_switch_rate; }
  // The size of a piece: small, so that thread blocks share a link evenly.
  static Bytes piece_of(Bytes size) {
    return std::clamp(Bytes(size.count() / 16), Bytes(4 * 1024), Bytes(64 * 1024));
  }

 private:
  Rate direct_rate() const {
    return gpu_->direct_rate == Rate() ? cost_->block_rate : gpu_->direct_rate;
  }

  const machine::GpuCost* gpu_;
  const machine::ProtocolCost* cost_;
  Protocol protocol_;
  Kernel kernel_;
};

// One thread polls a counter, like a flag of LL, for any protocol.
inline Time after_raise(const machine::GpuCost& gpu) {
  return StepCost(gpu, Protocol::ll, {}).after_flag();
}

}  // namespace towpath::transport::simulated
