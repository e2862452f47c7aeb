// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/live/board.hpp"
#include "towpath/live/call.hpp"
#include "towpath/live/collective_call.hpp"
#include "towpath/live/shared_collectives.hpp"
#include "towpath/transport/live_transport.hpp"

namespace towpath::live {

// Collectives one after the other over a transport that the caller has: what Group offers,
// without messages, threads and calls that go on beside the program.
//
//   LiveCollectives collectives(transport);
//   transport.barrier(timeout);  // all have made theirs
//   collectives.run(request, timeout);
class LiveCollectives {
 public:
  // Every rank makes its own in the same order; allocates on the symmetric heap.
  explicit LiveCollectives(transport::LiveTransport& transport);
  ~LiveCollectives();
  LiveCollectives(const LiveCollectives&) = delete;
  LiveCollectives& operator=(const LiveCollectives&) = delete;

  // Throws std::invalid_argument for a request that is wrong in itself, TransportError where a rank
  // died, left, does not come within the time, or calls something else.
  void run(const Request& request, Time timeout);

  // What was measured on the way; null where ranks do not map each other's memory.
  const SharedCollectives* shared() const { return shared_.get(); }

 private:
  bool advance();
  void look_after_peers();
  [[noreturn]] void throw_disagreement(const Request& request, int peer);
  void wait(const Request& request, Time timeout);
  std::string wish_of(const Request& request) const;
  bool awaits(int peer);

  transport::LiveTransport& transport_;
  Call call_;
  Board board_;
  std::unique_ptr<SharedCollectives> shared_;
  std::unique_ptr<Channels> channels_;  // instead of `shared_`
  std::unique_ptr<CollectiveCall> chunked_;
  transport::Signal never_;                   // is never raised
  std::vector<transport::SignalWait> waits_;  // by rank, so that one that has left is noticed
};

}  // namespace towpath::live
