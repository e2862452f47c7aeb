// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <vector>

#include "towpath/pcie/chip_path.hpp"
#include "towpath/pcie/device_access.hpp"

namespace towpath::pcie {

// The path over a NoC without other traffic: its part of each time is computed (noc_way). Posted
// writes land in the chip's memory later, in order.
class IdleNocPath final : public ChipPath {
 public:
  IdleNocPath(const LinkEnds& ends, ChipMemory& memory, Limits limits, LinkFree& link_free)
      : ends_(ends),
        memory_(memory),
        limits_(limits),
        posted_(ends.host, ends.chip, limits),
        link_free_(link_free) {}
  IdleNocPath(const IdleNocPath&) = delete;
  IdleNocPath& operator=(const IdleNocPath&) = delete;

  void write(Account& account, const Piece& piece, std::span<const std::byte> data) override;
  void read(Account& account, const Piece& piece, std::span<std::byte> to,
            const Loads& loads) override;
  void write_by_dma(Account& account, const DmaPart& part,
                    std::span<const std::byte> data) override;
  void read_by_dma(Account& account, const DmaPart& part, std::span<std::byte> to) override;
  void wait_for_writes() override {
    ends_.simulation.sleep_until(std::max(ends_.simulation.now(), posted_.all_done()));
  }

 private:
  // Bytes that arrive in the chip's memory at one time.
  struct Landing {
    IdleNocPath* path;
    noc::Address to;
    std::vector<std::byte> bytes;
    std::list<Landing>::iterator place;
  };
  void land(Time when, noc::Address to, std::span<const std::byte> bytes);
  static void landed(void* landing);
  void spend_stream(Account& account, const DmaPart& part, Direction direction);

  LinkEnds ends_;
  ChipMemory& memory_;
  Limits limits_;
  PostedWrites posted_;
  LinkFree& link_free_;
  std::list<Landing> landings_;
};

}  // namespace towpath::pcie
