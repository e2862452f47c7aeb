// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/machine/chip_cluster.hpp"
#include "towpath/tenstorrent/fabric/fabric.hpp"

// The microbenchmarks of the fabric: latency between two workers, and the rate of many streams.
// Both throw std::invalid_argument for places that the shape does not have, a payload that is not a
// multiple of 4 bytes or that does not fit into a slot, and where nothing is sent.

namespace towpath::tenstorrent::bench {

struct FabricPing {
  int from = 0;  // place
  int to = 0;    // as `from`: all round its ring, without a response
  std::uint64_t payload_bytes = 0;
  bool is_fused = false;  // the increment is waited for, not the payload
  int worker_noc = 0;     // over which workers write to their routers
  int rounds = 10;
};
// Mean times of a round trip. Unless is_fused, each side waits for the first word of the payload.
struct FabricRoundTrip {
  Time total;     // from the last of the sender's calls until it sees the response
  Time flush;     // part of it, until the packet has left the sender
  Time response;  // part of it that the responder's calls take
};
FabricRoundTrip fabric_round_trip(const std::shared_ptr<const machine::ChipCluster>& cluster,
                                  const fabric::Shape& shape, const FabricPing& ping);

struct FabricStream {
  int from = 0;
  int to = 0;
};
struct FabricStreamOptions {
  std::uint64_t payload_bytes = 0;
  int packets = 0;
  std::uint64_t slot_bytes = 4352;  // most payload that the fabric's packets can have
  bool forwards = true;             // as FabricOptions
  // Whether packets go round their ring the other way than the shorter one.
  bool goes_the_long_way = false;
  // Whether every chip on the way gets a copy.
  bool is_multicast = false;
  // write; write_flush_increment, of a word per stream; scatter_write, two halves.
  fabric::Operation operation = fabric::Operation::write;
};
// Rate of the slowest stream, with all at once, each from a worker of its own to another one, over
// a first link of its own.
Rate fabric_stream_rate(const std::shared_ptr<const machine::ChipCluster>& cluster,
                        const fabric::Shape& shape, const std::vector<FabricStream>& streams,
                        const FabricStreamOptions& options);

}  // namespace towpath::tenstorrent::bench
