// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/nccl/timed/call_record.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

// A rank that is this many collectives behind another one is not compared with it.
constexpr std::size_t kCollectivesKept = 1024;

struct Made : NotedCall {
  RankCall call;
};
struct Rank {
  std::uint64_t collectives = 0;
  std::map<std::pair<int, bool>, std::uint64_t> with_peers;  // Sends and Recvs
  std::deque<Made> calls;  // that have not ended, and the last one
};
struct Communicator {
  int size = 0;
  std::map<int, Rank> ranks;
  // Collectives as the first rank called them, and the number of the first that is kept.
  std::deque<std::pair<std::string, int>> agreed;
  std::uint64_t first = 0;
};
struct Record {
  std::mutex mutex;
  std::map<std::uint64_t, Communicator> communicators;
};

Record& record() {
  static Record* const only = new Record;
  return *only;
}

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

bool is_open(const Made& made) { return *made.state != CallState::ended; }

void compare(Communicator& communicator, const RankCall& call, std::uint64_t number) {
  if (number < communicator.first) return;
  const std::uint64_t place = number - communicator.first;
  if (place < communicator.agreed.size()) {
    const auto& [text, rank] = communicator.agreed[place];
    if (text == call.text) return;
    stop(name_of(call.rank) + " calls " + call.text + " as collective " +
         std::to_string(number + 1) + " of its communicator, where " + name_of(rank) + " calls " +
         text + "; all ranks must make the same calls in the same order");
  }
  communicator.agreed.emplace_back(call.text, call.rank);
  if (communicator.agreed.size() <= kCollectivesKept) return;
  communicator.agreed.pop_front();
  ++communicator.first;
}

const Made* last_call(const Communicator& communicator, int rank) {
  const auto found = communicator.ranks.find(rank);
  return found == communicator.ranks.end() || found->second.calls.empty()
             ? nullptr
             : &found->second.calls.back();
}

// The call that runs in the stream of another one, which waits for it.
const Made* ahead_of(const Record& all, const Made& waiting) {
  for (const auto& [hash, communicator] : all.communicators) {
    for (const auto& [number, rank] : communicator.ranks) {
      for (const Made& made : rank.calls) {
        if (*made.state == CallState::running && made.call.device == waiting.call.device &&
            made.call.stream == waiting.call.stream) {
          return &made;
        }
      }
    }
  }
  return nullptr;
}

// The reason for which a rank has made a call and does not do it. Empty if it does it.
std::string reason_of(const Record& all, const Made& made) {
  if (*made.state == CallState::given) {
    return "has called it in a group that has not ended";
  }
  if (*made.state != CallState::queued) return {};
  const Made* const ahead = ahead_of(all, made);
  if (ahead == nullptr) return "has it in a stream that waits for other work";
  const bool is_other = ahead->call.communicator != made.call.communicator;
  return "has it in a stream behind " + ahead->call.text +
         (is_other ? " of another communicator" : "");
}

// The state of a rank that has not made a call for which another rank waits.
std::string missing(const Communicator& communicator, int rank, const std::string& call) {
  const Made* const last = last_call(communicator, rank);
  if (last == nullptr) return "has called nothing";
  return "has not called " + call + ": its last call is " + last->call.text +
         (is_open(*last) ? ", which has not ended" : "");
}

std::string blame_for_collective(const Record& all, const Communicator& communicator,
                                 const Made& waiting) {
  for (int peer = 0; peer < communicator.size; ++peer) {
    const auto found = communicator.ranks.find(peer);
    // A rank of another process, unless all ranks are threads of this one.
    if (found == communicator.ranks.end() || peer == waiting.call.rank) continue;
    const Rank& other = found->second;
    if (other.collectives <= waiting.number) {
      return " for " + name_of(peer) + ", which " + missing(communicator, peer, "it");
    }
    for (const Made& made : other.calls) {
      if (made.call.peer >= 0 || made.number != waiting.number) continue;
      const std::string reason = reason_of(all, made);
      if (!reason.empty()) return " for " + name_of(peer) + ", which " + reason;
    }
  }
  return {};
}

std::string blame_for_message(const Record& all, const Communicator& communicator,
                              const Made& waiting) {
  const int peer = waiting.call.peer;
  const auto found = communicator.ranks.find(peer);
  const std::string wanted =
      (waiting.call.is_send ? "Recv from " : "Send to ") + name_of(waiting.call.rank);
  if (found == communicator.ranks.end()) return {};
  const auto count = found->second.with_peers.find({waiting.call.rank, !waiting.call.is_send});
  if (count == found->second.with_peers.end() || count->second <= waiting.number) {
    return ", and " + name_of(peer) + " " + missing(communicator, peer, "its " + wanted);
  }
  for (const Made& made : found->second.calls) {
    if (made.call.peer != waiting.call.rank || made.call.is_send == waiting.call.is_send ||
        made.number != waiting.number) {
      continue;
    }
    const std::string reason = reason_of(all, made);
    if (!reason.empty()) {
      return ", and " + name_of(peer) + " has called its " + wanted + " and " + reason;
    }
  }
  return {};
}

}  // namespace

NotedCall note_call(const RankCall& call) {
  Record& all = record();
  const std::scoped_lock lock(all.mutex);
  Communicator& communicator = all.communicators[call.communicator];
  communicator.size = call.ranks;
  Rank& rank = communicator.ranks[call.rank];
  const bool is_collective = call.peer < 0;
  const std::uint64_t number =
      is_collective ? rank.collectives++ : rank.with_peers[{call.peer, call.is_send}]++;
  if (is_collective) compare(communicator, call, number);
  std::erase_if(rank.calls, [](const Made& made) { return !is_open(made); });
  rank.calls.push_back(
      {{number, std::make_shared<std::atomic<CallState>>(CallState::given)}, call});
  return rank.calls.back();
}

void forget_rank(std::uint64_t communicator, int rank) {
  Record& all = record();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.communicators.find(communicator);
  if (found == all.communicators.end()) return;
  found->second.ranks.erase(rank);
  if (found->second.ranks.empty()) all.communicators.erase(found);
}

std::string explain_calls(CallState state) {
  Record& all = record();
  const std::scoped_lock lock(all.mutex);
  std::string text;
  for (const auto& [hash, communicator] : all.communicators) {
    std::string clause;
    for (const auto& [number, rank] : communicator.ranks) {
      for (const Made& made : rank.calls) {
        if (*made.state != state || !clause.empty()) continue;
        const std::string blamed = made.call.peer < 0
                                       ? blame_for_collective(all, communicator, made)
                                       : blame_for_message(all, communicator, made);
        if (blamed.empty()) continue;
        clause = name_of(number) + " waits in " + made.call.text + blamed;
      }
    }
    if (!clause.empty()) text += (text.empty() ? ": " : "; ") + clause;
  }
  return text;
}

}  // namespace towpath::virtual_gpu
