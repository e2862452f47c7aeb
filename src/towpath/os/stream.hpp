// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/socket.hpp"

// Byte streams between processes. All waits have a deadline. An address is "HOST:PORT" (TCP) or an
// abstract name on this host, for processes of the same user.

namespace towpath::os {

// True if an address is a host and a port.
bool is_network_address(const std::string& address);

// Not open if the address is in use. Throws std::system_error if this host cannot listen there,
// std::invalid_argument for a host without an address or a different host.
FileDescriptor listen_stream(const std::string& address);

// Listens at a free port of an address or name of this host. Sets `address` to the HOST:PORT for
// clients. Throws the same errors as listen_stream.
FileDescriptor listen_anywhere(const std::string& host, std::string& address);

// Not open if there is no listener at any of the name's addresses.
FileDescriptor connect_stream(const std::string& address, Deadline deadline);

// The next connection. Not open if there is none, or if it belongs to another user of this host.
FileDescriptor accept_stream(const FileDescriptor& listener);

// The name of the interface that leads to a HOST:PORT: "eth0". Empty if there is none.
std::string interface_towards(const std::string& address);

Outcome send_bytes(const FileDescriptor& socket, std::span<const std::byte> bytes,
                   Deadline deadline);
// Also returns closed if the stream ends in the middle of `bytes`.
Outcome receive_bytes(const FileDescriptor& socket, std::span<std::byte> bytes, Deadline deadline);

}  // namespace towpath::os
