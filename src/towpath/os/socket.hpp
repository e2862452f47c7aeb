// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/os/file_descriptor.hpp"

// Unix sockets at abstract addresses: messages with file descriptors. All waits have a deadline.

namespace towpath::os {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Saturates for long timeouts.
Deadline deadline_after(Time timeout);

inline constexpr std::size_t kAddressLengthMax = 100;

// Not open if the address is in use. Connections are refused until listen_on; listen_at does both.
FileDescriptor bind_to(const std::string& address);
void listen_on(const FileDescriptor& socket);
FileDescriptor listen_at(const std::string& address);

// Not open if there is no listener or, with errno EAGAIN, its backlog is full.
FileDescriptor connect_to(const std::string& address);

// The next connection. Not open if there is none, or if it belongs to another user.
FileDescriptor accept_from(const FileDescriptor& listener);

enum class Outcome { done, closed, late };

// True if the peer of a Unix socket belongs to this process's user.
bool is_same_user(const FileDescriptor& socket);

// Waits for one of these events of poll(2). Returns done or late.
Outcome wait_for(const FileDescriptor& socket, short events, Deadline deadline);

Outcome send_message(const FileDescriptor& socket, const void* message, std::size_t size_bytes,
                     const std::vector<int>& descriptors, Deadline deadline);

// A message of a different size counts as a closed connection.
Outcome receive_message(const FileDescriptor& socket, void* message, std::size_t size_bytes,
                        std::vector<FileDescriptor>& descriptors, Deadline deadline);

// Waits until at least one socket is readable or closed and returns their indices. Empty on
// timeout.
std::vector<std::size_t> wait_readable(const std::vector<const FileDescriptor*>& sockets,
                                       Deadline deadline);

}  // namespace towpath::os
