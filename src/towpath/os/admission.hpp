// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// A filter of connections to the TCP listeners of a library in this process. The kernel drops all
// other packets before the library reads a byte of them.

namespace towpath::os {

// In network byte order.
using Ipv4Address = std::uint32_t;

struct TcpListener {
  int descriptor;
  std::uint16_t port;  // in network byte order

  bool operator==(const TcpListener&) const = default;
};

// Everything in this process.
std::vector<TcpListener> tcp_listeners();

// Only these hosts may connect from now on, over IPv4. Returns false if the system rejects the
// filter.
bool admit_only(const TcpListener& listener, std::span<const Ipv4Address> hosts);
void admit_all(const TcpListener& listener);

// The IPv4 addresses of this host, with its loopback address.
std::vector<Ipv4Address> ipv4_addresses();

}  // namespace towpath::os
