// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/base/units.hpp"

namespace towpath {

// The way in which a signal becomes visible after its payload. The names are NCCL's. Machines
// define their costs, transports implement them, and schedules select them.
//   simple: payload, fence, then a flag
//   ll:     4 bytes of flag next to each 4 of data, so that no fence is needed
//   ll128:  8 bytes of flag in each 128
enum class Protocol : std::uint8_t { simple, ll, ll128 };
inline constexpr int kProtocols = 3;

// Bytes on the wire for each byte of payload, as a fraction.
struct Expansion {
  std::uint32_t numerator = 1;
  std::uint32_t denominator = 1;
};
constexpr Expansion wire_expansion(Protocol protocol) {
  switch (protocol) {
    case Protocol::simple: return {1, 1};
    case Protocol::ll: return {2, 1};
    case Protocol::ll128: return {16, 15};
  }
  return {};
}

// `payload`, or its rate, on the wire. Rounded up.
constexpr std::uint64_t on_wire(std::uint64_t payload, Protocol protocol) {
  const Expansion expansion = wire_expansion(protocol);
  return (payload * expansion.numerator + expansion.denominator - 1) / expansion.denominator;
}
constexpr Bytes on_wire(Bytes payload, Protocol protocol) {
  return Bytes(on_wire(payload.count(), protocol));
}
constexpr Rate on_wire(Rate payload, Protocol protocol) {
  const auto per_second = static_cast<std::uint64_t>(payload.bytes_per_second());
  return Rate::from_bytes_per_second(static_cast<std::int64_t>(on_wire(per_second, protocol)));
}

}  // namespace towpath
