// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/nccl/timed/members.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "towpath/virtual_gpu/device/stop.hpp"

namespace towpath::virtual_gpu {
namespace {

struct Member {
  std::atomic<std::int32_t> process;  // 0 if the entry is free, kWritten while it is being written
  std::int32_t rank, ranks;
  std::uint64_t communicator;
  std::atomic<std::uint64_t> calls;  // that the rank has entered
  std::atomic<bool> has_left;
};

constexpr std::int32_t kWritten = -1;

// The file is as long as its maker wants.
std::span<Member> mapped_members() {
  const char* const path = std::getenv("TOWPATH_MEMBERS");
  if (path == nullptr) return {};
  const int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat state {};
  if (file < 0 || fstat(file, &state) != 0) stop(std::string("cannot open the file ") + path);
  const auto size = static_cast<std::size_t>(state.st_size);
  void* const begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (begin == MAP_FAILED) stop(std::string("cannot map the file ") + path);
  close(file);
  return {static_cast<Member*>(begin), size / sizeof(Member)};
}

std::span<Member> members() {
  static const std::span<Member> all = mapped_members();
  return all;
}

// The ranks of this process.
struct Own {
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, int>, Member*> members;
};

Own& own() {
  static Own* const only = new Own;
  return *only;
}

// Also if its parent has not yet taken note of the end.
bool has_ended(std::int32_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const auto state = line.rfind(") ");
  return state == std::string::npos || line[state + 2] == 'Z' || line[state + 2] == 'X';
}

std::string describe(const Member& member) {
  return "rank " + std::to_string(member.rank) + " (process " + std::to_string(member.process) +
         ")";
}

// The communicator's ranks by number. Null if a rank has not joined.
std::vector<const Member*> ranks_of(const Member& one) {
  std::vector<const Member*> found(static_cast<std::size_t>(one.ranks));
  for (const Member& each : members()) {
    if (each.process <= 0 || each.communicator != one.communicator) continue;
    if (each.rank >= 0 && each.rank < one.ranks) found[static_cast<std::size_t>(each.rank)] = &each;
  }
  return found;
}

std::string absent_from(const Member& one) {
  std::string text;
  const auto all = ranks_of(one);
  std::uint64_t calls = 0;
  for (const Member* const each : all) {
    if (each != nullptr) calls = std::max(calls, each->calls.load());
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Member* const each = all[rank];
    if (each == nullptr) {
      text += "\n  rank " + std::to_string(rank) + " of " + std::to_string(one.ranks) +
              " has not entered the communicator";
    } else if (each->has_left) {
      text += "\n  " + describe(*each) + " has left the communicator";
    } else if (has_ended(each->process)) {
      text += "\n  " + describe(*each) + " has ended";
    } else if (each->calls < calls) {
      text += "\n  " + describe(*each) + " has entered " + std::to_string(each->calls) + " of " +
              std::to_string(calls) + " calls";
    }
  }
  return text;
}

}  // namespace

void join(std::uint64_t communicator, int rank, int ranks) {
  const std::span<Member> all = members();
  if (all.empty()) return;
  for (Member& each : all) {
    std::int32_t free = 0;
    if (!each.process.compare_exchange_strong(free, kWritten)) continue;
    each.rank = rank;
    each.ranks = ranks;
    each.communicator = communicator;
    each.calls = 0;
    each.process = getpid();
    const std::scoped_lock lock(own().mutex);
    own().members[{communicator, rank}] = &each;
    return;
  }
  stop("the communicators of this run have more than " + std::to_string(all.size()) +
       " ranks in all; make fewer of them");
}

void withdraw(std::uint64_t communicator, int rank) {
  const std::scoped_lock lock(own().mutex);
  const auto found = own().members.find({communicator, rank});
  if (found == own().members.end()) return;
  found->second->process = 0;
  own().members.erase(found);
}

void count_call(std::uint64_t communicator, int rank) {
  const std::scoped_lock lock(own().mutex);
  const auto found = own().members.find({communicator, rank});
  if (found != own().members.end()) ++found->second->calls;
}

void leave(std::uint64_t communicator, int rank) {
  const std::scoped_lock lock(own().mutex);
  const auto found = own().members.find({communicator, rank});
  if (found == own().members.end()) return;
  found->second->has_left = true;
  own().members.erase(found);
}

std::string absent_members() {
  std::map<std::uint64_t, const Member*> communicators;
  const std::scoped_lock lock(own().mutex);
  for (const auto& [key, member] : own().members) communicators.emplace(key.first, member);
  std::string text;
  for (const auto& [communicator, member] : communicators) text += absent_from(*member);
  return text;
}

}  // namespace towpath::virtual_gpu
