// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/shm/shm_transport.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "towpath/os/process.hpp"
#include "towpath/transport/shm/mapped_memory.hpp"
#include "towpath/transport/shm/moves.hpp"
#include "towpath/transport/shm/peers.hpp"
#include "towpath/transport/shm/rendezvous.hpp"
#include "towpath/transport/shm/sleepers.hpp"
#include "towpath/transport/symmetric_heap.hpp"
#include "towpath/transport/waiting_transport.hpp"

namespace towpath::transport::shm {
namespace {

using namespace literals;

// An allocation that does not fit into the heap, with a reason.
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

class MappedTransport final : public WaitingTransport {
 public:
  MappedTransport(const LiveOptions& options, SymmetricHeap heap, Peers peers)
      : WaitingTransport(options, peers.are_crowded()),
        heap_(std::move(heap)),
        peers_(std::move(peers)),
        sleepers_(options.rank),
        memory_(options.rank, options.ranks, heap_,
                {[this](int rank) { return peers_.memory(rank).heap(); },
                 [this] { throw_if_failed(); }, [this](int rank) { sleepers_.wake(rank); }}) {
    for (int rank = 0; rank < ranks(); ++rank) sleepers_.add(peers_.control(rank).wake_flag);
    own_control().looked_at_ns.store(steady_ns(), std::memory_order_relaxed);
  }
  ~MappedTransport() override { leave(); }
  MappedTransport(const MappedTransport&) = delete;
  MappedTransport& operator=(const MappedTransport&) = delete;

  int ranks() const override { return peers_.count(); }
  bool carries_data() const override { return true; }
  bool is_addressable(int) const override { return true; }

  Offset allocate(std::uint64_t size_bytes) override;
  void release(Offset offset) override { heap_.release(offset); }
  Signal allocate_signals(std::uint32_t count) override { return heap_.allocate_signals(count); }
  void release_signals(Signal first) override;
  std::byte* data(Offset offset) override {
    heap_.check_range(offset, 0);
    return own().heap() + offset;
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
    return own().word(heap_.word_of(signal)).load(std::memory_order_acquire);
  }
  std::string pending() const override;

  void leave() override {
    if (!peers_.is_self()) return;
    if (last_failure()) peers_.publish(*last_failure());
    peers_.withdraw(Presence::left);
  }
  void abandon(const std::string& what, int culprit) override;
  void get(int peer, Offset remote, void* target, std::uint64_t size_bytes, Time) override;
  std::uint64_t load(int peer, Offset remote) override;
  std::uint64_t activity() const override {
    return own_control().activity.load(std::memory_order_relaxed);
  }
  std::uint64_t heap_bytes() const override { return heap_.size_bytes(); }
  void note_activity() override {
    std::atomic<std::uint64_t>& activity = own_control().activity;
    activity.store(activity.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void relax() override { spin_wait().relax(); }
  void wake_peers() override { sleepers_.wake_all(); }
  bool read_private(int peer, const std::byte* there, std::byte* here,
                    std::uint64_t size_bytes) override {
    return os::read_process_memory(peers_.pid(peer), there, here, size_bytes);
  }

 private:
  const Memory& own() const { return peers_.memory(rank()); }
  Control& own_control() const { return own().control(); }

  Standing standing(int rank) const override { return peers_.standing(rank); }
  std::string named(int rank) const override {
    return fmt::format("rank {} (pid {})", rank, peers_.pid(rank));
  }
  bool take_arrivals() override { return memory_.poll(); }
  void look_at_peers() override;
  bool rest(Time now, const std::function<bool()>& holds) override;
  // Slower ranks may also find this one gone, and must not report it as the cause.
  void note_final_failure(const RankFailure& failure) override { peers_.publish(failure); }
  Lateness find_late(Time timeout, int awaited) override;

  SymmetricHeap heap_;
  Peers peers_;
  Sleepers sleepers_;
  MappedMemory memory_;
};

void MappedTransport::release_signals(Signal first) {
  const std::uint32_t count = heap_.release_signals(first);
  for (Signal signal = first; signal < first + count; ++signal) {
    own().word(heap_.previous_word_of(signal)).store(0, std::memory_order_relaxed);
  }
}

Offset MappedTransport::allocate(std::uint64_t size_bytes) {
  try {
    return heap_.allocate(size_bytes);
  } catch (const std::bad_alloc&) {
    throw HeapFull(size_bytes, heap_.size_bytes());
  }
}

// A load from mapped memory cannot block.
void MappedTransport::get(int peer, Offset remote, void* target, std::uint64_t size_bytes, Time) {
  check_rank(peer, ranks());
  heap_.check_range(remote, size_bytes);
  std::memcpy(target, peers_.memory(peer).heap() + remote, size_bytes);
}

std::uint64_t MappedTransport::load(int peer, Offset remote) {
  check_rank(peer, ranks());
  heap_.check_range(remote, sizeof(std::uint64_t));
  auto* const word = reinterpret_cast<std::uint64_t*>(peers_.memory(peer).heap() + remote);
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

void MappedTransport::start(Move& move) {
  throw_if_failed();
  check_move(move, heap_, ranks());
  carry(move, move.peer == kNoPeer ? nullptr : peers_.memory(move.peer).heap());
  if (move.has_signal) {
    raise(move, peers_.memory(move.peer).word(heap_.word_of(move.signal)));
    sleepers_.wake(move.peer);
  }
  if (move.done != nullptr) move.done(move);
}

void MappedTransport::start_direct(DirectMove& move) {
  throw_if_failed();
  check_direct(move, heap_, ranks());
  carry(move, [this](int rank) { return peers_.memory(rank).heap(); });
  for (const Raise& raise : move.raises) {
    peers_.memory(raise.rank)
        .word(heap_.word_of(raise.signal))
        .fetch_add(raise.value, std::memory_order_release);
    sleepers_.wake(raise.rank);
  }
  if (move.done != nullptr) move.done(move);
  if (move.visible != nullptr) move.visible(move);
}

std::string MappedTransport::pending() const {
  std::string lines = WaitingTransport::pending();
  std::string others = memory_.pending();
  if (!others.empty()) others.pop_back();
  const bool are_both = !lines.empty() && !others.empty();
  return lines + (are_both ? "\n" : "") + others;
}

// --- waiting -------------------------------------------------------------------------------------

bool MappedTransport::rest(Time now, const std::function<bool()>& holds) {
  if (spin_wait().rest(now)) return false;
  return sleepers_.sleep_unless([&] { return poll() || holds(); }, spin_wait());
}

void MappedTransport::look_at_peers() {
  own_control().looked_at_ns.store(steady_ns(), std::memory_order_relaxed);
  peers_.look();
}

void MappedTransport::abandon(const std::string& what, int culprit) {
  if (!peers_.is_self()) return;
  peers_.publish(reason_for(what, culprit));
  peers_.withdraw(Presence::failed);
}

WaitingTransport::Lateness MappedTransport::find_late(Time timeout, int awaited) {
  const int silent = peers_.find_silent(steady_ns(), timeout.ps() / 2000);
  const int culprit = silent != kNoPeer || awaited == rank() ? silent : awaited;
  if (culprit == kNoPeer) return {};
  const bool is_stopped = os::is_stopped(peers_.pid(culprit));
  return {culprit,
          is_stopped ? std::string("was stopped")
                     : fmt::format("was silent for {:g} s", timeout.seconds()),
          fmt::format("{} is {}", named(culprit),
                      is_stopped ? "stopped" : "alive, but slow or elsewhere")};
}

constexpr std::uint64_t kHeapBytesMost = std::uint64_t{64} << 30;
constexpr std::uint64_t kBytesBesideHeap = 12 << 20;  // control page and signals

}  // namespace

// A process maps the heap of each rank, and its local one twice while it connects. Half of the
// address space is left to the program.
std::uint64_t default_heap_bytes(int ranks) {
  constexpr std::uint64_t kUnit = 2 << 20;
  std::uint64_t most = kHeapBytesMost;
  const auto limit = [&most](std::uint64_t file_bytes) {
    most = std::min(most, file_bytes - std::min(file_bytes, kBytesBesideHeap));
  };
  rlimit found{};
  if (::getrlimit(RLIMIT_AS, &found) == 0 && found.rlim_cur != RLIM_INFINITY) {
    limit(found.rlim_cur / 2 / (static_cast<std::uint64_t>(ranks) + 1));
  }
  if (::getrlimit(RLIMIT_FSIZE, &found) == 0 && found.rlim_cur != RLIM_INFINITY) {
    limit(found.rlim_cur);
  }
  return std::max(most / kUnit * kUnit, kUnit);
}

std::unique_ptr<LiveTransport> connect(const LiveOptions& asked) {
  check_membership(asked);
  LiveOptions options = asked;
  if (options.heap_bytes == 0) options.heap_bytes = default_heap_bytes(options.ranks);
  SymmetricHeap heap(options.ranks, options.heap_bytes, options.signals);
  const MemoryLayout layout{heap.signal_words(), options.heap_bytes};
  os::FileDescriptor file = new_memory(layout);
  const Memory own(file, layout);
  try {
    Peers peers(options.rank, rendezvous(options, this_member(std::move(file))), layout);
    return std::make_unique<MappedTransport>(options, std::move(heap), std::move(peers));
  } catch (...) {
    // Other ranks may already have all their data, and wait.
    own.control().presence.store(Presence::left);
    throw;
  }
}

}  // namespace towpath::transport::shm
