// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "data_mover.hpp"
#include "data_mover_worker.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"

// Host side of a data mover: both ends of one link.
//
//   Program& here = cluster.create_program(0);
//   Program& there = cluster.create_program(1);
//   DataMoverBuilder mover(cluster, {0, {0, 8}, &here}, there, {});
//   const auto channel = mover.add_channel({.from_chip = 0, .sender = {1, 1}, .receiver = {2, 1}});
//   here.create_kernel({.core = {1, 1}, .name = "sends"}, [=](DataMovementCore& core) {
//     data_mover_sender(core, channel.sender, messages);
//   });
//   there.create_kernel({.core = {2, 1}, .name = "receives"}, [=](DataMovementCore& core) {
//     data_mover_receiver(core, channel.receiver, 0);
//   });
//   mover.create_kernels();

namespace towpath::tenstorrent::kernels {

class DataMoverBuilder {
 public:
  struct End {
    int chip = 0;
    LogicalCore core;
    Program* program = nullptr;
  };
  struct Options {
    ChannelSync sync = ChannelSync::merged;
    bool acknowledges = true;
    int noc_index = 0;
    // Small enough for fast retraining of a dropped link; costs 100 of at least 8000 cycles.
    std::int64_t polls_per_context_switch = 1000;
  };
  struct ChannelConfig {
    int from_chip = 0;
    machine::Coordinate sender{};  // workers at either end
    machine::Coordinate receiver{};
    std::uint64_t message_bytes_max = 4096;
    int slots = 1;
    std::optional<std::uint64_t> messages{};  // none: until the sender's stop
  };
  struct WorkerEnds {
    DataMoverWorker sender;
    DataMoverWorker receiver;
  };

  // `far_program` runs on the chip at the far end. Throws std::invalid_argument if there is no
  // link, or if it leads back to the same chip.
  DataMoverBuilder(Cluster& cluster, const End& end, Program& far_program, const Options& options);

  // Throws std::invalid_argument if the channel is for another chip, has no slot, has messages that
  // are not a multiple of 16 bytes, does not fit into L1, or exceeds the 7 separate sync words of a
  // link.
  WorkerEnds add_channel(const ChannelConfig& config);
  void create_kernels();

  // Configuration of the kernel on `chip`.
  const DataMoverConfig& config(int chip) const { return configs_[side_of(chip)]; }

 private:
  std::size_t side_of(int chip) const;
  void check(const ChannelConfig& config) const;

  Cluster& cluster_;
  std::array<End, 2> ends_;
  Options options_;
  std::array<DataMoverConfig, 2> configs_;
  int slots_ = 0;
};

}  // namespace towpath::tenstorrent::kernels
