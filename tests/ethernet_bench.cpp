// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "ethernet_bench.hpp"

#include <algorithm>

namespace towpath::ethernet {

using namespace literals;

// Rates, frames and queues: tt-isa-documentation, EthernetTile. Times and read rates are fitted on
// tt-metal tests/tt_metal/microbenchmarks/ethernet: command_time on 16 B one way, path_time on 16 B
// there and back (894 ns); no document gives the timeout and the training.
machine::EthernetFigures wormhole_figures() {
  machine::EthernetFigures figures;
  figures.command_time = 56_ns;
  figures.read_rate = 128_GBps;
  figures.line_rate = 12.5_GBps;
  figures.path_time = 436'440_ps;
  figures.resend_timeout = 20_us;
  figures.training_time = 10_us;
  return figures;
}

// There is no measured latency of Blackhole: the path is Wormhole's.
machine::EthernetFigures blackhole_figures() {
  machine::EthernetFigures figures = wormhole_figures();
  figures.tx_queues = 3;
  figures.command_time = 127_ns;
  figures.read_rate = 54_GBps;
  figures.line_rate = 25_GBps;
  return figures;
}

void PlainMemory::read(std::uint64_t offset, std::span<std::byte> to) const {
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
  const bool is_source = std::ranges::any_of(held, [&](const auto& entry) {
    const Write& source = entry.second;
    return source.offset <= offset && offset + to.size() <= source.offset + source.size_bytes;
  });
  if (!is_source) bytes_read_unheld += to.size();
}

void PlainMemory::write(std::uint64_t offset, std::span<const std::byte> from) {
  std::copy(from.begin(), from.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  writes.push_back({simulation_.now(), offset, from.size()});
  on_write();
}

void PlainMemory::write_register(std::uint64_t address, std::uint32_t value) {
  registers[address] = value;
  on_write();
}

void PlainMemory::hold_source(CommandNumber command, std::uint64_t offset,
                              std::uint64_t size_bytes) {
  held[command] = {simulation_.now(), offset, size_bytes};
}

void PlainMemory::release_source(CommandNumber command) {
  held.erase(command);
  on_release(command);
}

void PortPair::wait_until_free(Port& port, int queue) {
  while (port.is_busy(queue)) {
    port.wake_when_free(queue, *simulation.current());
    simulation.suspend("a free queue");
  }
}

void PortPair::answer_routing() {
  const auto answer = [](void* port) { static_cast<Port*>(port)->run_routing(); };
  a.set_listener(answer, &a);
  b.set_listener(answer, &b);
}

Command write_of(std::uint64_t source, std::uint64_t destination, std::uint64_t size_bytes) {
  return {.source = source, .destination = destination, .size_bytes = size_bytes};
}

double one_way_gb_per_s(const machine::EthernetFigures& figures, std::uint64_t size_bytes) {
  constexpr int kCommands = 200;
  PortPair pair(figures);
  pair.simulation.spawn("sender", [&] {
    for (int i = 0; i < kCommands; ++i) {
      pair.wait_until_free(pair.a, 0);
      pair.a.send(0, write_of(0, 0, size_bytes));
    }
  });
  pair.simulation.run();
  std::vector<Time> ends;  // of the commands
  for (const PlainMemory::Write& write : pair.memory_b.writes) {
    if (write.offset + write.size_bytes == size_bytes) ends.push_back(write.at);
  }
  const double bytes = static_cast<double>(size_bytes) * static_cast<double>(ends.size() - 1);
  return bytes / (ends.back() - ends.front()).ns();
}

Time ping_pong_time(const machine::EthernetFigures& figures, std::uint64_t size_bytes) {
  PortPair pair(figures);
  const auto is_complete = [&](const PlainMemory& memory) {
    const PlainMemory::Write& last = memory.writes.back();
    return last.offset + last.size_bytes == size_bytes;
  };
  Time answered;
  sim::Process& answerer = pair.simulation.spawn("answerer", [&] {
    while (pair.memory_b.writes.empty() || !is_complete(pair.memory_b)) {
      pair.simulation.suspend("the payload");
    }
    pair.b.send(0, write_of(0, 0, size_bytes));
  });
  pair.memory_b.on_write = [&] { pair.simulation.wake(answerer); };
  pair.memory_a.on_write = [&] {
    if (is_complete(pair.memory_a)) answered = pair.simulation.now();
  };
  pair.a.send(0, write_of(0, 0, size_bytes));
  pair.simulation.run();
  return answered;
}

}  // namespace towpath::ethernet
