// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program_generator.hpp"

// Random programs in TT-Metalium's source form whose kernels send over the fabric's routers, that
// are right, and the same with one mistake; see program_generator.hpp.

namespace towpath::tenstorrent::kernels {

// Messages from a worker to a worker of another chip, through buffers that the receiver frees by
// packets of its own.
struct FabricFlow {
  enum class Form : std::uint32_t { fused, separate, scattered };

  int from = 0;
  int to = 0;
  int plane = 0;
  machine::Coordinate sender;
  machine::Coordinate receiver;
  Form form = Form::fused;
  bool is_cleared = false;  // the receiver clears its word after each message; one buffer
  std::uint32_t slots = 1;
  std::uint32_t messages = 1;
  std::uint32_t size_bytes = 64;
  std::uint32_t content = 0;
  std::uint32_t sender_cycles = 0;
  std::uint32_t receiver_cycles = 0;
  Mistake mistake = Mistake::none;
  bool is_receivers_mistake = false;
  std::uint32_t mistaken_message = 0;
  machine::Coordinate second_sender{};
};

struct FabricPlan {
  std::uint64_t seed = 1;
  int columns = 2;
  int rows = 1;
  int links = 1;
  bool has_rings = false;
  bool is_mesh = false;  // packets turn
  std::vector<FabricFlow> flows;
  noc::Cycle start_skew_cycles = 0;
  noc::Cycle program_skew_cycles = 0;
  double frame_loss = 0;
  std::string describe() const;
};

// The mistakes that workers of a fabric can make.
inline constexpr Mistake kFabricMistakes[] = {
    Mistake::missing_teardown,           Mistake::source_overwritten,
    Mistake::sync_before_payload,        Mistake::semaphore_cleared_after_notification,
    Mistake::two_workers_on_one_channel, Mistake::buffer_chain_too_small};

FabricPlan random_fabric_plan(std::uint64_t seed);
Expected inject(FabricPlan& plan, Mistake mistake, std::uint64_t seed);
Outcome run(const FabricPlan& plan);

}  // namespace towpath::tenstorrent::kernels
