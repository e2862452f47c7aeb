// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "towpath/os/file_descriptor.hpp"
#include "towpath/os/socket.hpp"

// Streams of bytes between processes, with a deadline everywhere. An address is "HOST:PORT", over
// TCP, or any other name: an abstract address of this host, for processes of the same user.

namespace towpath::os {

// Whether an address is a host and a port.
bool is_network_address(const std::string& address);

// Not open when the address is taken. Throws std::system_error where this host cannot listen there,
// std::invalid_argument for a host that has no address, or is not this one.
FileDescriptor listen_stream(const std::string& address);

// Listens at a port that is free, on an address or a name of this host, and says the HOST:PORT by
// which others come. Throws as listen_stream.
FileDescriptor listen_anywhere(const std::string& host, std::string& address);

// Not open when nobody listens there yet, at any of the addresses that a name has.
FileDescriptor connect_stream(const std::string& address, Deadline deadline);

// The next one who connected; not open when there is none, or when it belongs to another user of
// this host.
FileDescriptor accept_stream(const FileDescriptor& listener);

Outcome send_bytes(const FileDescriptor& socket, std::span<const std::byte> bytes,
                   Deadline deadline);
// Closed also where the other side ends in the middle of them.
Outcome receive_bytes(const FileDescriptor& socket, std::span<std::byte> bytes, Deadline deadline);

}  // namespace towpath::os
