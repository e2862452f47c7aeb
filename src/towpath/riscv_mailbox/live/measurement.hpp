// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "towpath/riscv_mailbox/live/mailbox.hpp"

// Two processes that measure their mailboxes, and the transfer of a cache line. Both
// make the same calls in the same order, one as the initiator. The caller pins them.

namespace towpath::riscv_mailbox::live {

class Measurement {
 public:
  // Creates the mailbox `own` and waits until there is one called `other`. Throws
  // std::runtime_error if there is none within `timeout`.
  Measurement(const std::string& own, const std::string& other, bool is_initiator, Time timeout);

  // One-way time of each iteration in nanoseconds, half of a round trip by the processor's counter.
  // Empty on the responder. For a word in a cache line that both sides poll:
  std::vector<double> line_ping_pong_ns(int iterations);
  // For a message of `size_bytes`:
  std::vector<double> ping_pong_ns(int iterations, int size_bytes);
  // The initiator sends and the responder receives: messages per second of each block, measured by
  // the responder. Empty on the initiator.
  std::vector<double> messages_per_s(int blocks, int block_messages, int size_bytes);
  // Mean time of a message through a mailbox of only this process, per block. All data is in its
  // cache, so this is the cost of the software.
  std::vector<double> local_ns(int blocks, int block_messages, int size_bytes);

 private:
  bool is_initiator_;
  Mailbox own_;
  Receiver receiver_;
  Mailbox other_;
  Sender sender_;
  std::uint64_t line_value_ = 0;
};

}  // namespace towpath::riscv_mailbox::live
