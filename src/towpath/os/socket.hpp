// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/os/file_descriptor.hpp"

// Unix sockets at abstract addresses: messages with file descriptors, and a deadline everywhere.

namespace towpath::os {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// From now on; without overflow for the longest times.
Deadline deadline_after(Time timeout);

inline constexpr std::size_t kAddressLengthMax = 100;

// Not open when the address is taken. Nobody can connect before listen_on, which listen_at does
// too.
FileDescriptor bind_to(const std::string& address);
void listen_on(const FileDescriptor& socket);
FileDescriptor listen_at(const std::string& address);

// Not open when nobody listens there or, with errno EAGAIN, nobody has accepted for too long.
FileDescriptor connect_to(const std::string& address);

// The next one who connected; not open when there is none, or when it belongs to another user.
FileDescriptor accept_from(const FileDescriptor& listener);

enum class Outcome { done, closed, late };

// Whether the other side of a Unix socket belongs to this process's user.
bool is_same_user(const FileDescriptor& socket);

// Waits until one of these events of poll(2) happens: done, or late.
Outcome wait_for(const FileDescriptor& socket, short events, Deadline deadline);

Outcome send_message(const FileDescriptor& socket, const void* message, std::size_t size_bytes,
                     const std::vector<int>& descriptors, Deadline deadline);

// A message of another size counts as a closed connection.
Outcome receive_message(const FileDescriptor& socket, void* message, std::size_t size_bytes,
                        std::vector<FileDescriptor>& descriptors, Deadline deadline);

// Waits until one of the sockets can be read or is closed; which ones, by index. Empty when late.
std::vector<std::size_t> wait_readable(const std::vector<const FileDescriptor*>& sockets,
                                       Deadline deadline);

}  // namespace towpath::os
