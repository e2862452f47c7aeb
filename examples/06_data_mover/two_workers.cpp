// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0

// Two chips with one link. Data movers on its Ethernet cores carry messages between workers: one
// channel in each direction, with one slot and with two.

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "data_mover_builder.hpp"
#include "small_chips.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"

using towpath::Time;
using towpath::machine::Coordinate;
using towpath::tenstorrent::Cluster;
using towpath::tenstorrent::DataMovementCore;
using towpath::tenstorrent::Program;
using namespace towpath::tenstorrent::kernels;

namespace {

constexpr std::uint64_t kMessages = 16;
constexpr std::uint32_t kMessageBytes = 4096;
// The sender of one direction and the receiver of the other, one on each NoC.
constexpr Coordinate kWorker{1, 1};

std::vector<std::byte> content_of(int chip) {
  return std::vector<std::byte>(kMessages * kMessageBytes, static_cast<std::byte>(chip + 1));
}

// Messages of one worker to the other, and where they lie in either L1.
struct Stream {
  int from_chip = 0;
  int slots = 0;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
};

void add_channel(DataMoverBuilder& mover, const Stream& stream, Program& sends, Program& receives) {
  const auto [from_chip, slots, source, destination] = stream;
  const auto ends = mover.add_channel({.from_chip = from_chip,
                                       .sender = kWorker,
                                       .receiver = kWorker,
                                       .slots = slots,
                                       .messages = kMessages});
  std::vector<DataMoverMessage> messages;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    messages.push_back({source + i * kMessageBytes, kMessageBytes});
  }
  sends.create_kernel({.core = kWorker, .name = "sender"}, [=](DataMovementCore& core) {
    data_mover_sender(core, ends.sender, messages);
  });
  receives.create_kernel(
      {.core = kWorker, .name = "receiver", .noc_index = 1},
      [=](DataMovementCore& core) { data_mover_receiver(core, ends.receiver, destination); });
}

void run(int slots) {
  Cluster cluster(towpath::examples::two_chips(1), {});
  Program& first = cluster.create_program(0);
  Program& second = cluster.create_program(1);
  DataMoverBuilder mover(
      cluster, {0, cluster.device(0).get_active_ethernet_cores(true).front(), &first}, second, {});
  const std::uint64_t bytes = kMessages * kMessageBytes;
  const std::uint64_t source = first.allocate(bytes), destination = first.allocate(bytes);
  second.allocate(bytes), second.allocate(bytes);  // the same places
  for (const int chip : {0, 1}) {
    cluster.device(chip).memory(kWorker).write(source, content_of(chip));
  }
  add_channel(mover, {0, slots, source, destination}, first, second);
  add_channel(mover, {1, slots, source, destination}, second, first);
  mover.create_kernels();
  const Time end = cluster.run();
  bool is_complete = true;
  for (const int chip : {0, 1}) {
    std::vector<std::byte> found(bytes);
    cluster.device(chip).memory(kWorker).read(destination, found);
    is_complete &= found == content_of(1 - chip);
  }
  fmt::print("{} messages of {} bytes in each direction, {} in flight: {:.0f} ns, data {}\n",
             kMessages, kMessageBytes, slots, end.ns(), is_complete ? "right" : "wrong");
}

}  // namespace

int main() {
  for (const int slots : {1, 2}) run(slots);
}
