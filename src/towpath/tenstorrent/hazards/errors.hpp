// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "towpath/base/deadlock_error.hpp"
#include "towpath/machine/chip.hpp"

// Errors that end a run of kernels. Each has a sentence, and fields for programs.

namespace towpath::tenstorrent {

// Synchronization mistakes of kernels, most of them between several chips. They are derived from
// the happens-before order, so they are found in every run, even if they have no effect in it.
enum class Hazard : std::uint8_t {
  missing_handshake,                     // sends to a kernel that may not have started
  missing_teardown,                      // ends before the arrival of data sent to it
  source_overwritten,                    // changes bytes that a send may still read, or read again
  sync_before_payload,                   // announces or uses bytes that may not have arrived
  acknowledgement_from_channel_word,     // sends an acknowledgement from the word of a channel
  semaphore_cleared_after_notification,  // increments in between are lost
  two_workers_on_one_channel,            // both write the same buffer without synchronization
  buffer_not_there,          // uses bytes of another chip that may not be the buffer's yet
  buffer_freed,              // uses bytes of another chip after the buffer may have been freed
  used_before_barrier,       // uses or hands on bytes that may still be on their way
  reused_before_flushed,     // gives back bytes that a write may still have to read
  link_down_without_routing  // no kernel that could train the link yields to the base firmware
};
std::string_view name_of(Hazard hazard);

// The kernel with the mistake. `chip` is its number in the cluster.
struct KernelName {
  int chip = 0;
  machine::Coordinate core;
  std::string kernel;
};

class HazardError : public std::runtime_error {
 public:
  HazardError(Hazard hazard, KernelName culprit, const std::string& sentence)
      : std::runtime_error(sentence), hazard_(hazard), culprit_(std::move(culprit)) {}

  Hazard hazard() const { return hazard_; }
  const KernelName& culprit() const { return culprit_; }

 private:
  Hazard hazard_;
  KernelName culprit_;
};

// A deadlock that involves kernels.
class KernelDeadlock : public DeadlockError {
 public:
  KernelDeadlock(const std::string& sentence, std::vector<std::string> cycle,
                 std::vector<KernelName> kernels)
      : DeadlockError(sentence, std::move(cycle)), kernels_(std::move(kernels)) {}

  // Kernels of the cycle, in its order. Empty for a cycle of packets, and without one.
  const std::vector<KernelName>& kernels() const { return kernels_; }

 private:
  std::vector<KernelName> kernels_;
};

}  // namespace towpath::tenstorrent
