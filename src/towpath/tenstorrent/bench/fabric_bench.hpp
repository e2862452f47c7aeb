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
// Both throw std::invalid_argument for places outside the shape, for a payload that is not a
// multiple of 4 bytes or does not fit into a slot, and for an empty transfer.

namespace towpath::tenstorrent::bench {

struct FabricPing {
  int from = 0;  // place
  int to = 0;    // if equal to `from`: around the whole ring, without a response
  std::uint64_t payload_bytes = 0;
  bool is_fused = false;  // the receiver waits for the increment, not for the payload
  int worker_noc = 0;     // NoC for the workers' writes to their routers
  int rounds = 10;
};
// Mean times of a round trip. Unless is_fused, each side waits for the first word of the payload.
struct FabricRoundTrip {
  Time total;     // from the sender's last call to the arrival of the response
  Time flush;     // its part until the packet has left the sender
  Time response;  // its part in the responder's calls
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
  std::uint64_t slot_bytes = 4352;  // largest payload of the fabric's packets
  bool forwards = true;             // as in FabricOptions
  // True if packets take the longer direction around their ring.
  bool goes_the_long_way = false;
  // True if every chip en route gets a copy.
  bool is_multicast = false;
  // write; write_flush_increment, of a word per stream; scatter_write, two halves.
  fabric::Operation operation = fabric::Operation::write;
};
// Rate of the slowest of concurrent streams. Each has a separate worker pair and a separate first
// link.
Rate fabric_stream_rate(const std::shared_ptr<const machine::ChipCluster>& cluster,
                        const fabric::Shape& shape, const std::vector<FabricStream>& streams,
                        const FabricStreamOptions& options);

}  // namespace towpath::tenstorrent::bench
