// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

  // Calls `ready` of each wait that holds, after it was removed; returns whether any did. `ready`
  // may add and remove waits.
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

  // One wait in words: its own, or what is compared.
  static std::string describe(const SignalWait& wait, const Transport& transport);
  // One line each, each with its end.
  std::string pending(const Transport& transport) const;
  // What is waited for, `what` first, then what concerns the culprit, then all, shortened.
  std::string describe_all(int culprit, const std::string& what, const Transport& transport) const;

 private:
  SignalWait* first_ = nullptr;
  SignalWait* last_ = nullptr;
  SignalWait* next_ = nullptr;  // to be looked at; survives what `ready` does to the list
};

}  // namespace towpath::transport
