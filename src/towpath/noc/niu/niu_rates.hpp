// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/machine/chip.hpp"
#include "towpath/noc/router/packet.hpp"

namespace towpath::noc {

// Time from one flit to the next at a NIU's port.
struct NiuRates {
  explicit NiuRates(const machine::Chip& chip)
      : port_interval(flit_interval(chip.router.flit_bytes, chip.niu.port_rate)),
        multicast_interval(flit_interval(chip.router.flit_bytes, chip.niu.multicast_rate)) {}

  // The interval of a packet at the NIU that sends it.
  PaceTime interval_of(const Packet& packet) const {
    return packet.tree >= 0 ? multicast_interval : port_interval;
  }

  PaceTime port_interval;
  PaceTime multicast_interval;
};

}  // namespace towpath::noc
