// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace towpath::gpu {

// Mistakes of kernels in the use of memory, of waits or of barriers.
enum class Hazard : std::uint8_t {
  source_changed,         // a put's source was overwritten before the put had read it
  unawaited_data,         // bytes of a peer's put were read without a wait for their signal
  fence_for_quiet,        // a fence between, if only quiet would have helped
  signal_reused,          // sent again before its peer has seen the previous one
  overshot_wait,          // an equality wait with a word beyond the value
  unregistered_buffer,    // neither symmetric nor registered
  divergent_barrier,      // threads of a block wait at different barriers
  mismatched_allocation,  // PEs allocate different sizes
  out_of_bounds,          // beyond or before an allocation or a shared array
  use_after_free,         // of memory that was freed
  misaligned_access,      // of a type at an address that is not a multiple of its alignment
  host_memory,            // of the host's memory by a kernel
  device_memory,          // of a GPU's memory by the host program
  block_race,             // blocks use one word without an order, one of them to store
  missing_fence,          // a flag was seen that no fence orders after the data
};

const char* name_of(Hazard hazard);

// A run that cannot continue, as a sentence for people and a kind for programs.
class KernelError : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t { usage, hazard, deadlock, compilation };
  KernelError(Kind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  KernelError(Hazard hazard, const std::string& sentence)
      : std::runtime_error(sentence), kind_(Kind::hazard), hazard_(hazard) {}
  Kind kind() const { return kind_; }
  Hazard hazard() const { return hazard_; }  // of kind hazard only

 private:
  Kind kind_;
  Hazard hazard_{};
};

// In a handler: throws the current exception again, with a name if it is from the source: "the host
// program of PE 1 throws std::length_error: TEXT".
[[noreturn]] void rethrow_named(const std::string& who);

}  // namespace towpath::gpu
