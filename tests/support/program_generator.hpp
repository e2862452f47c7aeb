// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data_mover.hpp"
#include "joined_chips.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"

// Random programs for several chips that are right, and the same with one mistake.
//
//   Plan plan = random_plan(seed);           // runs clean, whatever the skew
//   const Expected expected = inject(plan, Mistake::missing_handshake, seed);
//   const Outcome outcome = run(plan);       // says so, and names one of expected.cores

namespace towpath::tenstorrent::kernels {

// Each of them is reported under the name of its hazard, the shortage of buffers as a deadlock.
enum class Mistake : std::uint8_t {
  none,
  missing_handshake,
  missing_teardown,
  source_overwritten,
  sync_before_payload,
  acknowledgement_from_channel_word,
  semaphore_cleared_after_notification,
  two_workers_on_one_channel,
  buffer_chain_too_small,
  link_down_without_routing
};
inline constexpr int kMistakes = 9;
std::string_view name_of(Mistake mistake);

// A core and NoC for a kernel of a worker.
struct WorkerPlace {
  machine::Coordinate core;
  int noc_index = 0;
};

struct ChannelPlan {
  bool is_forward = true;  // from the first end of its link to the other
  std::vector<std::uint32_t> sizes{};
  std::uint32_t size_bytes_max = 16;
  int slots = 1;
  bool is_count_fixed = true;
  std::uint64_t content = 0;  // which bytes
  // Data mover only: the workers, which are busy for this long with each message.
  WorkerPlace sender{};
  WorkerPlace receiver{};
  noc::Cycle sender_cycles = 0;
  noc::Cycle receiver_cycles = 0;
  bool is_exchanged = false;  // one worker sends on a channel and then receives on another
  // Mistakes of the workers.
  Mistake mistake = Mistake::none;
  bool is_receivers_mistake = false;
  std::uint64_t mistaken_message = 0;
  WorkerPlace second_sender{};
  noc::Cycle second_sender_start = 0;
};

// Traffic over a link in one program.
struct LinkPlan {
  std::size_t link = 0;
  // Otherwise kernels on the Ethernet cores use their channels themselves, all the same way.
  bool is_data_mover = true;
  ChannelSync sync = ChannelSync::merged;
  bool acknowledges = true;
  int noc_index = 0;
  std::vector<ChannelPlan> channels{};
  Mistake mistake = Mistake::none;
  bool is_first_ends_mistake = true;
  std::size_t mistaken_channel = 0;
  std::uint64_t mistaken_message = 0;
};

// Two workers of a chip that send to each other.
struct WorkerPair {
  int chip = 0;
  WorkerPlace one;
  WorkerPlace other;
  int messages = 1;
  std::uint32_t size_bytes = 16;
};

struct Plan {
  std::uint64_t seed = 1;
  machine::JoinedChips shape;
  // One program after the other on each chip.
  struct Generation {
    std::vector<LinkPlan> links;
    std::vector<WorkerPair> pairs;
  };
  std::vector<Generation> generations;
  noc::Cycle start_skew_cycles = 0;
  noc::Cycle program_skew_cycles = 0;
  std::vector<ethernet::LinkFaults> link_faults;
  // Workers and kernels on Ethernet cores are in TT-Metalium's source form.
  bool is_in_source_form = false;
  std::string describe() const;
};

Plan random_plan(std::uint64_t seed, bool is_in_source_form = false);

struct Core {
  int chip = 0;
  machine::Coordinate at;
  auto operator<=>(const Core&) const = default;
};
struct Expected {
  std::string hazard;
  std::vector<Core> cores;
  bool names_all = false;  // otherwise any of them
};
// Makes one mistake somewhere; where there is no place for it, the plan gets one.
Expected inject(Plan& plan, Mistake mistake, std::uint64_t seed);

struct Outcome {
  std::string hazard = "none";  // or "deadlock", "error", "wrong data"
  std::vector<Core> cores;      // the culprit, or the cycle
  std::string sentence;
  // When half of the messages of the link with a mistake had gone over it.
  Time half_time{};
};
Outcome run(const Plan& plan);
// The outcome of a run that says whether its data are right, or throws.
Outcome outcome_of(const std::function<bool()>& run);

// Whether the outcome is the expected one.
bool is_right(const Outcome& outcome, const Expected& expected);

}  // namespace towpath::tenstorrent::kernels
