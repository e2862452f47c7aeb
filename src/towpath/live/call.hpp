// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/transport/transport.hpp"

// A call of a collective or message, and its end.

namespace towpath::live {

struct Span {
  std::byte* data = nullptr;
  std::uint64_t size_bytes = 0;
};

inline bool overlap(const Span& a, const Span& b) {
  return a.size_bytes > 0 && b.size_bytes > 0 && a.data < b.data + b.size_bytes &&
         b.data < a.data + a.size_bytes;
}
inline bool are_same(const Span& a, const Span& b) {
  return a.data == b.data && a.size_bytes == b.size_bytes;
}

// The combination of elements. The thread of the group may call both functions.
struct Combination {
  // result[i] = a[i] op b[i]. `result` may be `a` or `b`.
  void (*combine)(void* context, std::byte* result, const std::byte* a, const std::byte* b,
                  std::uint64_t size_bytes) = nullptr;
  // Called for each part of the result when it includes all ranks. May be null.
  void (*finish)(void* context, std::byte* data, std::uint64_t size_bytes) = nullptr;
  void* context = nullptr;
  std::uint32_t element_bytes = 1;  // a power of 2, at most 16
};

// An exchange is any collective that only moves bytes, of any size from each rank to each other
// rank. all_gather and all_to_all are faster: the sizes of all parts are the same on all ranks.
enum class Kind : std::uint8_t {
  exchange,
  all_reduce,
  reduce,
  reduce_scatter,
  broadcast,
  send,
  receive,
  all_gather,
  all_to_all,
  barrier
};
inline constexpr int kKinds = 10;

struct Request {
  Kind kind = Kind::exchange;
  std::string name;           // in reports: "all_gather"
  int peer = 0;               // the root, or the other end. kNoPeer receives from any rank
  std::uint64_t tag = 0;      // of a message
  std::uint32_t element = 0;  // a number for type and operation that all ranks must give
  // One per rank for an exchange and an all_to_all. A reduce_scatter has one input, and an
  // all_gather one output, per rank. A barrier has none. Otherwise there is one of each.
  // Outputs do not overlap each other. An output overlaps an input only if both are the same bytes
  // and the call is one that MPI, NCCL or torch runs in place: the output of a reduction or
  // broadcast is its input, the input of an all_gather is the output of its rank, the output of a
  // reduce_scatter is the input of its rank, and each part of an exchange replaces the part for
  // that rank.
  std::vector<Span> inputs;
  std::vector<Span> outputs;
  Combination combination;
  Time timeout = Time::from_seconds(60);
  // Called once when the call has ended, by the thread that detected it. May be null.
  void (*done)(void* context) = nullptr;
  void* context = nullptr;
};

// Thrown if a peer makes another call than this rank.
struct Mismatch {
  int peer;
};

enum class State : std::uint8_t { waiting, done, failed };

struct Call {
  Request request;
  std::uint64_t sequence = 0;    // of collectives, from 1. 0 for messages
  std::optional<Time> deadline;  // set at the first look at a clock
  // The next two are written before `state` changes, and constant afterwards.
  std::optional<transport::TransportError> error;
  int source = transport::kNoPeer;  // the sender of a received message
  std::atomic<State> state{State::waiting};

  bool has_ended() const { return state.load(std::memory_order_acquire) != State::waiting; }
};

using CallPointer = std::shared_ptr<Call>;

// Throws std::invalid_argument with the name of the call and the mistake.
[[noreturn]] void refuse(const Request& request, const std::string& what);
// Throws std::invalid_argument, one sentence, if a request is invalid by itself.
void check_request(const Request& request, int rank, int ranks);
// The part of it about overlapping memory.
void check_overlap(const Request& request, int rank);

// True if the ranks may have parts of different sizes.
constexpr bool is_uneven(Kind kind) {
  return kind == Kind::exchange || kind == Kind::all_gather || kind == Kind::reduce_scatter;
}
// The size in the text of a report: of the inputs, or of the outputs if there are no inputs.
std::uint64_t size_of(const Request& request);
std::string_view name_of(Kind kind);
// "broadcast float32 of 16 bytes from root 1".
std::string title_of(std::string_view name, Kind kind, std::uint64_t size_bytes, int root);
inline std::string describe(const Request& request) {
  return title_of(request.name, request.kind, size_of(request), request.peer);
}

inline bool is_message(const Request& request) {
  return request.kind == Kind::send || request.kind == Kind::receive;
}

}  // namespace towpath::live
