// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace towpath::gpu {

// Operations of a PE with stores that are not yet visible, and the threads in nvshmem_quiet that
// wait for them.
class Outstanding {
 public:
  // The number of a new operation.
  std::uint64_t start() {
    outstanding_.insert(++last_);
    return last_;
  }
  std::uint64_t last() const { return last_; }
  void visible(std::uint64_t number);
  // Calls `then` when all earlier operations are visible.
  void when_quiet(std::function<void()> then);

 private:
  struct Wait {
    std::uint64_t until;
    std::function<void()> then;
  };

  std::uint64_t last_ = 0;
  std::set<std::uint64_t> outstanding_;
  std::vector<Wait> waits_;
};

}  // namespace towpath::gpu
