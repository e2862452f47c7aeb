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

// The work of a packet at its destination: routers write its payload for the sending kernel, and
// then change a word.
struct Delivery {
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
    // It changes after all earlier bytes. Otherwise only earlier bytes of its tile come first.
    bool is_behind_everything = false;
  };
  int chip = 0;
  std::vector<Bytes> bytes{};
  std::optional<Word> word{};
};

// Observer of the actions of one kernel. Its core reports each action beforehand, unless stated
// otherwise. An exception stops the action. This base class does nothing.
class CoreObserver {
 public:
  virtual ~CoreObserver() = default;

  // The kernel has read a word of its L1, and continues because of `needed`, which is less than the
  // value if it waits for a minimum. It uses bytes of its L1. It is about to store bytes.
  virtual void looked(std::uint64_t /*offset*/, std::uint32_t /*value*/, std::uint32_t /*needed*/) {
  }
  virtual void using_bytes(std::uint64_t /*offset*/, std::uint64_t /*size_bytes*/) {}
  virtual void storing(std::uint64_t /*offset*/, std::span<const std::byte> /*bytes*/) {}
  // The kernel is about to issue a request, or has submitted a command of an Ethernet core.
  virtual void issuing(const noc::Request&) {}
  virtual void sending(int /*queue*/, const ethernet::Command&) {}
  // Payload of a channel in later commands, and payload that the kernel announces to the receiver.
  virtual void sending_payload(int /*channel*/, std::uint64_t /*size_bytes*/) {}
  virtual void announcing(int /*channel*/, std::uint64_t /*size_bytes*/) {}
  // The kernel sends the acknowledgement of a channel from a word.
  virtual void acknowledging(int /*channel*/, std::uint64_t /*from*/) {}
  // The kernel opens a connection to a router, or has closed it.
  virtual void opening_connection(int /*connection*/) {}
  virtual void closed_connection(int /*connection*/) {}
  // The kernel sends a packet that is delivered on several chips. Returns its number.
  virtual std::size_t sending_packet(int /*connection*/, std::vector<Delivery> /*deliveries*/) {
    return 0;
  }
  // The kernel has waited for a change of any word that it had read.
  virtual void idled() {}
};

// Observer of the frames that the port of an Ethernet core receives.
class FrameObserver {
 public:
  virtual ~FrameObserver() = default;
  // A frame is about to be written into the L1 of the core at this end of a link.
  virtual void arriving(machine::EthernetEnd at, std::uint64_t offset,
                        std::span<const std::byte> bytes) = 0;
};

}  // namespace towpath::tenstorrent
