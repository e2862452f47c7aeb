// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "towpath/tenstorrent/device/cluster.hpp"
#include "towpath/tenstorrent/kernels/data_mover.hpp"
#include "towpath/tenstorrent/kernels/data_mover_worker.hpp"

// The host's side of a data mover: both ends of one link.
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
    tenstorrent::LogicalCore core;
    tenstorrent::Program* program = nullptr;
  };
  struct Options {
    ChannelSync sync = ChannelSync::merged;
    bool acknowledges = true;
    int noc_index = 0;
    // Often enough for a link that went down to be trained soon; 100 cycles in 8000 and more.
    std::int64_t polls_per_context_switch = 1000;
  };
  struct ChannelConfig {
    int from_chip = 0;
    machine::Coordinate sender{};  // workers, of that chip and of the other
    machine::Coordinate receiver{};
    std::uint64_t message_bytes_max = 4096;
    int slots = 1;
    std::optional<std::uint64_t> messages{};  // none: until the sender says stop
  };
  struct WorkerEnds {
    DataMoverWorker sender;
    DataMoverWorker receiver;
  };

  // `far_program` runs on the chip that the link leads to. Throws std::invalid_argument when there
  // is no link, or it leads back to the same chip.
  DataMoverBuilder(tenstorrent::Cluster& cluster, const End& end, tenstorrent::Program& far_program,
                   const Options& options);

  // Throws std::invalid_argument when it is of another chip, has no slot, its messages are no
  // multiple of 16 bytes, L1 is full, or separate sync words have run out: a link has 7.
  WorkerEnds add_channel(const ChannelConfig& config);
  // On both cores.
  void create_kernels();

  // What the kernels of the end on a chip are given.
  const DataMoverConfig& config(int chip) const { return configs_[side_of(chip)]; }

 private:
  std::size_t side_of(int chip) const;
  void check(const ChannelConfig& config) const;

  tenstorrent::Cluster& cluster_;
  std::array<End, 2> ends_;
  Options options_;
  std::array<DataMoverConfig, 2> configs_;
  int slots_ = 0;
};

}  // namespace towpath::tenstorrent::kernels
