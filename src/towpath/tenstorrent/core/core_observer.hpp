// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/machine/chip_cluster.hpp"

namespace towpath::noc {
struct Request;
}
namespace towpath::ethernet {
struct Command;
}

namespace towpath::tenstorrent {

// What others do for a kernel on another chip: they write bytes that it has handed to them, and
// then change a word.
struct Errand {
  struct Bytes {
    machine::Coordinate tile;
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
  };
  struct Word {
    machine::Coordinate tile;
    std::uint64_t offset = 0;
    std::uint32_t value = 0;
    bool is_increment = true;
    // It changes when all bytes written before have arrived, otherwise only those of its tile.
    bool is_behind_everything = false;
  };
  int chip = 0;
  std::vector<Bytes> bytes{};
  std::optional<Word> word{};
};

// Observer of what one kernel does. Its core reports each action beforehand, except where stated
// otherwise; an exception stops the action. This class ignores everything.
class CoreObserver {
 public:
  virtual ~CoreObserver() = default;

  // The kernel has seen a word of its own L1, and goes on because of `needed`, which is less where
  // it waits for a minimum; it uses bytes of it; it is going to change them.
  virtual void looked(std::uint64_t /*offset*/, std::uint32_t /*value*/, std::uint32_t /*needed*/) {
  }
  virtual void using_bytes(std::uint64_t /*offset*/, std::uint64_t /*size_bytes*/) {}
  virtual void storing(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {}
  // The kernel is going to hand over a request, or a command of an Ethernet core.
  virtual void issuing(const noc::Request&) {}
  virtual void sending(int /*queue*/, const ethernet::Command&) {}
  // Number of bytes, of what it sends from now on, that are payload of a channel; number that it
  // announces.
  virtual void sending_payload(int /*channel*/, std::uint64_t /*size_bytes*/) {}
  virtual void announcing(int /*channel*/, std::uint64_t /*size_bytes*/) {}
  // The kernel sends the acknowledgement of a channel from a word.
  virtual void acknowledging(int /*channel*/, std::uint64_t /*from*/) {}
  // The kernel opens a line over which others run errands for it, in order; it has closed it.
  virtual void opening_line(int /*line*/) {}
  virtual void closed_line(int /*line*/) {}
  // The kernel hands over a packet with errands on several chips. Returns a number by which whoever
  // carries them out calls it.
  virtual std::size_t entrusting(int /*line*/, std::vector<Errand> /*errands*/) { return 0; }
  // The kernel has waited for any of the words to change that it had looked at.
  virtual void idled() {}
};

// Observer of the frames that the port of an Ethernet core receives.
class FrameObserver {
 public:
  virtual ~FrameObserver() = default;
  // A frame is going to be written into the L1 of the core at this end of a link.
  virtual void arriving(machine::EthernetEnd at, std::uint64_t offset,
                        std::span<const std::byte> bytes) = 0;
};

}  // namespace towpath::tenstorrent
