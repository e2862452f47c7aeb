// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "noc_reference.hpp"
#include "towpath/machine/load.hpp"
#include "towpath/noc/flit_network.hpp"
#include "towpath/sim/random.hpp"

// Packets are drawn or listed beforehand, so that the network is measured and nothing else.

namespace towpath::noc {
namespace {

constexpr std::size_t kPeriod = 1024;  // cycles after which the drawn packets are sent again
constexpr int kQueuedMax = 32;         // packets that wait at a node; what is drawn beyond is lost

machine::Chip chip_of(int width, int height, int classes) {
  machine::Chip chip = *machine::load_chip("wormhole");
  chip.width = width;
  chip.height = height;
  chip.router.classes = classes;
  chip.niu.port_rate = machine::BytesPerCycle::from(32);
  return chip;
}

struct DrawnPacket {
  std::uint8_t source;
  std::uint8_t destination;
  std::uint8_t vc;  // class and buddy
};

std::vector<std::vector<DrawnPacket>> draw_packets(int nodes, int classes, double per_cycle) {
  sim::Random random(1, "uniform random");
  const auto below = [&](int bound) {
    return static_cast<std::uint8_t>(random.below(static_cast<std::uint64_t>(bound)));
  };
  std::vector<std::vector<DrawnPacket>> cycles(kPeriod);
  const auto count = static_cast<int>(per_cycle * kPeriod + 0.5);
  for (int i = 0; i < count; ++i) {
    cycles[random.below(kPeriod)].push_back({below(nodes), below(nodes), below(2 * classes)});
  }
  return cycles;
}

// Sends what was drawn for each cycle.
class UniformTraffic final : public Endpoint {
 public:
  UniformTraffic(int side, int classes, int flits, double load)
      : chip_(chip_of(side, side, classes)),
        flits_(flits),
        drawn_(draw_packets(side * side, classes, load * side * side / flits)),
        queued_(static_cast<std::size_t>(side * side), 0),
        network_(chip_, 0, *this, 1) {}

  const FlitNetwork& network() const { return network_; }

  void step() {
    for (const DrawnPacket& drawn : drawn_[static_cast<std::size_t>(network_.now()) % kPeriod]) {
      if (queued_[drawn.source] == kQueuedMax) continue;
      ++queued_[drawn.source];
      Packet packet;
      packet.source = drawn.source;
      packet.destination = drawn.destination;
      packet.flits = flits_;
      packet.packet_class = drawn.vc >> 1;
      packet.buddy = drawn.vc & 1;
      packet.lane = drawn.vc;
      network_.send(packet);
    }
    network_.step();
  }

  void packet_started(const Packet&, Cycle) override {}
  void packet_sent(const Packet& packet, Cycle) override {
    --queued_[static_cast<std::size_t>(packet.source)];
  }
  void packet_received(const Packet&, int, int, Cycle) override {}
  Cycle flit_received(const Packet&, int, Cycle now) override { return now + 1; }

 private:
  machine::Chip chip_;
  int flits_;
  std::vector<std::vector<DrawnPacket>> drawn_;
  std::vector<int> queued_;
  FlitNetwork network_;
};

// Arguments: offered load in percent of a flit per node and cycle, classes, flits of a packet.
void noc_uniform_random(benchmark::State& state) {
  UniformTraffic traffic(8, static_cast<int>(state.range(1)), static_cast<int>(state.range(2)),
                         static_cast<double>(state.range(0)) / 100);
  for (int cycle = 0; cycle < 5000; ++cycle) traffic.step();
  const std::int64_t hops_before = traffic.network().flit_hops();
  for (auto _ : state) traffic.step();
  const auto hops = static_cast<double>(traffic.network().flit_hops() - hops_before);
  state.counters["flit_hops"] = benchmark::Counter(hops, benchmark::Counter::kIsRate);
  state.counters["hops_per_cycle"] = benchmark::Counter(hops, benchmark::Counter::kAvgIterations);
}
BENCHMARK(noc_uniform_random)
    ->ArgNames({"load", "classes", "flits"})
    ->ArgsProduct({{10, 30, 100}, {1, 4}, {1, 20}});

// --- against the reference ----------------------------------------------------------------------

class NoEndpoint final : public Endpoint {
 public:
  void packet_started(const Packet&, Cycle) override {}
  void packet_sent(const Packet&, Cycle) override {}
  void packet_received(const Packet&, int, int, Cycle) override {}
  Cycle flit_received(const Packet&, int, Cycle now) override { return now + 1; }
};

// 8 x 8 workers of the grid of Wormhole, one after the other to every other, pages of one flit. All
// begin with the first, or each with the one behind itself. All packets of a worker are there at
// once, or one each `cycles_apart`: its core takes 39 to issue a write to another destination
// (machines/wormhole.yaml, write_cycles and write_destination_cycles).
std::vector<Packet> all_to_all(int pages, bool is_rotated, int cycles_apart) {
  constexpr int kWidth = 10;
  constexpr int kWorkers = 64;
  const auto node_of = [](int worker) { return (worker / 8 + 2) * kWidth + worker % 8 + 1; };
  std::vector<Packet> packets;
  for (int worker = 0; worker < kWorkers; ++worker) {
    Cycle issued = 0;
    for (int i = 0; i < kWorkers; ++i) {
      const int to = is_rotated ? (worker + i) % kWorkers : i;
      if (to == worker) continue;
      for (int left = pages; left > 0; left -= 256) {
        Packet packet;
        packet.source = node_of(worker);
        packet.destination = node_of(to);
        packet.flits = 1 + std::min(left, 256);
        packet.buddy = 1;
        packet.header_at = issued;
        issued += cycles_apart;
        packets.push_back(packet);
      }
    }
  }
  return packets;
}

struct Run {
  double seconds = 0;  // of the processor
  Cycle cycles = 0;
  std::int64_t flit_hops = 0;
};

template <typename SomeNetwork>
Run run(const std::vector<Packet>& packets) {
  const machine::Chip chip = chip_of(10, 12, 4);
  NoEndpoint endpoint;
  SomeNetwork network(chip, 0, endpoint, 1);
  const std::clock_t start = std::clock();
  for (const Packet& packet : packets) network.send(packet);
  while (network.packets_in_flight() > 0) network.step();
  const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return {taken, network.now(), network.flit_hops()};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The same packets through both, in turn; medians of the processor's time.
void noc_all_to_all_against_reference(benchmark::State& state) {
  const std::vector<Packet> packets = all_to_all(
      static_cast<int>(state.range(0)), state.range(1) != 0, static_cast<int>(state.range(2)));
  std::vector<double> ours;
  std::vector<double> reference;
  Run last;
  for (auto _ : state) {
    const Run network_run = run<FlitNetwork>(packets);
    const Run reference_run = run<ReferenceNetwork>(packets);
    if (network_run.cycles != reference_run.cycles) {
      state.SkipWithError("FlitNetwork and the reference took different numbers of cycles");
      return;
    }
    state.SetIterationTime(network_run.seconds);
    ours.push_back(network_run.seconds);
    reference.push_back(reference_run.seconds);
    last = network_run;
  }
  state.counters["ratio"] = median(reference) / median(ours);
  state.counters["cycles"] = static_cast<double>(last.cycles);
  state.counters["flit_hops"] = static_cast<double>(last.flit_hops) / median(ours);
  state.counters["reference_s"] = median(reference);
}

void against_reference(benchmark::internal::Benchmark* each) {
  each->ArgNames({"pages", "rotated", "apart"})->Unit(benchmark::kMillisecond)->UseManualTime();
}
BENCHMARK(noc_all_to_all_against_reference)
    ->Apply(against_reference)
    ->ArgsProduct({{1, 16}, {0, 1}, {0, 39}})
    ->Iterations(9);
BENCHMARK(noc_all_to_all_against_reference)
    ->Apply(against_reference)
    ->ArgsProduct({{256}, {0, 1}, {0}})
    ->Args({4096, 1, 0})
    ->Iterations(1);

}  // namespace
}  // namespace towpath::noc
