// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace towpath::conformance {

// Forked children of a test, one per rank. Destroying it leaves none of them alive.
class Processes {
 public:
  // Each child calls body with its rank, and ends.
  Processes(int ranks, const std::function<void(int rank)>& body);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  pid_t pid(int rank) const { return children_[static_cast<std::size_t>(rank)].pid; }

  // How each child ended: empty, what it threw, or what killed it. A child that is still there
  // after `patience` is killed and reported.
  std::vector<std::string> wait(std::chrono::milliseconds patience);

 private:
  struct Child {
    pid_t pid = -1;  // -1 once reaped
    int pipe = -1;   // carries what it threw; closed when the child is gone
    std::string outcome;
  };
  void listen(Child& child) const;
  void reap(Child& child, bool was_hung) const;

  std::vector<Child> children_;
};

}  // namespace towpath::conformance
