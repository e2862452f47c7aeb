// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "towpath/transport/transport.hpp"

// The waits of one live rank for its signals, oldest first.

namespace towpath::transport {

class SignalWaits {
 public:
  // Throws std::invalid_argument for a wait that is already waiting.
  void add(SignalWait& wait);
  void remove(SignalWait& wait);
  const SignalWait* first() const { return first_; }

  // Calls `ready` of each wait that holds, after removing it. Returns true if there were any.
  // `ready` may add and remove waits.
  template <typename Holds>
  bool look(const Holds& holds) {
    bool any = false;
    next_ = first_;
    while (next_ != nullptr) {
      SignalWait& wait = *next_;
      next_ = wait.next;
      if (!holds(wait)) continue;
      any = true;
      remove(wait);
      if (wait.ready != nullptr) wait.ready(wait);
    }
    return any;
  }

  // A description of one wait: from its callback, or from its comparison.
  static std::string describe(const SignalWait& wait, const Transport& transport);
  // One line per wait, with a newline each.
  std::string pending(const Transport& transport) const;
  // All waits as text: a wait for the culprit first, or `what`. Empty without a wait.
  std::string describe_all(int culprit, const std::string& what, const Transport& transport) const;

 private:
  SignalWait* first_ = nullptr;
  SignalWait* last_ = nullptr;
  SignalWait* next_ = nullptr;  // next to check; stays valid if `ready` changes the list
};

}  // namespace towpath::transport
