// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "towpath/noc/chip_network.hpp"
#include "towpath/pcie/chip_path.hpp"
#include "towpath/pcie/device_access.hpp"
#include "towpath/pcie/line_queue.hpp"

namespace towpath::pcie {

// The path over a chip's network that kernels use too: each waits for the other. Calls of several
// processes may be under way. Kernels reach the host's buffers by DeviceAccess.
class SharedNocPath final : public ChipPath {
 public:
  SharedNocPath(const LinkEnds& ends, noc::ChipNetwork& network, SysmemBuffers& buffers,
                LinkFree& link_free);
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
