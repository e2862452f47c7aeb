// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "towpath/transport/live_transport.hpp"

// An array of each rank, at a place of its choice, which all ranks of a host load from and store
// to.

namespace towpath::live {

class SharedArray {
 public:
  // Blocks until all ranks have come with an array of this size, as connect() does. `place` is this
  // rank's, whole pages of memory of this process, whose contents are kept. It stays mapped memory
  // that others see, also after the end of this object.
  SharedArray(transport::LiveOptions options, std::byte* place, std::uint64_t size_bytes);
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  // A rank's array as this process sees it.
  std::byte* of(int rank) const { return arrays_[static_cast<std::size_t>(rank)]; }

  // Blocks until holds() is true, which looks at the arrays. Any thread may call it. `what` and
  // `peer` name the awaited data and its sender. Throws transport::TransportError: a rank died, or
  // the time is over.
  void wait(const std::function<bool()>& holds, Time timeout, int peer, const std::string& what);
  // Wakes ranks that sleep in wait(), after a store that they may wait for.
  void wake_peers() { transport_->wake_peers(); }

 private:
  std::unique_ptr<transport::LiveTransport> transport_;
  std::mutex waiting_;
  std::vector<std::byte*> arrays_;  // by rank
};

}  // namespace towpath::live
