// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "towpath/os/socket.hpp"
#include "towpath/transport/transport.hpp"

namespace towpath::transport::shm {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Kind = TransportError::Kind;

constexpr std::uint64_t kProtocolVersion = 0x746f'7770'6174'6801;  // the last byte is the version
                                                                   // number
// Time that the others wait for rank 0's answer beyond rank 0's deadline.
constexpr milliseconds kGrace{500};

// Time that rank 0 stays after a refusal, for ranks that connect slightly later.
constexpr milliseconds kLinger{1000};
// Interval at which a waiting rank checks for an abort.
constexpr milliseconds kLookInterval{10};

// A rank's first message.
struct Hello {
  std::uint64_t version = kProtocolVersion;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint64_t heap_bytes = 0;
  std::uint32_t signals = 0;
  std::int32_t pid = 0;
  std::int64_t patience_ns = 0;  // remaining until its deadline
};

// Rank 0's answer: one member each, or the error that ends the rendezvous for all. A rank that
// gives up before the group is complete also sends one, with its reason.
struct Answer {
  bool is_refusal = false;
  Kind kind = Kind::timeout;
  std::int32_t rank = kNoPeer;  // of the member, or of the culprit
  std::int32_t pid = 0;
  std::array<char, 480> sentence{};
};

struct Refusal {
  Kind kind;
  int culprit;
  std::string sentence;
};

std::string address_of(const LiveOptions& options) {
  return fmt::format("towpath/{}/{}", ::geteuid(), options.rendezvous);
}

Hello hello_of(const LiveOptions& options, const Member& self, os::Deadline deadline) {
  Hello hello;
  hello.rank = options.rank;
  hello.ranks = options.ranks;
  hello.heap_bytes = options.heap_bytes;
  hello.signals = options.signals;
  hello.pid = self.pid;
  hello.patience_ns = nanoseconds(deadline - os::Clock::now()).count();
  return hello;
}

// Like os::wait_readable, with periodic checks for an abort.
std::vector<std::size_t> wait_readable(const LiveOptions& options,
                                       const std::vector<const os::FileDescriptor*>& sockets,
                                       os::Deadline deadline) {
  while (true) {
    look_around(options);
    const os::Deadline now = os::Clock::now();
    auto readable = os::wait_readable(sockets, std::min(deadline, now + kLookInterval));
    if (!readable.empty() || now >= deadline) return readable;
  }
}

// The last line of an error's text, which is the exception for an error from Python.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// Rank 0's side.
class Gathering {
 public:
  Gathering(const LiveOptions& options, Member self)
      : options_(options), deadline_(os::deadline_after(options.timeout)) {
    listener_ = os::listen_at(address_of(options));
    if (!listener_.is_open()) {
      throw TransportError(
          Kind::disagreement, 0,
          fmt::format("another rank 0 is gathering a group \"{}\" now; choose another name",
                      options.rendezvous));
    }
    const auto ranks = static_cast<std::size_t>(options.ranks);
    members_.resize(ranks);
    connections_.resize(ranks);
    members_[0] = std::move(self);
  }

  std::vector<Member> run() {
    const std::optional<Refusal> refusal = gather();
    if (refusal) refuse(*refusal);
    return std::move(members_);
  }

 private:
  std::optional<Refusal> gather() {
    try {
      std::optional<Refusal> refusal;
      while (!refusal && !missing().empty()) refusal = step();
      return refusal ? refusal : send_members();
    } catch (const TransportError& error) {
      return Refusal{error.kind(), error.peer(), error.what()};
    } catch (const std::exception& error) {
      announce({Kind::peer_died, 0,
                fmt::format("rank 0 (pid {}) gave up while group \"{}\" was connecting: {}",
                            members_[0].pid, options_.rendezvous, reason_of(error))});
      throw;
    }
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < options_.ranks; ++rank) {
      if (!connections_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
    }
    return ranks;
  }

  // Waits for one event: a rank connects, sends its hello, or disconnects.
  std::optional<Refusal> step() {
    std::vector<const os::FileDescriptor*> sockets{&listener_};
    std::vector<int> ranks;
    for (int rank = 1; rank < options_.ranks; ++rank) {
      const os::FileDescriptor& connection = connections_[static_cast<std::size_t>(rank)];
      if (!connection.is_open()) continue;
      sockets.push_back(&connection);
      ranks.push_back(rank);
    }
    for (const os::FileDescriptor& newcomer : newcomers_) sockets.push_back(&newcomer);
    const std::vector<std::size_t> readable = wait_readable(options_, sockets, deadline_);
    if (readable.empty()) {
      const std::vector<int> ranks_missing = missing();
      return Refusal{Kind::timeout, ranks_missing.front(),
                     fmt::format("group \"{}\" did not come together within {:g} s: "
                                 "of {} ranks, {} missing",
                                 options_.rendezvous, options_.timeout.seconds(), options_.ranks,
                                 named(ranks_missing))};
    }
    const std::size_t index = readable.front();
    if (index == 0) return accept_newcomer();
    if (index <= ranks.size()) return member_gone(ranks[index - 1]);
    return receive_hello(index - 1 - ranks.size());
  }

  static std::string named(const std::vector<int>& ranks) {
    return fmt::format("{} {} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "),
                       ranks.size() == 1 ? "is" : "are");
  }

  std::optional<Refusal> accept_newcomer() {
    os::FileDescriptor newcomer = os::accept_from(listener_);
    if (newcomer.is_open()) {
      newcomers_.push_back(std::move(newcomer));
      ++came_;
    }
    return std::nullopt;
  }

  Refusal member_gone(int rank) const {
    look_around(options_);  // it may have left because of a notice about another rank
    const Member& member = members_[static_cast<std::size_t>(rank)];
    Answer farewell;
    std::vector<os::FileDescriptor> none;
    const bool has_reason =
        os::receive_message(connections_[static_cast<std::size_t>(rank)], &farewell,
                            sizeof(farewell), none, os::Clock::now()) == os::Outcome::done;
    return {Kind::peer_died, rank,
            fmt::format("rank {} (pid {}) went away while group \"{}\" was connecting{}{}", rank,
                        member.pid, options_.rendezvous, has_reason ? ": " : "",
                        has_reason ? farewell.sentence.data() : "")};
  }

  std::optional<Refusal> receive_hello(std::size_t index) {
    Hello hello;
    Member member;
    std::vector<os::FileDescriptor> descriptors;
    const os::Outcome outcome =
        os::receive_message(newcomers_[index], &hello, sizeof(hello), descriptors, deadline_);
    const bool is_rank = hello.rank > 0 && hello.rank < hello.ranks;
    if (outcome != os::Outcome::done || hello.version != kProtocolVersion || !is_rank ||
        descriptors.size() != 2) {
      newcomers_.erase(newcomers_.begin() + static_cast<std::ptrdiff_t>(index));  // no rank
      return std::nullopt;
    }
    if (auto refusal = objection_to(hello)) return refusal;
    const auto rank = static_cast<std::size_t>(hello.rank);
    members_[rank] = {std::move(descriptors[0]), std::move(descriptors[1]), hello.pid};
    connections_[rank] = std::move(newcomers_[index]);
    newcomers_.erase(newcomers_.begin() + static_cast<std::ptrdiff_t>(index));
    // The rank with the earliest deadline must also be answered in time.
    deadline_ = std::min(deadline_, os::Clock::now() + nanoseconds(hello.patience_ns));
    return std::nullopt;
  }

  std::optional<Refusal> objection_to(const Hello& hello) const {
    const auto refusal = [&](const std::string& sentence) {
      return Refusal{Kind::disagreement, hello.rank,
                     fmt::format("group \"{}\": {}", options_.rendezvous, sentence)};
    };
    const auto differs = [&](const char* what, auto theirs, auto ours) {
      return refusal(fmt::format("rank {} (pid {}) wants {} {}, but rank 0 (pid {}) wants {}",
                                 hello.rank, hello.pid, theirs, what, members_[0].pid, ours));
    };
    if (hello.ranks != options_.ranks) return differs("ranks", hello.ranks, options_.ranks);
    if (hello.heap_bytes != options_.heap_bytes) {
      return differs("bytes of heap", hello.heap_bytes, options_.heap_bytes);
    }
    if (hello.signals != options_.signals) {
      return differs("signals", hello.signals, options_.signals);
    }
    const Member& same = members_[static_cast<std::size_t>(hello.rank)];
    if (same.pid != 0) {
      return refusal(fmt::format("rank {} is there twice, as pid {} and pid {}", hello.rank,
                                 same.pid, hello.pid));
    }
    return std::nullopt;
  }

  // Each rank receives the descriptors of all others, in rank order.
  std::optional<Refusal> send_members() {
    for (int to = 1; to < options_.ranks; ++to) {
      for (int rank = 0; rank < options_.ranks; ++rank) {
        if (rank == to) continue;
        const Member& member = members_[static_cast<std::size_t>(rank)];
        Answer answer;
        answer.rank = rank;
        answer.pid = member.pid;
        const os::Outcome outcome =
            os::send_message(connections_[static_cast<std::size_t>(to)], &answer, sizeof(answer),
                             {member.memory.number(), member.process.number()}, deadline_ + kGrace);
        if (outcome != os::Outcome::done) return member_gone(to);
      }
    }
    return std::nullopt;
  }

  // Sends the refusal to all connected ranks, and to ranks that connect slightly later.
  void announce(const Refusal& refusal) {
    Answer answer;
    answer.is_refusal = true;
    answer.kind = refusal.kind;
    answer.rank = refusal.culprit;
    refusal.sentence.copy(answer.sentence.data(), answer.sentence.size() - 1);
    const auto send = [&](const os::FileDescriptor& connection) {
      if (!connection.is_open()) return;
      os::send_message(connection, &answer, sizeof(answer), {}, os::Clock::now() + kGrace);
    };
    for (const os::FileDescriptor& connection : connections_) send(connection);
    for (const os::FileDescriptor& connection : newcomers_) send(connection);
    const os::Deadline end = std::min(deadline_, os::Clock::now() + kLinger);
    while (came_ < options_.ranks - 1 && !os::wait_readable({&listener_}, end).empty()) {
      newcomers_.clear();
      accept_newcomer();
      for (const os::FileDescriptor& connection : newcomers_) send(connection);
    }
  }

  [[noreturn]] void refuse(const Refusal& refusal) {
    announce(refusal);
    throw TransportError(refusal.kind, refusal.culprit, refusal.sentence);
  }

  const LiveOptions& options_;
  os::Deadline deadline_;
  os::FileDescriptor listener_;
  std::vector<Member> members_;                  // by rank; pid 0 while it is missing
  std::vector<os::FileDescriptor> connections_;  // by rank
  std::vector<os::FileDescriptor> newcomers_;    // connected, without a hello yet
  int came_ = 0;                                 // number of connections ever accepted
};

os::FileDescriptor find_rank_0(const LiveOptions& options, os::Deadline deadline) {
  milliseconds pause{1};
  while (true) {
    os::FileDescriptor connection = os::connect_to(address_of(options));
    if (connection.is_open()) return connection;
    if (os::Clock::now() >= deadline) {
      throw TransportError(
          Kind::timeout, 0,
          fmt::format("rank {} (pid {}) found no rank 0 of group \"{}\" within {:g} s",
                      options.rank, ::getpid(), options.rendezvous, options.timeout.seconds()));
    }
    look_around(options);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds{10});
  }
}

// Rank 0's answers, one for each other rank.
std::vector<Member> receive_members(const LiveOptions& options,
                                    const os::FileDescriptor& connection, Member self,
                                    os::Deadline deadline) {
  const auto silent = [&](Kind kind, const char* what) {
    return TransportError(kind, 0,
                          fmt::format("rank {} (pid {}) joined group \"{}\", but rank 0 {}",
                                      options.rank, ::getpid(), options.rendezvous, what));
  };
  std::vector<Member> members(static_cast<std::size_t>(options.ranks));
  members[static_cast<std::size_t>(options.rank)] = std::move(self);
  for (int answers = 1; answers < options.ranks; ++answers) {
    Answer answer;
    std::vector<os::FileDescriptor> descriptors;
    wait_readable(options, {&connection}, deadline + kGrace);
    switch (
        os::receive_message(connection, &answer, sizeof(answer), descriptors, deadline + kGrace)) {
      case os::Outcome::done: break;
      case os::Outcome::late: throw silent(Kind::timeout, "did not answer in time");
      case os::Outcome::closed:
        look_around(options);  // rank 0 may have left because of a notice
        throw silent(Kind::peer_died, "left before all ranks had joined");
    }
    if (answer.is_refusal) {
      throw TransportError(answer.kind, answer.rank, answer.sentence.data());
    }
    if (descriptors.size() != 2) {
      throw std::system_error(EMFILE, std::generic_category(), "cannot take over file descriptors");
    }
    members[static_cast<std::size_t>(answer.rank)] = {std::move(descriptors[0]),
                                                      std::move(descriptors[1]), answer.pid};
  }
  return members;
}

// The side of all other ranks.
std::vector<Member> join(const LiveOptions& options, Member self) {
  const os::Deadline deadline = os::deadline_after(options.timeout);
  const os::FileDescriptor connection = find_rank_0(options, deadline);
  const Hello hello = hello_of(options, self, deadline);
  os::send_message(connection, &hello, sizeof(hello), {self.memory.number(), self.process.number()},
                   deadline);
  try {
    return receive_members(options, connection, std::move(self), deadline);
  } catch (const std::exception& error) {
    Answer farewell;
    const std::string reason = reason_of(error);
    reason.copy(farewell.sentence.data(), farewell.sentence.size() - 1);
    os::send_message(connection, &farewell, sizeof(farewell), {}, os::Clock::now());
    throw;
  }
}

}  // namespace

Member this_member(os::FileDescriptor memory) {
  Member member;
  member.memory = std::move(memory);
  member.pid = ::getpid();
  member.process = os::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, member.pid, 0)));
  if (!member.process.is_open()) {
    throw std::system_error(
        errno, std::generic_category(),
        "shm needs pidfd_open (Linux 5.3 or newer) to detect the death of a rank");
  }
  return member;
}

std::vector<Member> rendezvous(const LiveOptions& options, Member self) {
  if (options.rank == 0) return Gathering(options, std::move(self)).run();
  return join(options, std::move(self));
}

}  // namespace towpath::transport::shm
