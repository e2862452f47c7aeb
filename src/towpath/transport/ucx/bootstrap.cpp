// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/ucx/bootstrap.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "towpath/os/stream.hpp"

namespace towpath::transport::ucx {
namespace {

using Kind = TransportError::Kind;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kProtocolVersion = 0x746f'7770'7563'7803;  // the last byte is the version
                                                                   // number
constexpr std::uint32_t kAddressBytesMax = 1 << 16;
constexpr std::size_t kHostBytes = 64;
constexpr std::size_t kPlaceBytes = 96;
constexpr std::size_t kHostsMax = 16;
// Connections that have not introduced themselves: the maximum number at once, and their time
// limit.
constexpr std::size_t kNewcomersMax = 64;
constexpr std::chrono::seconds kIntroduceWithin{10};
// Time that the others wait for rank 0's answer beyond rank 0's deadline.
constexpr milliseconds kGrace{500};
// Interval at which a waiting rank checks for an abort.
constexpr milliseconds kLookInterval{10};

using Nonce = std::array<std::byte, 32>;

struct Challenge {
  std::uint64_t version = kProtocolVersion;
  Nonce nonce{};
};

struct Proof {
  Nonce nonce{};
  os::KeyedDigest digest{};
};

// A rank's parameters. Its address follows.
struct Introduction {
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint64_t heap_bytes = 0;
  std::uint32_t signals = 0;
  std::int32_t pid = 0;
  std::uint32_t address_bytes = 0;
  std::array<char, kHostBytes> host{};
  std::array<char, kPlaceBytes> place{};
  std::uint32_t host_count = 0;
  std::array<os::Ipv4Address, kHostsMax> hosts{};
};

// Rank 0's final answer. Introductions of all ranks follow unless it is a refusal.
struct Verdict {
  bool is_refusal = false;
  Kind kind = Kind::timeout;
  std::int32_t culprit = kNoPeer;
  Nonce nonce{};
  std::array<char, 480> sentence{};
};

struct Refusal {
  Kind kind;
  int culprit;
  std::string sentence;
};

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::string address_of(const LiveOptions& options) {
  if (os::is_network_address(options.rendezvous)) return options.rendezvous;
  return fmt::format("towpath-ucx/{}/{}", ::geteuid(), options.rendezvous);
}

// Proof of the token and of both nonces. Each side has a different label.
os::KeyedDigest digest_of(const LiveOptions& options, std::string_view side, const Nonce& one,
                          const Nonce& other) {
  std::vector<std::byte> message(side.size() + one.size() + other.size());
  std::memcpy(message.data(), side.data(), side.size());
  std::memcpy(message.data() + side.size(), one.data(), one.size());
  std::memcpy(message.data() + side.size() + one.size(), other.data(), other.size());
  return os::keyed_digest(options.token, message);
}

Nonce new_nonce() {
  Nonce nonce{};
  os::fill_random(nonce);
  return nonce;
}

Introduction introduction_of(const LiveOptions& options, int rank, const Member& member) {
  Introduction introduction;
  introduction.rank = rank;
  introduction.ranks = options.ranks;
  introduction.heap_bytes = options.heap_bytes;
  introduction.signals = options.signals;
  introduction.pid = member.pid;
  introduction.address_bytes = static_cast<std::uint32_t>(member.address.size());
  member.host.copy(introduction.host.data(), kHostBytes - 1);
  member.place.copy(introduction.place.data(), kPlaceBytes - 1);
  if (member.hosts.size() <= kHostsMax) {
    introduction.host_count = static_cast<std::uint32_t>(member.hosts.size());
    std::copy(member.hosts.begin(), member.hosts.end(), introduction.hosts.begin());
  }
  return introduction;
}

Member member_of(const Introduction& introduction, std::span<const std::byte> address) {
  const auto hosts = introduction.hosts.begin();
  return {introduction.pid,
          introduction.host.data(),
          {address.begin(), address.end()},
          introduction.place.data(),
          {hosts, hosts + std::min<std::ptrdiff_t>(introduction.host_count, kHostsMax)}};
}

// An unauthenticated connection. Its data is buffered until complete, so that a partial message
// cannot block the others.
struct Newcomer {
  os::FileDescriptor socket;
  Nonce challenge{};
  os::Deadline deadline;
  std::vector<std::byte> received;
  bool has_proved = false;

  // Returns false once it is closed.
  bool read_more() {
    std::array<std::byte, 4096> block;
    while (true) {
      const ssize_t size = ::recv(socket.number(), block.data(), block.size(), 0);
      if (size < 0) return errno == EAGAIN || errno == EINTR;
      if (size == 0 || received.size() > 2 * kAddressBytesMax) return false;
      received.insert(received.end(), block.begin(), block.begin() + size);
    }
  }
  template <typename T>
  bool take(T& value) {
    if (received.size() < sizeof(T)) return false;
    std::memcpy(&value, received.data(), sizeof(T));
    received.erase(received.begin(), received.begin() + sizeof(T));
    return true;
  }
};

// Rank 0's side.
class Gathering {
 public:
  Gathering(const LiveOptions& options, Member self, os::FileDescriptor listener)
      : options_(options),
        deadline_(os::deadline_after(options.timeout)),
        listener_(listener.is_open() ? std::move(listener)
                                     : os::listen_stream(address_of(options))) {
    if (!listener_.is_open()) {
      throw TransportError(
          Kind::disagreement, 0,
          fmt::format("the rendezvous \"{}\" is in use; choose another one", options.rendezvous));
    }
    const auto ranks = static_cast<std::size_t>(options.ranks);
    connections_.resize(ranks);
    members_.resize(ranks);
    members_[0] = std::move(self);
  }

  Job run(const Prepare& prepare) {
    Verdict verdict;
    verdict.nonce = new_nonce();
    agree(verdict, true, [this] {
      std::optional<Refusal> refusal;
      while (!refusal && !missing().empty()) refusal = step();
      return refusal;
    });
    const Job job{members_, digest_of(options_, "job", verdict.nonce, verdict.nonce)};
    prepare(job);
    agree(verdict, false, [this] {
      std::optional<Refusal> refusal;
      for (int rank = 1; !refusal && rank < options_.ranks; ++rank) refusal = confirm(rank);
      return refusal;
    });
    return job;
  }

 private:
  // Sends all other ranks the result of a step: a verdict, or the refusal that it also throws.
  template <typename Step>
  void agree(Verdict verdict, bool with_members, const Step& step) {
    std::optional<Refusal> refusal;
    try {
      refusal = step();
    } catch (const TransportError& error) {
      refusal = {error.kind(), error.peer(), error.what()};
    }
    if (refusal) {
      verdict.is_refusal = true;
      verdict.kind = refusal->kind;
      verdict.culprit = refusal->culprit;
      refusal->sentence.copy(verdict.sentence.data(), verdict.sentence.size() - 1);
    }
    send(verdict, with_members);
    if (refusal) throw TransportError(refusal->kind, refusal->culprit, refusal->sentence);
  }

  // Waits until a rank is prepared.
  std::optional<Refusal> confirm(int rank) {
    const os::FileDescriptor& connection = connections_[static_cast<std::size_t>(rank)];
    const os::Deadline deadline = deadline_ + kGrace;
    while (os::wait_for(connection, POLLIN, os::Clock::now() + kLookInterval) !=
           os::Outcome::done) {
      look_around(options_);
      if (os::Clock::now() >= deadline) return lost(rank, "was silent");
    }
    std::byte prepared{};
    const os::Outcome received = os::receive_bytes(connection, std::span(&prepared, 1), deadline);
    if (received == os::Outcome::done) return std::nullopt;
    return lost(rank, "went away");
  }

  Refusal lost(int rank, const char* what) const {
    look_around(options_);  // it may have left because of a notice about another rank
    const Member& member = members_[static_cast<std::size_t>(rank)];
    return {Kind::peer_died, rank,
            fmt::format("rank {} (pid {} on {}) {} while group \"{}\" was connecting", rank,
                        member.pid, member.host, what, options_.rendezvous)};
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < options_.ranks; ++rank) {
      if (!connections_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
    }
    return ranks;
  }

  // Waits for one event: a connection, data, or a disconnection.
  std::optional<Refusal> step() {
    look_around(options_);
    std::vector<pollfd> entries{{listener_.number(), POLLIN, 0}};
    for (const Newcomer& newcomer : newcomers_) {
      entries.push_back({newcomer.socket.number(), POLLIN, 0});
    }
    for (const os::FileDescriptor& connection : connections_) {
      entries.push_back({connection.number(), POLLIN, 0});  // -1 is ignored
    }
    ::poll(entries.data(), entries.size(), static_cast<int>(kLookInterval.count()));
    if (os::Clock::now() >= deadline_) return late();
    for (std::size_t rank = 1; rank < connections_.size(); ++rank) {
      if (entries[1 + newcomers_.size() + rank].revents == 0) continue;
      return lost(static_cast<int>(rank), "went away");
    }
    for (std::size_t i = newcomers_.size(); i-- > 0;) {
      std::optional<Refusal> refusal;
      bool stays = os::Clock::now() < newcomers_[i].deadline;
      if (entries[1 + i].revents != 0) stays = hear(newcomers_[i], refusal) && stays;
      if (!stays) drop(i);
      if (refusal) return refusal;
    }
    if (entries[0].revents != 0) accept();
    return std::nullopt;
  }

  Refusal late() const {
    const std::vector<int> ranks = missing();
    const char* const verb = ranks.size() == 1 ? "rank" : "ranks";
    return {Kind::timeout, ranks.front(),
            fmt::format(
                "group \"{}\" did not come together within {:g} s: of {} ranks, {} {} {} "
                "missing{}",
                options_.rendezvous, options_.timeout.seconds(), options_.ranks, verb,
                fmt::join(ranks, ", "), ranks.size() == 1 ? "is" : "are",
                strangers_ == 0
                    ? std::string()
                    : fmt::format("; {} connections did not prove this job's token", strangers_))};
  }

  void drop(std::size_t newcomer) {
    if (newcomers_[newcomer].socket.is_open() && !newcomers_[newcomer].has_proved) ++strangers_;
    newcomers_.erase(newcomers_.begin() + static_cast<std::ptrdiff_t>(newcomer));
  }

  void accept() {
    // A rank introduces itself immediately. The oldest connection that has not done so belongs to a
    // stranger.
    if (newcomers_.size() >= kNewcomersMax) drop(0);
    Newcomer newcomer{
        os::accept_stream(listener_), new_nonce(), os::Clock::now() + kIntroduceWithin, {}};
    if (!newcomer.socket.is_open()) return;
    const Challenge challenge{.nonce = newcomer.challenge};
    os::send_bytes(newcomer.socket, bytes_of(challenge), os::Clock::now());
    newcomers_.push_back(std::move(newcomer));
  }

  // Returns false once it is no longer a newcomer: closed, failed, or a member.
  bool hear(Newcomer& newcomer, std::optional<Refusal>& refusal) {
    if (!newcomer.read_more()) return false;
    Proof proof;
    if (!newcomer.has_proved) {
      if (!newcomer.take(proof)) return true;
      const auto expected = digest_of(options_, "member", newcomer.challenge, proof.nonce);
      if (!os::is_same(proof.digest, expected)) return false;
      newcomer.has_proved = true;
      const auto answer = digest_of(options_, "gatherer", proof.nonce, newcomer.challenge);
      os::send_bytes(newcomer.socket, answer, os::Clock::now());
    }
    Introduction introduction;
    if (newcomer.received.size() < sizeof(introduction)) return true;
    std::memcpy(&introduction, newcomer.received.data(), sizeof(introduction));
    if (introduction.address_bytes > kAddressBytesMax) return false;
    if (newcomer.received.size() < sizeof(introduction) + introduction.address_bytes) return true;
    introduction.host.back() = introduction.place.back() = '\0';
    refusal = objection_to(introduction);
    if (refusal) return true;
    const auto rank = static_cast<std::size_t>(introduction.rank);
    members_[rank] = member_of(
        introduction, std::span<const std::byte>(newcomer.received).subspan(sizeof(introduction)));
    connections_[rank] = std::move(newcomer.socket);
    return false;
  }

  std::optional<Refusal> objection_to(const Introduction& introduction) const {
    const int rank = introduction.rank;
    const auto refusal = [&](const std::string& sentence) {
      return Refusal{Kind::disagreement, rank,
                     fmt::format("group \"{}\": {}", options_.rendezvous, sentence)};
    };
    const auto differs = [&](const char* what, auto theirs, auto ours) {
      return refusal(fmt::format("rank {} (pid {} on {}) wants {} {}, but rank 0 wants {}", rank,
                                 introduction.pid, introduction.host.data(), theirs, what, ours));
    };
    if (introduction.ranks != options_.ranks) {
      return differs("ranks", introduction.ranks, options_.ranks);
    }
    if (introduction.heap_bytes != options_.heap_bytes) {
      return differs("bytes of heap", introduction.heap_bytes, options_.heap_bytes);
    }
    if (introduction.signals != options_.signals) {
      return differs("signals", introduction.signals, options_.signals);
    }
    const bool is_rank = rank >= 0 && rank < options_.ranks;
    if (!is_rank || rank == 0 || connections_[static_cast<std::size_t>(rank)].is_open()) {
      const Member& same = members_[is_rank ? static_cast<std::size_t>(rank) : 0];
      return refusal(fmt::format("rank {} is there twice, as pid {} on {} and pid {} on {}", rank,
                                 same.pid, same.host, introduction.pid, introduction.host.data()));
    }
    return std::nullopt;
  }

  void send(const Verdict& verdict, bool with_members) {
    std::vector<std::byte> text;
    const auto add = [&text](std::span<const std::byte> bytes) {
      text.insert(text.end(), bytes.begin(), bytes.end());
    };
    add(bytes_of(verdict));
    with_members = with_members && !verdict.is_refusal;
    for (int rank = 0; with_members && rank < options_.ranks; ++rank) {
      const Member& member = members_[static_cast<std::size_t>(rank)];
      add(bytes_of(introduction_of(options_, rank, member)));
      add(member.address);
    }
    const auto send_to = [&](const os::FileDescriptor& socket) {
      if (socket.is_open()) os::send_bytes(socket, text, os::Clock::now() + kGrace);
    };
    for (const os::FileDescriptor& connection : connections_) send_to(connection);
    for (const Newcomer& newcomer : newcomers_) {
      if (newcomer.has_proved) send_to(newcomer.socket);
    }
  }

  const LiveOptions& options_;
  os::Deadline deadline_;
  os::FileDescriptor listener_;
  std::vector<os::FileDescriptor> connections_;  // by rank
  std::vector<Member> members_;                  // by rank
  std::vector<Newcomer> newcomers_;
  int strangers_ = 0;
};

// The side of all other ranks.
class Joining {
 public:
  explicit Joining(const LiveOptions& options)
      : options_(options), deadline_(os::deadline_after(options.timeout)) {}

  Job run(const Member& self, const Prepare& prepare) {
    find_rank_0();
    prove();
    const Introduction introduction = introduction_of(options_, options_.rank, self);
    std::vector<std::byte> text(sizeof(introduction));
    std::memcpy(text.data(), &introduction, sizeof(introduction));
    text.insert(text.end(), self.address.begin(), self.address.end());
    if (os::send_bytes(socket_, text, deadline_) != os::Outcome::done) throw gone();
    const Verdict verdict = receive_verdict();
    Job job;
    job.key = digest_of(options_, "job", verdict.nonce, verdict.nonce);
    for (int rank = 0; rank < options_.ranks; ++rank) job.members.push_back(receive_member());
    prepare(job);
    const std::byte prepared{1};
    if (os::send_bytes(socket_, std::span(&prepared, 1), deadline_) != os::Outcome::done) {
      throw gone();
    }
    receive_verdict();
    return job;
  }

 private:
  TransportError error(Kind kind, const char* what) const {
    return {kind, 0,
            fmt::format("rank {} (pid {}) joined group \"{}\", but rank 0 {}", options_.rank,
                        ::getpid(), options_.rendezvous, what)};
  }
  TransportError gone() const {
    look_around(options_);  // rank 0 may have left because of a notice
    return error(Kind::peer_died, "left before all ranks had joined");
  }

  void find_rank_0() {
    milliseconds pause{1};
    while (true) {
      socket_ = os::connect_stream(address_of(options_), deadline_);
      if (socket_.is_open()) return;
      if (os::Clock::now() >= deadline_) {
        throw TransportError(
            Kind::timeout, 0,
            fmt::format("rank {} (pid {}) found no rank 0 at \"{}\" within {:g} s", options_.rank,
                        ::getpid(), options_.rendezvous, options_.timeout.seconds()));
      }
      look_around(options_);
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, milliseconds{50});
    }
  }

  // Checks for an abort in the meantime.
  void receive(std::span<std::byte> bytes) {
    while (os::wait_for(socket_, POLLIN, os::Clock::now() + kLookInterval) != os::Outcome::done) {
      look_around(options_);
      if (os::Clock::now() >= deadline_ + kGrace) {
        throw error(Kind::timeout, "did not answer in time");
      }
    }
    switch (os::receive_bytes(socket_, bytes, deadline_ + kGrace)) {
      case os::Outcome::done: return;
      case os::Outcome::late: throw error(Kind::timeout, "did not answer in time");
      case os::Outcome::closed: throw gone();
    }
  }

  Verdict receive_verdict() {
    Verdict verdict;
    receive(bytes_of(verdict));
    if (!verdict.is_refusal) return verdict;
    verdict.sentence.back() = '\0';
    throw TransportError(verdict.kind, verdict.culprit, verdict.sentence.data());
  }

  void prove() {
    Challenge challenge;
    receive(bytes_of(challenge));
    if (challenge.version != kProtocolVersion) {
      throw error(Kind::disagreement, "runs another version of Towpath, or another program");
    }
    Proof proof;
    proof.nonce = new_nonce();
    proof.digest = digest_of(options_, "member", challenge.nonce, proof.nonce);
    if (os::send_bytes(socket_, bytes_of(proof), deadline_) != os::Outcome::done) throw gone();
    os::KeyedDigest answer{};
    try {
      receive(answer);
    } catch (const TransportError& refused) {
      if (refused.kind() != Kind::peer_died) throw;
      throw error(Kind::disagreement, "does not accept this rank's token");
    }
    if (!os::is_same(answer, digest_of(options_, "gatherer", proof.nonce, challenge.nonce))) {
      throw error(Kind::disagreement, "does not have this job's token");
    }
  }

  Member receive_member() {
    Introduction introduction;
    receive(bytes_of(introduction));
    if (introduction.address_bytes > kAddressBytesMax) throw gone();
    introduction.host.back() = introduction.place.back() = '\0';
    std::vector<std::byte> address(introduction.address_bytes);
    if (!address.empty()) receive(address);
    return member_of(introduction, address);
  }

  const LiveOptions& options_;
  os::Deadline deadline_;
  os::FileDescriptor socket_;
};

}  // namespace

Job bootstrap(const LiveOptions& options, Member self, os::FileDescriptor listener,
              const Prepare& prepare) {
  if (options.rank != 0) return Joining(options).run(self, prepare);
  return Gathering(options, std::move(self), std::move(listener)).run(prepare);
}

}  // namespace towpath::transport::ucx
