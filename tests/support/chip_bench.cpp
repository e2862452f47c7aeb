// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "chip_bench.hpp"

#include <stdexcept>

namespace towpath::noc {

Data pattern(std::uint64_t size_bytes, std::uint64_t seed) {
  Data data(size_bytes);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>((i * 31 + i / 251 + seed * 97 + 1) & 0xff);
  }
  return data;
}

void Bench::issue_all(std::vector<Request> requests) {
  simulation.spawn("issuer", [this, requests = std::move(requests)] {
    for (const Request& request : requests) {
      while (!network.is_ready(request.noc, request.core, request.initiator)) {
        network.wake_when(
            request.noc, request.core,
            {[](const NiuCounters& counters, int initiator) {
               return counters.packets_to_start[static_cast<std::size_t>(initiator)] == 0;
             },
             request.initiator},
            *simulation.current());
        simulation.suspend();
      }
      network.issue(request);
    }
  });
}

Request write(Coordinate to, std::uint64_t size_bytes, int noc) {
  Request request;
  request.noc = noc;
  request.core = kCore;
  request.remote = {to, kTarget};
  request.size_bytes = size_bytes;
  return request;
}

Request read(Coordinate from, std::uint64_t size_bytes, int noc) {
  Request request = write(from, size_bytes, noc);
  request.kind = RequestKind::read;
  request.initiator = 1;
  return request;
}

Request word_request(RequestKind kind, Coordinate to, std::uint32_t value, int noc) {
  Request request = write(to, kWordBytes, noc);
  request.kind = kind;
  request.initiator = 3;
  request.value = value;
  return request;
}

Request multicast(Coordinate least, Coordinate most, std::uint64_t size_bytes, int noc) {
  const auto [first, last] = noc == 0 ? std::pair(least, most) : std::pair(most, least);
  Request request = write(first, size_bytes, noc);
  request.is_multicast = true;
  request.last_tile = last;
  request.vc = 4;
  return request;
}

}  // namespace towpath::noc
