// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace towpath {

// No event is left in a simulation that could end a wait: of ranks, kernels, packets or callers.
class DeadlockError : public std::runtime_error {
 public:
  explicit DeadlockError(const std::string& sentence, std::vector<std::string> cycle = {})
      : std::runtime_error(sentence), cycle_(std::move(cycle)) {}

  // Names of those that wait: each waits for the next, and the last for the first. Empty when it is
  // not known who should have acted; the sentence then names all that wait.
  const std::vector<std::string>& cycle() const { return cycle_; }

 private:
  std::vector<std::string> cycle_;
};

}  // namespace towpath
