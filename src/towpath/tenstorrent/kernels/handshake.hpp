// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/core/ethernet_core.hpp"

// First and last steps of the kernels at both ends of a link. Programs of different chips start and
// end at different times: a kernel may send only after its peer has started, and may end only after
// the arrival of all data sent to it.

namespace towpath::tenstorrent::kernels {

// Handshake with one end as the master. It sends 16 bytes over channel 0 and waits for its peer's
// done (tt-metal, Basic Ethernet Multichip, "Ethernet Kernel Setup").
void handshake(EthernetCore& core, bool is_master);

inline constexpr std::uint32_t kHandshakeMagic = 0xaa;

// The master resends a word until the word returns (tt-metal, edm_handshake.hpp). `scratch` is 16
// bytes of the kernel's L1. Consecutive kernels on a link need different magic numbers, because
// surplus words arrive after the handshake. A peer that never starts is not detected as a hang,
// because the master never blocks. Such runs need a cycles_max.
void handshake_with_magic(EthernetCore& core, bool is_master, std::uint64_t scratch,
                          std::uint32_t magic = kHandshakeMagic);

// Teardown of a sender: waits until the receivers of these channels have consumed all data.
void teardown(EthernetCore& core, int first_channel, int channels);

}  // namespace towpath::tenstorrent::kernels
