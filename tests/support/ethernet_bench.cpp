// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "ethernet_bench.hpp"

#include <algorithm>

namespace towpath::ethernet {

using namespace literals;

machine::EthernetParameters plain_figures() {
  return {.tx_queues = 2,
          .tx_queues_for_kernels = 1,
          .queue_commands_max = 2,
          .command_time = 56_ns,
          .read_rate = 128_GBps,
          .word_bytes = 16,
          .frame_payload_bytes_max = 1500,
          .frame_overhead_bytes = 50,
          .line_rate = 12.5_GBps,
          .delivery_rate = 12.5_GBps,
          .path_time = 440_ns,
          .frames_unacknowledged_max = 64,
          .resend_timeout = 20_us,
          .training_time = 10_us};
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

}  // namespace towpath::ethernet
