// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <span>

#include "towpath/pcie/chip_path.hpp"

namespace towpath::pcie {

// Transfers by the chip's DMA engine, which the driver starts one part after the other.
class Dma {
 public:
  // A transfer with or without the driver's bounce buffer.
  struct Job {
    Direction direction;
    bool bounces;
    noc::Address address;
    std::uint64_t size_bytes;
    Ordering ordering;
  };

  Dma(const LinkEnds& ends, ChipPath* const& path)
      : ends_(ends),
        path_(path),
        channels_free_(
            std::max(1, std::min(ends.host.driver.dma_channels, ends.chip.pcie.dma_channels))) {}

  // `data` and `to` are the host's bytes. They are looked up for each part, because a buffer may be
  // unmapped between two parts.
  Transfer write(const Job& job, const std::function<std::span<const std::byte>()>& data);
  Transfer read(const Job& job, const std::function<std::span<std::byte>()>& to);

 private:
  template <typename MovePart>
  Transfer run(const Job& job, MovePart move_part);
  Time copy_time(const Job& job, std::uint64_t size_bytes) const;
  Rate bounce_rate(Direction direction, std::uint64_t size_bytes) const;
  void take_channel(Account& account);
  void give_channel();

  LinkEnds ends_;
  ChipPath* const& path_;  // the link's
  int channels_free_;
  std::deque<sim::Process*> waiting_;  // sorted
};

}  // namespace towpath::pcie
