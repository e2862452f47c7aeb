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

// What ends a run of kernels. All of it is told in one sentence; what a program may want to look at
// is beside the sentence.

namespace towpath::tenstorrent {

// Mistakes in kernels that send over Ethernet. They are found from what each kernel can know of the
// others, so that they are found in every run, not only in those that they spoil.
enum class Hazard : std::uint8_t {
  missing_handshake,    // a kernel sends to one of which it cannot know that it has started
  missing_teardown,     // a kernel ends while something is, or will be, on its way to it
  source_overwritten,   // bytes change that a send may still have to read, or read again
  sync_before_payload,  // a kernel is told of, or uses, bytes that may not have arrived
  acknowledgement_from_channel_word,     // the source of an acknowledgement is a channel's own word
  semaphore_cleared_after_notification,  // what is counted meanwhile is lost
  two_workers_on_one_channel,  // both write the same buffer, and neither knows of the other
  link_down_without_routing    // whoever could train it does not yield to the base firmware
};
std::string_view name_of(Hazard hazard);

// Who did it. `chip` is the number of the chip in its cluster.
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

// A deadlock that kernels take part in.
class KernelDeadlock : public DeadlockError {
 public:
  KernelDeadlock(const std::string& sentence, std::vector<std::string> cycle,
                 std::vector<KernelName> kernels)
      : DeadlockError(sentence, std::move(cycle)), kernels_(std::move(kernels)) {}

  // Kernels of the cycle, in its order; empty when the cycle is one of packets, or unknown.
  const std::vector<KernelName>& kernels() const { return kernels_; }

 private:
  std::vector<KernelName> kernels_;
};

}  // namespace towpath::tenstorrent
