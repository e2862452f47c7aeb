// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "towpath/transport/transport.hpp"

// A Move to a rank whose memory is mapped: copies, and a store that others see after them.

namespace towpath::transport::shm {

// Reads, reduces and stores its payload. `heap`: of the peer; null where there is none.
void carry(const Move& move, std::byte* heap);
// Raises its signal, the peer's `word`, after the payload.
void raise(const Move& move, std::atomic_ref<std::uint64_t> word);

}  // namespace towpath::transport::shm
