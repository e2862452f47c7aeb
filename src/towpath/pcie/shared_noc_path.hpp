// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "towpath/machine/host.hpp"
#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/chip_path.hpp"
#include "towpath/pcie/device_access.hpp"
#include "towpath/pcie/tile_requests.hpp"
#include "towpath/sim/simulation.hpp"

namespace towpath::pcie {

// Posted writes of a host if kernels also use the chip's NoC. The places are those of PostedWrites,
// and a write is done when its request on the NoC is done.
class LineQueue {
 public:
  LineQueue(const machine::Host& host, noc::ChipNetwork& network);
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;

  // The current process passes at most a line, after waiting for a place.
  void pass(NocWrites::Write line);
  // Waits until all lines are acknowledged or, if posted, in memory.
  void wait_for_all();
  bool is_empty() const { return lines_.empty() && noc_.unfinished() == 0; }

 private:
  void send();
  static void left(void* self);
  void changed();
  void wait();

  sim::Simulation& simulation_;
  std::size_t places_;
  std::size_t chip_places_;
  Time interval_;
  Rate link_rate_;
  Time way_;  // of the last byte, from the link to the NoC
  NocWrites noc_;
  std::deque<NocWrites::Write> lines_;  // accepted lines; the first is leaving if is_leaving_
  bool is_leaving_ = false;
  std::vector<sim::Process*> waiting_;
};

// The path over a chip's network that kernels also use: each waits for the other. Calls of several
// processes may be in flight. Kernels reach the host's buffers through DeviceAccess.
class SharedNocPath final : public ChipPath {
 public:
  SharedNocPath(const LinkEnds& ends, noc::ChipNetwork& network, SysmemBuffers& buffers,
                LinkFree& link_free)
      : ends_(ends),
        network_(network),
        link_free_(link_free),
        lines_(ends.host, network),
        device_(ends.host, network, buffers, link_free) {}
  SharedNocPath(const SharedNocPath&) = delete;
  SharedNocPath& operator=(const SharedNocPath&) = delete;

  DeviceAccess& device() { return device_; }

  void write(Account& account, const Piece& piece, std::span<const std::byte> data) override;
  void read(Account& account, const Piece& piece, std::span<std::byte> to,
            const Loads& loads) override;
  void write_by_dma(Account& account, const DmaPart& part,
                    std::span<const std::byte> data) override;
  void read_by_dma(Account& account, const DmaPart& part, std::span<std::byte> to) override;
  void wait_for_writes() override { lines_.wait_for_all(); }

 private:
  void spend_stream(Account& account, const DmaPart& part, Direction direction) const;

  LinkEnds ends_;
  noc::ChipNetwork& network_;
  LinkFree& link_free_;
  LineQueue lines_;
  DeviceAccess device_;
};

}  // namespace towpath::pcie
