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

// An array of each rank, at an address of its choice, which all ranks of a host load from and store
// to.

namespace towpath::live {

class SharedArray {
 public:
  // Blocks until all ranks have called it with an array of this size, as connect() does. `place` is
  // this rank's address: whole pages of memory of this process, whose contents are kept. It stays
  // mapped memory that others can access, also after the end of this object.
  SharedArray(transport::LiveOptions options, std::byte* place, std::uint64_t size_bytes);
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  // The address of a rank's array in this process.
  std::byte* of(int rank) const { return arrays_[static_cast<std::size_t>(rank)]; }

  // Blocks until holds() is true, which reads the arrays. Any thread may call it. `what` and `peer`
  // name the awaited data and its sender. Throws transport::TransportError if a rank died, or the
  // time is over.
  void wait(const std::function<bool()>& holds, Time timeout, int peer, const std::string& what);
  // Wakes ranks that sleep in wait(), after a store that they may wait for.
  void wake_peers() { transport_->wake_peers(); }

 private:
  std::unique_ptr<transport::LiveTransport> transport_;
  std::mutex waiting_;
  std::vector<std::byte*> arrays_;  // by rank
};

}  // namespace towpath::live
