// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "towpath/tenstorrent/core/call_costs.hpp"
#include "towpath/tenstorrent/metalium/kernel_runtime.hpp"
#include "towpath/tenstorrent/metalium/worker_memory_map.hpp"

namespace towpath::tenstorrent::metalium {

namespace {

// Connection headers in flight, and the segment lists of scattering packets.
constexpr std::uint64_t kHeaderBytes = sizeof(fabric::Header) + sizeof(fabric::SegmentList);
constexpr std::uint32_t kHeaders = 16;
static_assert(fabric::Connection::kWordsBytes + kHeaders * kHeaderBytes <=
              worker_memory_map::kConnectionBytes);

}  // namespace

KernelConnections::~KernelConnections() = default;

template <typename Action>
decltype(auto) KernelConnections::named(Action action) const {
  try {
    return action();
  } catch (const std::invalid_argument& error) {
    refuse(core_, error.what());
  }
}

const KernelFabric& KernelConnections::fabric() const {
  if (fabric_ == nullptr) {
    refuse(core_,
           "it uses the fabric, but its program runs without one; start it with the option fabric");
  }
  return *fabric_;
}

KernelConnections::Connection& KernelConnections::at(std::uint32_t channel) {
  const auto found = connections_.find(channel);
  if (found == connections_.end()) {
    refuse(core_, "it uses a connection to a router that it has not opened");
  }
  return found->second;
}

void KernelConnections::open(std::uint32_t channel) {
  Connection& connection = connections_[channel];
  connection = {};
  connection.port = named([&] { return fabric().port(chip(), channel); });
  const std::uint64_t words = worker_memory_map::connection_at(channel);
  connection.headers = words + fabric::Connection::kWordsBytes;
  connection.worker =
      std::make_unique<fabric::Connection>(memory_.called(CallCode::write), connection.port, words,
                                           fabric::ConnectionOptions{.is_posted = false});
  connection.worker->open();
}

void KernelConnections::close(std::uint32_t channel) {
  memory_.called(CallCode::write);
  at(channel).worker->close();
}

void KernelConnections::wait_for_slot(std::uint32_t channel) {
  memory_.called(CallCode::write);
  at(channel).worker->wait_for_free_slot();
}

void KernelConnections::write_payload(std::uint32_t channel, std::uint32_t from,
                                      std::uint32_t size_bytes) {
  memory_.called(CallCode::write);
  at(channel).worker->write_payload(from, size_bytes);
}

bool KernelConnections::has_slot(std::uint32_t channel) {
  fabric::Connection& worker = *at(channel).worker;
  clock_.owe(kPollCycles);
  memory_.looking();
  memory_.count_poll(worker.credit_at());
  return worker.has_free_slot();
}

std::uint32_t KernelConnections::direction(std::uint32_t channel) const {
  return named([&] { return fabric().direction_of(chip(), channel); });
}

std::uint32_t KernelConnections::direction_to(std::uint32_t to) const {
  return named([&] { return fabric().direction_to(chip(), to); });
}

void KernelConnections::send(std::uint32_t channel, const TowpathPacket& packet) {
  memory_.called(CallCode::write);
  Connection& connection = at(channel);
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
