// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "towpath/tenstorrent/device/ethernet_core.hpp"

// What the kernels at both ends of a link do first and last. Programs of different chips start and
// end at different times: a kernel may send only once it knows that its peer runs, and ends only
// once everything that is sent to it has arrived.

namespace towpath::tenstorrent::kernels {

using tenstorrent::EthernetCore;

// One end is the master. It sends 16 bytes over channel 0 and waits until its peer says done
// (tt-metal, Basic Ethernet Multichip, "Ethernet Kernel Setup").
void handshake(EthernetCore& core, bool is_master);

inline constexpr std::uint32_t kHandshakeMagic = 0xaa;

// The master sends a word until it sees it come back (tt-metal, edm_handshake.hpp). `scratch` are
// 16 bytes of the kernel's own. Kernels that follow one another on a link each need a magic of
// their own: a word that was sent too often arrives after the handshake. A peer that never starts
// is not seen as a hang, since the master never waits; give such runs a cycles_max.
void handshake_with_magic(EthernetCore& core, bool is_master, std::uint64_t scratch,
                          std::uint32_t magic = kHandshakeMagic);

// A sender's: waits until the receivers of these channels have used what was sent to them.
void teardown(EthernetCore& core, int first_channel, int channels);

}  // namespace towpath::tenstorrent::kernels
