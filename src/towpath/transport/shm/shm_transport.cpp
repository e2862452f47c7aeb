// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/shm_transport.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/os/spin_wait.hpp"
#include "towpath/transport/shm/memory.hpp"
#include "towpath/transport/shm/rendezvous.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::transport::shm {
namespace {

using Kind = TransportError::Kind;

constexpr std::size_t kRendezvousBytesMax = 64;
// How often a waiting rank looks whether all peers are alive; one system call.
constexpr Time kLookInterval = Time::from_ps(1'000'000'000);
// A reduction that is also put reads its result while it is still in the cache.
constexpr std::uint64_t kBlockBytes = 64 << 10;
constexpr std::size_t kWaitsInSentenceMax = 4;

struct Peer {
  Memory memory;
  os::FileDescriptor process;
  pid_t pid;
};

// Why a wait will not end: a rank died, or left in good order.
struct Loss {
  int culprit;
  bool is_death;
};

int cores_available() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

class ShmTransport final : public Transport {
 public:
  ShmTransport(const Options& options, SymmetricHeap heap, std::vector<Peer> peers)
      : rank_(options.rank),
        heap_(std::move(heap)),
        peers_(std::move(peers)),
        patience_(options.ranks > cores_available()) {
    for (const Peer& peer : peers_) processes_.push_back({peer.process.number(), POLLIN, 0});
  }
  ~ShmTransport() override {
    // A forked child has a copy of this object, but is not the rank.
    if (::getpid() != self().pid) return;
    self().memory.control().presence.store(Presence::left, std::memory_order_release);
  }
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(peers_.size()); }
  // Since this transport was made: 64 bits of picoseconds are 106 days.
  Time now() const override {
    const auto passed = std::chrono::steady_clock::now() - origin_;
    return Time::from_ps(std::chrono::nanoseconds(passed).count() * 1000);
  }
  bool carries_data() const override { return true; }
  bool is_addressable(int) const override { return true; }

  Offset allocate(std::uint64_t size_bytes) override { return heap_.allocate(size_bytes); }
  void release(Offset offset) override { heap_.release(offset); }
  Signal allocate_signals(std::uint32_t count) override { return heap_.allocate_signals(count); }
  void release_signals(Signal first) override;
  std::byte* data(Offset offset) override {
    heap_.check_range(offset, 0);
    return self().memory.heap() + offset;
  }

  void start(Move& move) override;
  void fence() override { std::atomic_thread_fence(std::memory_order_release); }
  bool is_quiet() const override {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return true;
  }

  std::uint64_t signal_fetch(Signal signal) const override {
    heap_.check_signal(signal);
    return self().memory.word(heap_.word_of(signal)).load(std::memory_order_acquire);
  }
  void wait(SignalWait& wait) override;
  void cancel(SignalWait& wait) override;

  bool progress() override;
  std::string pending() const override;
  void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                   const std::function<std::string()>& what) override;

 private:
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& self() const { return peer(rank_); }

  void check(const Move& move) const;
  void carry_payload(const Move& move);

  bool is_ready(const SignalWait& wait) const {
    return transport::holds(wait.comparison, signal_fetch(wait.signal), wait.value);
  }
  void unlink(SignalWait& wait);
  bool poll_waits();

  void throw_if_failed() const {
    if (failure_) throw *failure_;
  }
  bool is_time_to_look(Time time);
  bool has_left(int rank) const;
  std::optional<Loss> find_loss(int awaited);
  std::optional<Loss> find_loss_among_waits();
  [[noreturn]] void give_up(const Loss& loss, const std::string& awaited);
  [[noreturn]] void time_out(Time timeout, int awaited, const std::string& what) const;

  std::string named(int rank) const {
    return fmt::format("rank {} (pid {})", rank, peer(rank).pid);
  }
  std::string describe(const SignalWait& wait) const;
  std::string describe_all(int culprit, const std::string& what) const;

  int rank_;
  std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  SymmetricHeap heap_;
  std::vector<Peer> peers_;
  std::vector<pollfd> processes_;  // by rank
  os::SpinWait patience_;
  SignalWait* first_wait_ = nullptr;
  SignalWait* last_wait_ = nullptr;
  SignalWait* next_to_poll_ = nullptr;  // survives what `ready` does to the list
  Time next_look_;
  std::optional<TransportError> failure_;  // a rank died
};

void ShmTransport::release_signals(Signal first) {
  const std::uint32_t count = heap_.release_signals(first);
  for (Signal signal = first; signal < first + count; ++signal) {
    self().memory.word(heap_.previous_word_of(signal)).store(0, std::memory_order_relaxed);
  }
}

void ShmTransport::check(const Move& move) const {
  if (move.peer != kNoPeer && (move.peer < 0 || move.peer >= ranks())) {
    throw std::out_of_range(
        fmt::format("rank {} is outside the range 0 to {}", move.peer, ranks() - 1));
  }
  if (move.peer != kNoPeer && move.has_source) heap_.check_range(move.remote, move.size_bytes);
  if (move.has_signal) heap_.check_signal(move.signal);
  const bool lacks_peer = move.has_signal && move.peer == kNoPeer;
  const bool lacks_source = move.has_addend && !move.has_source;
  const bool lacks_memory = move.size_bytes > 0 && ((move.has_source && move.source == nullptr) ||
                                                    (move.has_addend && move.addend == nullptr) ||
                                                    (move.has_destination && !move.destination));
  if (lacks_peer || lacks_source || lacks_memory) {
    throw std::invalid_argument(fmt::format(
        "a move needs {}", lacks_peer     ? "a peer to raise its signal at"
                           : lacks_source ? "a source beside its addend"
                                          : "a pointer for each operand that its flags name"));
  }
}

void ShmTransport::carry_payload(const Move& move) {
  std::byte* const remote =
      move.peer == kNoPeer ? nullptr : peer(move.peer).memory.heap() + move.remote;
  std::byte* const local = move.has_destination ? move.destination : nullptr;
  if (!move.has_addend) {
    if (local != nullptr) std::memmove(local, move.source, move.size_bytes);
    if (remote != nullptr) std::memmove(remote, move.source, move.size_bytes);
    return;
  }
  if (local == nullptr || remote == nullptr) {
    std::byte* const result = local == nullptr ? remote : local;
    if (result == nullptr) return;
    reduce(result, move.source, move.addend, move.size_bytes, move.reduction);
    return;
  }
  for (std::uint64_t done = 0; done < move.size_bytes; done += kBlockBytes) {
    const std::uint64_t size = std::min(kBlockBytes, move.size_bytes - done);
    reduce(local + done, move.source + done, move.addend + done, size, move.reduction);
    std::memcpy(remote + done, local + done, size);
  }
}

void ShmTransport::start(Move& move) {
  throw_if_failed();
  check(move);
  if (move.has_source && move.size_bytes > 0) carry_payload(move);
  if (move.has_signal) {
    const auto word = peer(move.peer).memory.word(heap_.word_of(move.signal));
    if (move.signal_operation == SignalOperation::set) {
      word.store(move.signal_value, std::memory_order_release);
    } else {
      word.fetch_add(move.signal_value, std::memory_order_release);
    }
  }
  if (move.done != nullptr) move.done(move);
}

void ShmTransport::wait(SignalWait& wait) {
  throw_if_failed();
  if (wait.is_waiting) throw std::invalid_argument("a wait that is already waiting began again");
  if (is_ready(wait)) {
    if (wait.ready != nullptr) wait.ready(wait);
    return;
  }
  wait.is_waiting = true;
  wait.next = nullptr;
  wait.previous = last_wait_;
  (last_wait_ == nullptr ? first_wait_ : last_wait_->next) = &wait;
  last_wait_ = &wait;
}

void ShmTransport::cancel(SignalWait& wait) {
  if (wait.is_waiting) unlink(wait);
}

void ShmTransport::unlink(SignalWait& wait) {
  if (next_to_poll_ == &wait) next_to_poll_ = wait.next;
  (wait.previous == nullptr ? first_wait_ : wait.previous->next) = wait.next;
  (wait.next == nullptr ? last_wait_ : wait.next->previous) = wait.previous;
  wait.next = wait.previous = nullptr;
  wait.is_waiting = false;
}

bool ShmTransport::poll_waits() {
  bool any = false;
  next_to_poll_ = first_wait_;
  while (next_to_poll_ != nullptr) {
    SignalWait& wait = *std::exchange(next_to_poll_, next_to_poll_->next);
    if (!is_ready(wait)) continue;
    any = true;
    unlink(wait);
    if (wait.ready != nullptr) wait.ready(wait);
  }
  return any;
}

bool ShmTransport::progress() {
  throw_if_failed();
  if (poll_waits()) return true;
  if (!is_time_to_look(now())) return false;
  const std::optional<Loss> loss = find_loss_among_waits();
  if (!loss) return false;
  if (poll_waits()) return true;  // what it did before it ended still counts
  give_up(*loss, describe_all(loss->culprit, ""));
}

std::string ShmTransport::pending() const {
  std::string lines;
  for (const SignalWait* wait = first_wait_; wait != nullptr; wait = wait->next) {
    lines += describe(*wait) + '\n';
  }
  if (!lines.empty()) lines.pop_back();
  return lines;
}

void ShmTransport::block_until(const std::function<bool()>& holds, Time timeout, int awaited,
                               const std::function<std::string()>& what) {
  throw_if_failed();
  if (holds()) return;
  Time progressed = now();
  bool has_progressed = false;
  patience_.renew();
  while (true) {
    if (poll_waits()) {
      patience_.renew();
      has_progressed = true;
    }
    if (holds()) return;
    if (patience_.spin()) continue;
    const Time time = now();
    if (std::exchange(has_progressed, false)) progressed = time;
    if (is_time_to_look(time)) {
      std::optional<Loss> loss = find_loss(awaited);
      if (!loss) loss = find_loss_among_waits();
      // What it did before it ended still counts.
      if (loss && !poll_waits() && !holds()) {
        give_up(*loss, describe_all(loss->culprit, what()));
      }
      continue;
    }
    if (time - progressed >= timeout) time_out(timeout, awaited, what());
    patience_.rest(time);
  }
}

bool ShmTransport::is_time_to_look(Time time) {
  if (time < next_look_) return false;
  next_look_ = time + kLookInterval;
  return true;
}

bool ShmTransport::has_left(int rank) const {
  return peer(rank).memory.control().presence.load(std::memory_order_acquire) == Presence::left;
}

// A process that ended after its rank had left is no loss. Of several dead ranks, the one that
// blamed nobody died first; the others ended because of it.
std::optional<Loss> ShmTransport::find_loss(int awaited) {
  if (::poll(processes_.data(), processes_.size(), 0) > 0) {
    int culprit = kNoPeer;
    for (int rank = 0; rank < ranks(); ++rank) {
      const bool has_ended = processes_[static_cast<std::size_t>(rank)].revents != 0;
      if (!has_ended || has_left(rank)) continue;
      const int blamed = peer(rank).memory.control().culprit.load(std::memory_order_acquire);
      if (blamed == kNoPeer) return Loss{rank, true};
      culprit = blamed;
    }
    if (culprit != kNoPeer) return Loss{culprit, true};
  }
  if (awaited != kNoPeer && awaited != rank_ && has_left(awaited)) {
    const int blamed = peer(awaited).memory.control().culprit.load(std::memory_order_acquire);
    if (blamed != kNoPeer) return Loss{blamed, true};
    return Loss{awaited, false};
  }
  return std::nullopt;
}

std::optional<Loss> ShmTransport::find_loss_among_waits() {
  std::optional<Loss> loss = find_loss(kNoPeer);
  for (SignalWait* wait = first_wait_; wait != nullptr && !loss; wait = wait->next) {
    if (wait->peer != kNoPeer && has_left(wait->peer)) loss = find_loss(wait->peer);
  }
  return loss;
}

void ShmTransport::give_up(const Loss& loss, const std::string& awaited) {
  const TransportError error(Kind::peer_died, loss.culprit,
                             fmt::format("{} {} while rank {} waited for {}", named(loss.culprit),
                                         loss.is_death ? "died" : "left", rank_, awaited));
  if (loss.is_death) {
    // Slower ranks may find this one gone as well; they shall not blame it.
    self().memory.control().culprit.store(loss.culprit, std::memory_order_release);
    failure_ = error;
  }
  throw error;
}

void ShmTransport::time_out(Time timeout, int awaited, const std::string& what) const {
  const std::string silent =
      awaited == kNoPeer || awaited == rank_
          ? std::string()
          : fmt::format("; {} is alive, but slow, stopped or elsewhere", named(awaited));
  throw TransportError(Kind::timeout, awaited,
                       fmt::format("{} waited {:g} s in vain for {}{}", named(rank_),
                                   timeout.seconds(), describe_all(awaited, what), silent));
}

std::string ShmTransport::describe(const SignalWait& wait) const {
  if (wait.describe != nullptr) return wait.describe(wait);
  const std::string from = wait.peer == kNoPeer ? "" : fmt::format(" from rank {}", wait.peer);
  return fmt::format("signal {} (it is {}, compared with {}){}", wait.signal,
                     signal_fetch(wait.signal), wait.value, from);
}

// First what concerns the culprit, then all, shortened.
std::string ShmTransport::describe_all(int culprit, const std::string& what) const {
  std::string first = what;
  std::string all = what;
  std::size_t count = 0;
  for (const SignalWait* wait = first_wait_; wait != nullptr; wait = wait->next, ++count) {
    const bool concerns_culprit = wait->peer == culprit && culprit != kNoPeer;
    if (first.empty() || (first == what && concerns_culprit)) first = describe(*wait);
    if (count < kWaitsInSentenceMax) all += (all.empty() ? "" : "; ") + describe(*wait);
  }
  if (count > kWaitsInSentenceMax) all += fmt::format("; and {} more", count - kWaitsInSentenceMax);
  if (first.empty()) return "nothing in particular";
  return first == all ? first : fmt::format("{} (all waits: {})", first, all);
}

void check(const Options& options) {
  const auto reject = [](const std::string& sentence) { throw std::invalid_argument(sentence); };
  if (options.rendezvous.empty() || options.rendezvous.size() > kRendezvousBytesMax) {
    reject(fmt::format("the rendezvous name \"{}\" has {} bytes; 1 to {} are allowed",
                       options.rendezvous, options.rendezvous.size(), kRendezvousBytesMax));
  }
  if (options.ranks < 1) reject(fmt::format("{} ranks; at least 1 is needed", options.ranks));
  if (options.rank < 0 || options.rank >= options.ranks) {
    reject(fmt::format("rank {} is outside the range 0 to {}", options.rank, options.ranks - 1));
  }
}

}  // namespace

std::unique_ptr<Transport> connect(const Options& options) {
  check(options);
  SymmetricHeap heap(options.ranks, options.heap_bytes, options.signals);
  const MemoryLayout layout{heap.signal_words(), options.heap_bytes};
  os::FileDescriptor file = create_memory(layout);
  const Memory own(file, layout);
  own.control().culprit.store(kNoPeer);
  try {
    std::vector<Peer> peers;
    for (Member& member : rendezvous(options, this_member(std::move(file)))) {
      peers.push_back({Memory(member.memory, layout), std::move(member.process), member.pid});
    }
    return std::make_unique<ShmTransport>(options, std::move(heap), std::move(peers));
  } catch (...) {
    // Others may have all they need already, and wait.
    own.control().presence.store(Presence::left);
    throw;
  }
}

}  // namespace towpath::transport::shm
