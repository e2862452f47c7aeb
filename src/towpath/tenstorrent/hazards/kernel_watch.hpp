// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "towpath/tenstorrent/core/core_observer.hpp"
#include "towpath/tenstorrent/hazards/errors.hpp"
#include "towpath/tenstorrent/hazards/ledger.hpp"

namespace towpath::tenstorrent {

class DataMovementCore;
class HazardMonitor;

// Watch of one kernel. It passes each action to the parts of the monitor. A call throws HazardError
// with kernel, core and call if the action is a mistake.
class KernelWatch final : public CoreObserver {
 public:
  struct Config {
    int chip = 0;
    machine::Coordinate core;
    int noc_index = 0;
    std::string name;
    // Programs of different chips with the same generation form a group.
    int generation = 0;
  };
  // A kernel of a program of its chip. `channel` is -1 on a worker.
  KernelWatch(HazardMonitor& monitor, Config config, Learner learner, int program, int channel)
      : monitor_(monitor),
        config_(std::move(config)),
        learner_(std::move(learner)),
        program_(program),
        channel_(channel) {}

  const Config& config() const { return config_; }
  KernelName name() const { return {config_.chip, config_.core, config_.name}; }
  // "kernel 'a' on core (1, 1) of chip 0 in noc_async_read". Without the call if it is over.
  std::string where() const;
  bool has_started() const { return state_ != State::to_start; }
  bool is_running() const { return state_ == State::running; }
  bool is_over() const { return state_ == State::over; }
  int program() const { return program_; }
  int channel() const { return channel_; }
  Learner& learner() { return learner_; }
  const Learner& learner() const { return learner_; }
  bool knows(const Stamp& stamp) const { return learner_.knows(stamp); }
  const Stamp& begin() const { return begin_; }
  // True if this kernel has proof that the other one has started.
  bool knows_start_of(const KernelWatch& other) const {
    return other.has_started() && knows(other.begin_);
  }
  // Words that it has read since it last idled, only on an Ethernet core.
  const std::vector<std::uint64_t>& looked_at() const { return looked_at_; }
  // Cores with words that it has changed, by chip.
  void note_target(int chip, machine::Coordinate core);
  bool has_target(int chip, machine::Coordinate core) const {
    return std::ranges::find(targets_, std::pair(chip, core)) != targets_.end();
  }

  template <typename... Arguments>
  [[noreturn]] void fail(Hazard hazard, fmt::format_string<Arguments...> format,
                         Arguments&&... arguments) const {
    throw HazardError(
        hazard, name(),
        fmt::format("{}: {}", where(), fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

  // The kernel starts on a core, and ends.
  void start(const DataMovementCore& core);
  void end();

  void looked(std::uint64_t offset, std::uint32_t value, std::uint32_t needed) override;
  void using_bytes(std::uint64_t offset, std::uint64_t size_bytes) override;
  void storing(std::uint64_t offset, std::span<const std::byte> bytes) override;
  void issuing(const noc::Request& request) override;
  void sending(int queue, const ethernet::Command& command) override;
  void sending_payload(int channel, std::uint64_t size_bytes) override;
  void announcing(int channel, std::uint64_t size_bytes) override;
  void acknowledging(int channel, std::uint64_t from) override;
  void idled() override { looked_at_.clear(); }
  void opening_connection(int connection) override;
  void closed_connection(int connection) override;
  std::size_t sending_packet(int connection, std::vector<Delivery> deliveries) override;

 private:
  enum class State : std::uint8_t { to_start, running, over };

  HazardMonitor& monitor_;
  Config config_;
  State state_ = State::to_start;
  const DataMovementCore* core_ = nullptr;
  Learner learner_;
  Stamp begin_;
  int program_;
  int channel_;
  std::array<std::uint64_t, ethernet_memory_map::kChannels> unannounced_bytes_{};
  std::vector<std::uint64_t> looked_at_;
  std::vector<std::pair<int, machine::Coordinate>> targets_;
};

// "kernel 'sender' on core (1, 1) of chip 0"
std::string name_of(const KernelWatch& kernel);

}  // namespace towpath::tenstorrent
