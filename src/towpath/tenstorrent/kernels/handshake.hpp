// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/device/ethernet_core.hpp"

// First and last steps of the kernels at both ends of a link. Programs of different chips start and
// end at different times: a kernel may send only once it knows that its peer runs, and end only
// once everything sent to it has arrived.

namespace towpath::tenstorrent::kernels {

// Handshake with one end as the master. It sends 16 bytes over channel 0 and waits until its peer
// says done (tt-metal, Basic Ethernet Multichip, "Ethernet Kernel Setup").
void handshake(EthernetCore& core, bool is_master);

inline constexpr std::uint32_t kHandshakeMagic = 0xaa;

// The master sends a word until it sees it come back (tt-metal, edm_handshake.hpp). `scratch` is 16
// bytes of the kernel's own L1. Kernels that follow one another on a link each need a magic of
// their own: a word that was sent too often arrives after the handshake. A peer that never starts
// is not detected as a hang, because the master never waits; give such runs a cycles_max.
void handshake_with_magic(EthernetCore& core, bool is_master, std::uint64_t scratch,
                          std::uint32_t magic = kHandshakeMagic);

// Teardown of a sender: waits until the receivers of these channels have used what was sent.
void teardown(EthernetCore& core, int first_channel, int channels);

}  // namespace towpath::tenstorrent::kernels
