// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <stdexcept>

#include "towpath/tenstorrent/metalium/kernel_fabric.hpp"
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"

// Connections of a kernel in source form to routers of the fabric.

namespace towpath::tenstorrent::metalium {

namespace {

// Headers of a connection that are on their way, and the lists of those that scatter.
constexpr std::uint64_t kHeaderBytes = sizeof(fabric::Header) + sizeof(fabric::SegmentList);
constexpr std::uint32_t kHeaders = 16;
static_assert(fabric::Connection::kWordsBytes + kHeaders * kHeaderBytes <=
              worker_memory_map::kConnectionBytes);

}  // namespace

struct KernelRuntime::Connection {
  fabric::RouterPort port;
  std::unique_ptr<fabric::Connection> worker{};
  std::uint64_t headers = 0;
  std::uint32_t packets = 0;
};

template <typename Action>
decltype(auto) KernelRuntime::named(Action action) const {
  try {
    return action();
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
}

const KernelFabric& KernelRuntime::fabric() const {
  if (setup_.fabric == nullptr) {
    refuse("it uses the fabric, and its program runs without one; the option fabric starts it");
  }
  return *setup_.fabric;
}

KernelRuntime::Connection& KernelRuntime::connection(std::uint32_t channel) {
  const auto found = connections_.find(channel);
  if (found == connections_.end())
    refuse("it uses a connection to a router that it has not opened");
  return *found->second;
}

void KernelRuntime::fabric_open(std::uint32_t channel) {
  auto& opened = connections_[channel];
  opened = std::make_shared<Connection>();
  Connection& connection = *opened;
  connection.port = named([&] { return fabric().port(chip(), channel); });
  const std::uint64_t words = worker_memory_map::connection_at(channel);
  connection.headers = words + fabric::Connection::kWordsBytes;
  connection.worker =
      std::make_unique<fabric::Connection>(called(CallCode::write), connection.port, words,
                                           fabric::ConnectionOptions{.is_posted = false});
  connection.worker->open();
}

void KernelRuntime::fabric_close(std::uint32_t channel) {
  called(CallCode::write);
  connection(channel).worker->close();
}

bool KernelRuntime::fabric_has_slot(std::uint32_t channel) {
  fabric::Connection& worker = *connection(channel).worker;
  carry_out_store();
  debt_cycles_ += kPollCycles;
  pay();
  count_poll(worker.credit_at());
  return worker.has_free_slot();
}

void KernelRuntime::fabric_wait_for_slot(std::uint32_t channel) {
  called(CallCode::write);
  connection(channel).worker->wait_for_free_slot();
}

std::uint32_t KernelRuntime::fabric_direction(std::uint32_t channel) const {
  return named([&] { return fabric().direction_of(chip(), channel); });
}

std::uint32_t KernelRuntime::fabric_direction_to(std::uint32_t to) const {
  return named([&] { return fabric().direction_to(chip(), to); });
}

void KernelRuntime::fabric_write_payload(std::uint32_t channel, std::uint32_t from,
                                         std::uint32_t size_bytes) {
  called(CallCode::write);
  connection(channel).worker->write_payload(from, size_bytes);
}

void KernelRuntime::fabric_send(std::uint32_t channel, const TowpathPacket& packet) {
  called(CallCode::write);
  Connection& connection = this->connection(channel);
  const fabric::Header header = named([&] { return fabric().header_of(connection.port, packet); });
  const std::uint64_t header_at =
      connection.headers + connection.packets++ % kHeaders * kHeaderBytes;
  if (fabric::scatters(header.operation)) {
    const fabric::SegmentList list = segments_of(packet);
    core_.store(header_at + sizeof(header), fabric::bytes_of(list));
    connection.worker->write_payload(header_at + sizeof(header), sizeof(list),
                                     fabric::list_offset(header));
  }
  connection.worker->send_header(header, header_at);
}

}  // namespace towpath::tenstorrent::metalium
