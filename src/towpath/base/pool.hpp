// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

namespace towpath {

// Objects at stable addresses that are used again. An object that is taken has the contents with
// which it was released, so that its buffers keep their capacity.
template <typename T>
class Pool {
 public:
  T& take() {
    if (free_.empty()) return storage_.emplace_back();
    T& item = *free_.back();
    free_.pop_back();
    return item;
  }
  void release(T& item) { free_.push_back(&item); }

 private:
  std::deque<T> storage_;
  std::vector<T*> free_;
};

}  // namespace towpath
