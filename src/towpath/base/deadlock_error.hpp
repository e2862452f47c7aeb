// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace towpath {

// No pending event can end a wait of a rank, kernel, packet or caller.
class DeadlockError : public std::runtime_error {
 public:
  explicit DeadlockError(const std::string& sentence, std::vector<std::string> cycle = {})
      : std::runtime_error(sentence), cycle_(std::move(cycle)) {}

  // Names of the waiters in a cycle: each waits for the next, the last for the first. Empty if no
  // cycle was identified. The message then names all waiters.
  const std::vector<std::string>& cycle() const { return cycle_; }

 private:
  std::vector<std::string> cycle_;
};

}  // namespace towpath
