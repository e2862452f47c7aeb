// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/tenstorrent/bench/fabric_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/noc/router/pace.hpp"

namespace towpath::tenstorrent::bench {

using fabric::Connection;
using fabric::Fabric;
using fabric::FabricOptions;
using fabric::Header;
using fabric::kWorkerHeaders;
using fabric::kWorkerPayloads;
using fabric::kWorkerWords;
using fabric::Operation;
using fabric::pack;

namespace {

// Words of a worker in its L1, in addition to its connection.
constexpr std::uint64_t kInbox = kWorkerPayloads + 0x10000;
constexpr std::uint64_t kCounter = kInbox + 0x10000;

// Time until all connections are open. An assumption without a source.
constexpr noc::Cycle kOpenCycles = 10'000;

// Alignment of payloads: a header has 16 bits for it. Pings count in the payload's last word.
constexpr std::uint64_t kPayloadAlignment = 4;
constexpr std::uint64_t kPayloadBytesMax = 65'532;

FabricOptions options_for(std::uint64_t payload_bytes) {
  FabricOptions options;
  options.payload_bytes_max = std::max(options.payload_bytes_max, payload_bytes);
  return options;
}

void check_payload(std::uint64_t payload_bytes, std::uint64_t payload_bytes_min) {
  if (payload_bytes >= payload_bytes_min && payload_bytes <= kPayloadBytesMax &&
      payload_bytes % kPayloadAlignment == 0) {
    return;
  }
  throw std::invalid_argument(
      fmt::format("a packet has a payload of {} bytes; it must be a multiple of {} from {} to {}",
                  payload_bytes, kPayloadAlignment, payload_bytes_min, kPayloadBytesMax));
}

void check(const FabricPing& ping) {
  check_payload(ping.payload_bytes, 0);
  if (ping.rounds < 1) {
    throw std::invalid_argument(
        fmt::format("a ping has {} rounds; it must have at least 1", ping.rounds));
  }
}

void check(const std::vector<FabricStream>& streams, std::uint64_t payload_bytes, int packets) {
  check_payload(payload_bytes, kPayloadAlignment);
  if (streams.empty())
    throw std::invalid_argument("there are no streams; there must be at least 1");
  if (packets < 1) {
    throw std::invalid_argument(
        fmt::format("a stream has {} packets; it must have at least 1", packets));
  }
}

struct StreamWay {
  fabric::Direction first_hop = 0;
  Header header;
};

// Each stream in the shorter direction, or around its ring in the longer one.
std::vector<StreamWay> ways_of(const Fabric& fabric, const std::vector<FabricStream>& streams,
                               const FabricStreamOptions& options) {
  const fabric::Dimension& line = fabric.topology().shape().dimensions.front();
  const bool is_mesh = fabric.topology().is_two_dimensional();
  if (options.goes_the_long_way && (!line.is_ring || is_mesh)) {
    throw std::invalid_argument("streams take the long way, which needs chips in a ring");
  }
  if (options.is_multicast && is_mesh) {
    throw std::invalid_argument("streams are multicasts, which need chips in a line or ring");
  }
  std::vector<StreamWay> ways;
  for (const auto& [from, to] : streams) {
    fabric::Direction direction = fabric.first_hop(from, to);
    Header header = fabric.header(from, to);
    int hops = static_cast<int>(fabric.topology().route(from, to).size());
    if (options.goes_the_long_way) {
      direction = fabric::opposite(direction);
      hops = line.size - hops;
      header = fabric.header_along(from, direction, hops);
    }
    if (options.is_multicast) header = fabric.multicast_along(from, direction, hops);
    ways.push_back({direction, header});
  }
  return ways;
}

// Sets the action of a stream's packets at a worker. Adds the segment list after the halves of a
// scatter.
void set_operation(DataMovementCore& core, Header& header, machine::Coordinate worker,
                   const FabricStreamOptions& options) {
  header.operation = options.operation;
  header.payload_to = pack({worker, kInbox});
  header.payload_bytes = static_cast<std::uint16_t>(options.payload_bytes);
  header.word_at = pack({worker, kCounter});
  header.increment = 1;
  if (!fabric::scatters(options.operation)) return;
  const std::uint64_t half =
      options.payload_bytes / 2 / fabric::Layout::kCellBytes * fabric::Layout::kCellBytes;
  fabric::SegmentList list;
  list.bytes = {static_cast<std::uint16_t>(half),
                static_cast<std::uint16_t>(options.payload_bytes - half)};
  list.to[0] = pack({worker, kInbox + half});
  header = scattered(header, list);
  core.store(kWorkerPayloads + list_offset(header), fabric::bytes_of(list));
}

// A router serves one worker at a time.
void check_links(const std::vector<FabricStream>& streams, const std::vector<StreamWay>& ways) {
  std::map<std::pair<int, fabric::Direction>, std::size_t> first;  // by link
  for (std::size_t number = 0; number < streams.size(); ++number) {
    const int from = streams[number].from;
    const auto [other, is_new] = first.try_emplace({from, ways[number].first_hop}, number);
    if (is_new) continue;
    throw std::invalid_argument(fmt::format(
        "streams {} and {} leave place {} over the same link; each needs a separate link",
        other->second, number, from));
  }
}

struct PingWay {
  fabric::Direction first_hop = 0;
  Header header;
};

PingWay way_of(const Fabric& fabric, int from, int to) {
  if (from != to) return {fabric.first_hop(from, to), fabric.header(from, to)};
  const fabric::Dimension& line = fabric.topology().shape().dimensions.front();
  if (!line.is_ring) {
    throw std::invalid_argument(
        "a ping to its own place goes around a ring, but the chips do not form one");
  }
  const fabric::Direction direction = fabric::direction_of(0, false);
  return {direction, fabric.header_along(from, direction, line.size)};
}

// One side of a ping.
struct Pinger {
  const FabricPing& ping;
  PingWay way;
  Connection connection;
  DataMovementCore& core;

  Pinger(DataMovementCore& on, const Fabric& fabric, const FabricPing& ping, int here, int there)
      : ping(ping),
        way(way_of(fabric, here, there)),
        connection(on, fabric.port(here, way.first_hop, 0), kWorkerWords),
        core(on) {
    const machine::Coordinate far = fabric.device(there).chip().workers.front();
    way.header.payload_to = pack({far, kInbox});
    way.header.word_at = pack({far, kCounter});
    way.header.increment = 1;
    way.header.payload_bytes = static_cast<std::uint16_t>(ping.payload_bytes);
    way.header.operation = ping.payload_bytes == 0 ? Operation::increment
                           : ping.is_fused         ? Operation::write_increment
                                                   : Operation::write;
    connection.open();
  }
  Time now() const { return core.network().simulation().now(); }
  void send(int round) {
    if (ping.payload_bytes > 0) {
      core.store_word(kWorkerPayloads + ping.payload_bytes - 4, static_cast<std::uint32_t>(round));
    }
    connection.send(way.header, kWorkerHeaders, kWorkerPayloads);
  }
  void receive(int round) {
    const bool waits_for_payload = way.header.operation == Operation::write;
    core.noc_semaphore_wait_min(waits_for_payload ? kInbox + ping.payload_bytes - 4 : kCounter,
                                static_cast<std::uint32_t>(round));
  }
};

// Time between the first and the last flit of a payload in the receiver's memory. In the model,
// writes become visible as a whole. A receiver that waits for the payload itself polls its first
// word.
Time first_flit_lead(const machine::Chip& chip, const FabricPing& ping) {
  if (ping.is_fused || ping.payload_bytes == 0) return Time();
  const auto flit_bytes = static_cast<std::uint64_t>(chip.router.flit_bytes);
  const std::uint64_t flits = divide_up(ping.payload_bytes, flit_bytes);
  const noc::PaceTime interval =
      noc::flit_interval(chip.router.flit_bytes, chip.niu.request_stream_rate);
  const auto cycles = static_cast<std::int64_t>(flits - 1) * interval / noc::kPaceCycle;
  return chip.clock.time_of(Cycles(cycles));
}

}  // namespace

FabricRoundTrip fabric_round_trip(const std::shared_ptr<const machine::ChipCluster>& description,
                                  const fabric::Shape& shape, const FabricPing& ping) {
  check(ping);
  Cluster cluster(description, {.finds_hazards = false});
  Fabric fabric(cluster, shape, options_for(ping.payload_bytes));
  way_of(fabric, ping.from, ping.to);  // throws if there is none
  FabricRoundTrip sum;
  const auto worker = [&](int place) { return fabric.device(place).chip().workers.front(); };
  fabric.program(ping.from).create_kernel(
      {.core = worker(ping.from), .name = "ping", .noc_index = ping.worker_noc},
      [&](DataMovementCore& core) {
        Pinger side(core, fabric, ping, ping.from, ping.to);
        core.work(kOpenCycles);
        for (int round = 1; round <= ping.rounds; ++round) {
          side.send(round);
          const Time begin = side.now();
          side.connection.wait_until_sent();
          sum.flush += side.now() - begin;
          side.receive(round);
          sum.total += side.now() - begin;
        }
        side.connection.close();
      });
  const auto respond = [&](DataMovementCore& core) {
    Pinger side(core, fabric, ping, ping.to, ping.from);
    for (int round = 1; round <= ping.rounds; ++round) {
      side.receive(round);
      const Time begin = side.now();
      side.send(round);
      sum.response += side.now() - begin;
      side.connection.wait_until_sent();
    }
    side.connection.close();
  };
  const bool has_response = ping.from != ping.to;
  if (has_response) {
    fabric.program(ping.to).create_kernel(
        {.core = worker(ping.to), .name = "pong", .noc_index = ping.worker_noc}, respond);
  }
  fabric.run();
  const auto mean = [&](Time time) { return Time::from_ps(time.ps() / ping.rounds); };
  const Time lead = first_flit_lead(fabric.device(ping.to).chip(), ping);
  return {mean(sum.total) - lead - (has_response ? lead : Time()), mean(sum.flush),
          mean(sum.response)};
}

namespace {

std::uint64_t bytes_in_slot(const FabricStreamOptions& options) {
  const std::uint64_t list = scatters(options.operation) ? 2 * sizeof(fabric::SegmentList) : 0;
  return options.payload_bytes + list;
}

}  // namespace

Rate fabric_stream_rate(const std::shared_ptr<const machine::ChipCluster>& description,
                        const fabric::Shape& shape, const std::vector<FabricStream>& streams,
                        const FabricStreamOptions& options) {
  check(streams, options.payload_bytes, options.packets);
  Cluster cluster(description, {.finds_hazards = false});
  Fabric fabric(cluster, shape,
                {.payload_bytes_max = std::max(options.slot_bytes, bytes_in_slot(options)),
                 .forwards = options.forwards});
  const std::vector<StreamWay> ways = ways_of(fabric, streams, options);
  check_links(streams, ways);
  Time slowest;
  std::map<int, std::size_t> used;  // workers, by place
  for (std::size_t number = 0; number < streams.size(); ++number) {
    const FabricStream& stream = streams[number];
    const auto& workers = fabric.device(stream.from).chip().workers;
    const machine::Coordinate worker = workers[used[stream.from]++];
    fabric.program(stream.from)
        .create_kernel(
            {.core = worker, .name = fmt::format("stream to {}", stream.to)},
            [&, stream, way = ways[number]](DataMovementCore& core) {
              Connection connection(core, fabric.port(stream.from, way.first_hop, 0), kWorkerWords);
              Header header = way.header;
              set_operation(core, header, fabric.device(stream.to).chip().workers.back(), options);
              connection.open();
              core.work(kOpenCycles);
              const Time begin = core.network().simulation().now();
              for (int packet = 0; packet < options.packets; ++packet) {
                connection.send(header, kWorkerHeaders, kWorkerPayloads);
                connection.wait_until_sent();
              }
              connection.close();
              slowest = std::max(slowest, core.network().simulation().now() - begin);
            });
  }
  fabric.run();
  return Rate::from_gb_per_s(static_cast<double>(options.payload_bytes) * options.packets /
                             slowest.ns());
}

}  // namespace towpath::tenstorrent::bench
