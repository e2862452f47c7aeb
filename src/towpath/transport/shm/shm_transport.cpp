// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/shm_transport.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/os/process.hpp"
#include "towpath/os/process_memory.hpp"
#include "towpath/os/spin_wait.hpp"
#include "towpath/transport/shm/direct_move.hpp"
#include "towpath/transport/shm/mapped_memory.hpp"
#include "towpath/transport/shm/memory.hpp"
#include "towpath/transport/shm/rendezvous.hpp"
#include "towpath/transport/shm/sleepers.hpp"
#include "towpath/transport/signal_waits.hpp"
#include "towpath/transport/symmetric_heap.hpp"

namespace towpath::transport::shm {
namespace {

using namespace literals;
using Kind = TransportError::Kind;

// How often a waiting rank looks whether all peers are alive; one system call.
constexpr Time kLookInterval = 1_ms;
// A reduction that is also put reads its result while it is still in the cache.
constexpr std::uint64_t kBlockBytes = 64 << 10;
constexpr std::uint64_t kHeapBytesMost = std::uint64_t{64} << 30;
constexpr std::uint64_t kBytesBesideHeap = 12 << 20;  // control page and signals

struct Peer {
  Memory memory;
  os::FileDescriptor process;
  pid_t pid;
};

// A loss, and whether this group can never go on after it: a rank that left in good order may not
// be missed by those who do not wait for it.
struct Found {
  Loss loss;
  bool is_final;
};

// An allocation that the heap has no room for, with a reason.
class HeapFull : public std::bad_alloc {
 public:
  HeapFull(std::uint64_t asked_bytes, std::uint64_t heap_bytes)
      : sentence_(
            fmt::format("the symmetric heap of {} bytes has no room for {} more; give connect "
                        "a larger heap_bytes",
                        heap_bytes, asked_bytes)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  std::string sentence_;
};

std::int64_t steady_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count();
}

bool is_crowded_with(std::span<const Peer> peers) {
  std::vector<pid_t> processes;
  for (const Peer& peer : peers) processes.push_back(peer.pid);
  return static_cast<int>(peers.size()) > os::count_cores(processes);
}

class MappedTransport final : public LiveTransport {
 public:
  MappedTransport(const LiveOptions& options, SymmetricHeap heap, std::vector<Peer> peers)
      : rank_(options.rank),
        heap_(std::move(heap)),
        peers_(std::move(peers)),
        is_crowded_(is_crowded_with(peers_)),
        spin_wait_(is_crowded_),
        sleepers_(rank_),
        news_(options.news),
        on_look_(options.on_look),
        memory_(rank_, ranks(), heap_,
                {[this](int rank) { return peer(rank).memory.heap(); },
                 [this] { throw_if_failed(); }, [this](int rank) { sleepers_.wake(rank); }}) {
    for (const Peer& peer : peers_) {
      processes_.push_back({peer.process.number(), POLLIN, 0});
      sleepers_.add(peer.memory.control().bell);
    }
    own_control().looked_at_ns.store(steady_ns(), std::memory_order_relaxed);
  }
  ~MappedTransport() override { leave(); }
  MappedTransport(const MappedTransport&) = delete;
  MappedTransport& operator=(const MappedTransport&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(peers_.size()); }
  // Since this transport was made: 64 bits of picoseconds are 106 days.
  Time now() const override {
    const auto passed = std::chrono::steady_clock::now() - origin_;
    return Time::from_ps(std::chrono::nanoseconds(passed).count() * 1000);
  }
  bool carries_data() const override { return true; }
  bool is_addressable(int) const override { return true; }

  Offset allocate(std::uint64_t size_bytes) override;
  void release(Offset offset) override { heap_.release(offset); }
  Signal allocate_signals(std::uint32_t count) override { return heap_.allocate_signals(count); }
  void release_signals(Signal first) override;
  std::byte* data(Offset offset) override {
    heap_.check_range(offset, 0);
    return self().memory.heap() + offset;
  }

  void start(Move& move) override;
  void start_direct(DirectMove& move) override;
  std::string direct_refusal(const DirectNeeds&) const override { return {}; }
  RemoteMemory* remote_memory() override { return &memory_; }
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
  void cancel(SignalWait& wait) override { waits_.remove(wait); }

  bool progress() override;
  std::string pending() const override;
  void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                   const std::function<std::string()>& what) override;

  void leave() override {
    if (!is_this_rank()) return;
    if (last_loss_) publish(*last_loss_);
    withdraw(Presence::left);
  }
  void abandon(const std::string& what, int culprit) override;
  void get(int peer, Offset remote, void* target, std::uint64_t size_bytes, Time) override;
  std::uint64_t load(int peer, Offset remote) override;
  std::uint64_t activity() const override {
    return own_control().activity.load(std::memory_order_relaxed);
  }
  std::uint64_t heap_bytes() const override { return heap_.size_bytes(); }
  void note_activity() override { note_progress(); }
  bool is_crowded() const override { return is_crowded_; }
  void relax() override { spin_wait_.relax(); }
  void wake_peers() override { sleepers_.wake_all(); }
  bool read_private(int peer, const std::byte* there, std::byte* here,
                    std::uint64_t size_bytes) override {
    return os::read_process_memory(this->peer(peer).pid, there, here, size_bytes);
  }

 private:
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& self() const { return peer(rank_); }
  Control& own_control() const { return self().memory.control(); }
  // A forked child has a copy of this object, but is not the rank.
  bool is_this_rank() const { return ::getpid() == self().pid; }
  void check_peer(int rank) const;

  void check(const Move& move) const;
  void carry_payload(const Move& move);
  void add_to_signal(int rank, Signal signal, std::uint64_t value) {
    peer(rank).memory.word(heap_.word_of(signal)).fetch_add(value, std::memory_order_release);
    sleepers_.wake(rank);
  }

  bool is_ready(const SignalWait& wait) const {
    return transport::holds(wait.comparison, signal_fetch(wait.signal), wait.value);
  }
  bool poll_waits();

  void throw_if_failed() const {
    if (failure_) throw *failure_;
  }
  void note_progress() const {
    std::atomic<std::uint64_t>& activity = own_control().activity;
    activity.store(activity.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Whether it is time to look whether the peers are there. Ends the wait if the caller wants it.
  bool looks_around(Time time);
  Presence presence_of(int rank) const {
    return peer(rank).memory.control().presence.load(std::memory_order_acquire);
  }
  // Why that rank gave up; nullopt when it has not said.
  std::optional<Loss> blame_by(int rank) const;
  std::optional<Loss> find_failure() const;
  std::optional<Loss> find_death();
  std::optional<Found> find_loss(int awaited);
  std::optional<Found> find_loss_among_waits();
  int find_silent(Time timeout) const;
  [[noreturn]] void give_up(const Found& found, const std::string& awaited);
  [[noreturn]] void throw_deadline_exceeded(Time timeout, int awaited, const std::string& what);
  // Says why this rank gives up, for slower ranks that find it gone. The first reason counts.
  void publish(const Loss& loss) const;
  void withdraw(Presence presence) const {
    if (presence_of(rank_) != Presence::here) return;
    own_control().presence.store(presence, std::memory_order_release);
  }

  std::string named(int rank) const {
    return fmt::format("rank {} (pid {})", rank, peer(rank).pid);
  }

  int rank_;
  std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  SymmetricHeap heap_;
  std::vector<Peer> peers_;
  std::vector<pollfd> processes_;  // by rank
  bool is_crowded_;
  os::SpinWait spin_wait_;
  Sleepers sleepers_;
  std::shared_ptr<const News> news_;
  std::function<void()> on_look_;
  SignalWaits waits_;
  Time next_look_;
  MappedMemory memory_;
  std::optional<TransportError> failure_;  // every later call throws it again
  std::optional<Loss> last_loss_;          // what ended the last wait, if an error did
};

void MappedTransport::release_signals(Signal first) {
  const std::uint32_t count = heap_.release_signals(first);
  for (Signal signal = first; signal < first + count; ++signal) {
    self().memory.word(heap_.previous_word_of(signal)).store(0, std::memory_order_relaxed);
  }
}

Offset MappedTransport::allocate(std::uint64_t size_bytes) {
  try {
    return heap_.allocate(size_bytes);
  } catch (const std::bad_alloc&) {
    throw HeapFull(size_bytes, heap_.size_bytes());
  }
}

void MappedTransport::check_peer(int rank) const {
  if (rank >= 0 && rank < ranks()) return;
  throw std::out_of_range(fmt::format("rank {} is outside the range 0 to {}", rank, ranks() - 1));
}

// A load from mapped memory cannot wait.
void MappedTransport::get(int peer, Offset remote, void* target, std::uint64_t size_bytes, Time) {
  check_peer(peer);
  heap_.check_range(remote, size_bytes);
  std::memcpy(target, this->peer(peer).memory.heap() + remote, size_bytes);
}

std::uint64_t MappedTransport::load(int peer, Offset remote) {
  check_peer(peer);
  heap_.check_range(remote, sizeof(std::uint64_t));
  auto* const word = reinterpret_cast<std::uint64_t*>(this->peer(peer).memory.heap() + remote);
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

void MappedTransport::check(const Move& move) const {
  if (move.peer != kNoPeer) check_peer(move.peer);
  if (move.peer != kNoPeer && move.has_source) heap_.check_range(move.remote, move.size_bytes);
  if (move.has_signal) heap_.check_signal(move.signal);
  if (const char* missing = missing_part(move); missing != nullptr) {
    throw std::invalid_argument(fmt::format("a move needs {}", missing));
  }
}

void MappedTransport::carry_payload(const Move& move) {
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

void MappedTransport::start(Move& move) {
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
    sleepers_.wake(move.peer);
  }
  if (move.done != nullptr) move.done(move);
}

void MappedTransport::start_direct(DirectMove& move) {
  throw_if_failed();
  check_direct(move, heap_, ranks());
  carry(move, [this](int rank) { return peer(rank).memory.heap(); });
  for (const Raise& raise : move.raises) add_to_signal(raise.rank, raise.signal, raise.value);
  if (move.done != nullptr) move.done(move);
  if (move.visible != nullptr) move.visible(move);
}

void MappedTransport::wait(SignalWait& wait) {
  throw_if_failed();
  if (!wait.is_waiting && is_ready(wait)) {
    if (wait.ready != nullptr) wait.ready(wait);
    return;
  }
  waits_.add(wait);
}

bool MappedTransport::poll_waits() {
  const bool any = memory_.poll();
  return waits_.look([this](const SignalWait& wait) { return is_ready(wait); }) || any;
}

bool MappedTransport::progress() {
  throw_if_failed();
  if (poll_waits()) return true;
  if (!looks_around(now())) return false;
  const std::optional<Found> found = find_loss_among_waits();
  if (!found) return false;
  if (poll_waits()) return true;  // what it did before it ended still counts
  give_up(*found, waits_.describe_all(found->loss.culprit, "", *this));
}

std::string MappedTransport::pending() const {
  std::string lines = waits_.pending(*this) + memory_.pending();
  if (!lines.empty()) lines.pop_back();
  return lines;
}

void MappedTransport::block_until(const std::function<bool()>& holds, Time timeout, int awaited,
                                  const std::function<std::string()>& what) {
  throw_if_failed();
  last_loss_.reset();
  note_progress();
  if (holds()) return;
  Time progressed = now();
  bool has_progressed = false;
  spin_wait_.renew();
  while (true) {
    if (poll_waits()) {
      spin_wait_.renew();
      has_progressed = true;
    }
    if (holds()) return;
    if (spin_wait_.spin()) continue;
    const Time time = now();
    if (std::exchange(has_progressed, false)) {
      progressed = time;
      note_progress();
    }
    if (looks_around(time)) {
      std::optional<Found> found = find_loss(awaited);
      if (!found) found = find_loss_among_waits();
      // What it did before it ended still counts.
      if (found && !poll_waits() && !holds()) {
        give_up(*found, waits_.describe_all(found->loss.culprit, what(), *this));
      }
      continue;
    }
    if (time - progressed >= timeout) throw_deadline_exceeded(timeout, awaited, what());
    if (spin_wait_.rest(time)) continue;
    has_progressed |= sleepers_.sleep_unless([&] { return poll_waits() || holds(); }, spin_wait_);
  }
}

bool MappedTransport::looks_around(Time time) {
  if (time < next_look_) return false;
  next_look_ = time + kLookInterval;
  own_control().looked_at_ns.store(steady_ns(), std::memory_order_relaxed);
  if (on_look_) on_look_();
  return true;
}

std::optional<Loss> MappedTransport::blame_by(int rank) const {
  const Control& control = peer(rank).memory.control();
  const int culprit = control.culprit.load(std::memory_order_acquire);
  if (culprit == kNoPeer) return std::nullopt;
  return Loss{culprit, control.reason.data()};
}

// Where several ranks gave up, one that blames itself knows best.
std::optional<Loss> MappedTransport::find_failure() const {
  std::optional<Loss> found;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_ || presence_of(rank) != Presence::failed) continue;
    std::optional<Loss> blame = blame_by(rank);
    if (blame && blame->culprit == rank) return blame;
    if (!found) found = std::move(blame);
  }
  return found;
}

// A process that ended after its rank had left is not a loss. Where several ranks are dead, the one
// that blamed no other died first; the others ended because of it.
std::optional<Loss> MappedTransport::find_death() {
  if (::poll(processes_.data(), processes_.size(), 0) <= 0) return std::nullopt;
  std::optional<Loss> found;
  for (int rank = 0; rank < ranks(); ++rank) {
    const bool has_ended = processes_[static_cast<std::size_t>(rank)].revents != 0;
    if (!has_ended || presence_of(rank) != Presence::here) continue;
    std::optional<Loss> blame = blame_by(rank);
    if (!blame) return Loss{rank, "died"};
    found = std::move(blame);
  }
  return found;
}

std::optional<Found> MappedTransport::find_loss(int awaited) {
  if (std::optional<Loss> failure = find_failure()) return Found{std::move(*failure), true};
  if (std::optional<Loss> death = find_death()) return Found{std::move(*death), true};
  if (news_ != nullptr) {
    if (std::optional<Loss> loss = news_->read()) return Found{std::move(*loss), true};
  }
  if (awaited == kNoPeer || awaited == rank_) return std::nullopt;
  if (presence_of(awaited) != Presence::left) return std::nullopt;
  if (std::optional<Loss> blame = blame_by(awaited)) return Found{std::move(*blame), true};
  return Found{{awaited, "left"}, false};
}

std::optional<Found> MappedTransport::find_loss_among_waits() {
  std::optional<Found> found = find_loss(kNoPeer);
  for (const SignalWait* wait = waits_.first(); wait != nullptr && !found; wait = wait->next) {
    const bool has_left = wait->peer != kNoPeer && presence_of(wait->peer) == Presence::left;
    if (has_left) found = find_loss(wait->peer);
  }
  return found;
}

void MappedTransport::publish(const Loss& loss) const {
  Control& control = own_control();
  if (control.culprit.load(std::memory_order_relaxed) != kNoPeer) return;
  const std::size_t size = loss.what.copy(control.reason.data(), control.reason.size() - 1);
  control.reason[size] = '\0';
  control.culprit.store(loss.culprit, std::memory_order_release);
}

void MappedTransport::abandon(const std::string& what, int culprit) {
  if (!is_this_rank()) return;
  const bool is_known = culprit != kNoPeer && last_loss_ && last_loss_->culprit == culprit;
  publish(is_known ? *last_loss_ : Loss{rank_, what});
  withdraw(Presence::failed);
}

void MappedTransport::give_up(const Found& found, const std::string& awaited) {
  const Loss& loss = found.loss;
  const TransportError error(Kind::peer_died, loss.culprit,
                             fmt::format("{} {} while rank {} waited for {}", named(loss.culprit),
                                         loss.what, rank_, awaited));
  last_loss_ = loss;
  if (found.is_final) {
    // Slower ranks may find this one gone as well; they shall not blame it.
    publish(loss);
    failure_ = error;
  }
  throw error;
}

// Of the ranks that did not look at their peers for half of the timeout, the one that did not for
// the longest; a stopped one before all others. kNoPeer when all wait, too.
int MappedTransport::find_silent(Time timeout) const {
  const std::int64_t now_ns = steady_ns();
  std::int64_t longest_ns = timeout.ps() / 2000;
  int silent = kNoPeer;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_ || presence_of(rank) != Presence::here) continue;
    const std::int64_t looked_at_ns =
        peer(rank).memory.control().looked_at_ns.load(std::memory_order_relaxed);
    if (now_ns - looked_at_ns <= longest_ns) continue;
    if (os::is_stopped(peer(rank).pid)) return rank;
    longest_ns = now_ns - looked_at_ns;
    silent = rank;
  }
  return silent;
}

void MappedTransport::throw_deadline_exceeded(Time timeout, int awaited, const std::string& what) {
  const int silent = find_silent(timeout);
  const int culprit = silent != kNoPeer || awaited == rank_ ? silent : awaited;
  std::string end;
  if (culprit != kNoPeer) {
    const bool is_stopped = os::is_stopped(peer(culprit).pid);
    last_loss_ =
        Loss{culprit, is_stopped ? std::string("was stopped")
                                 : fmt::format("was silent for {:g} s", timeout.seconds())};
    end = fmt::format("; {} is {}", named(culprit),
                      is_stopped ? "stopped" : "alive, but slow or elsewhere");
  }
  throw TransportError(
      Kind::timeout, culprit,
      fmt::format("{} waited {:g} s in vain for {}{}", named(rank_), timeout.seconds(),
                  waits_.describe_all(culprit, what, *this), end));
}

}  // namespace

std::unique_ptr<LiveTransport> connect(const LiveOptions& asked) {
  check_membership(asked);
  LiveOptions options = asked;
  if (options.heap_bytes == 0) options.heap_bytes = default_heap_bytes(options.ranks);
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
    return std::make_unique<MappedTransport>(options, std::move(heap), std::move(peers));
  } catch (...) {
    // Others may have all they need already, and wait.
    own.control().presence.store(Presence::left);
    throw;
  }
}

}  // namespace towpath::transport::shm
