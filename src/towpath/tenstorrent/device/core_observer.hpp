// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace towpath::noc {
struct Request;
}
namespace towpath::ethernet {
struct Command;
}

namespace towpath::tenstorrent {

// Observer of what one kernel does. Its core reports each action beforehand, except where stated
// otherwise; an exception stops the action. This class ignores everything.
class CoreObserver {
 public:
  virtual ~CoreObserver() = default;

  // The kernel has seen a word of its own L1; it uses bytes of it; it is going to change them.
  virtual void looked(std::uint64_t /*offset*/, std::uint32_t /*value*/) {}
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
  // The kernel has waited for any of the words to change that it had looked at.
  virtual void idled() {}
};

}  // namespace towpath::tenstorrent
