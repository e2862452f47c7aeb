// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/os/stream.hpp"
#include "towpath/transport/ucx/bootstrap.hpp"
#include "towpath/transport/ucx/message_heap.hpp"
#include "towpath/transport/waiting_transport.hpp"

namespace towpath::transport::ucx {
namespace {

using namespace literals;

constexpr std::uint64_t kHeapBytesDefault = std::uint64_t{16} << 30;
// The time limit for the last messages of a rank that leaves.
constexpr Time kLeaveWithin = 500_ms;
// If there are several interfaces: a peer's other connections follow its first message within this.
constexpr Time kConnectWithin = 2_s;
// A waiting rank answers within this time, unless the network is very slow.
constexpr Time kAnswerWithin = 250_ms;

class UcxTransport final : public WaitingTransport {
 public:
  UcxTransport(const LiveOptions& options, std::unique_ptr<Wire> wire, const Job& job)
      // The ranks of a host and its cores are not counted.
      : WaitingTransport(options, false),
        timeout_(options.timeout),
        members_(job.members),
        heap_(options, std::move(wire), job) {
    connect_all();
  }
  ~UcxTransport() override { leave(); }
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  int ranks() const override { return static_cast<int>(members_.size()); }
  bool carries_data() const override { return true; }
  bool is_addressable(int peer) const override { return heap_.memory().reaches(peer); }

  Offset allocate(std::uint64_t size_bytes) override { return heap_.layout().allocate(size_bytes); }
  void release(Offset offset) override { heap_.layout().release(offset); }
  Signal allocate_signals(std::uint32_t count) override {
    return heap_.layout().allocate_signals(count);
  }
  void release_signals(Signal first) override { heap_.release_signals(first); }
  std::byte* data(Offset offset) override {
    heap_.layout().check_range(offset, 0);
    return heap_.bytes() + offset;
  }

  void start(Move& move) override;
  void fence() override { heap_.fence(); }
  bool is_quiet() const override { return heap_.is_quiet(); }

  std::uint64_t signal_fetch(Signal signal) const override {
    heap_.layout().check_signal(signal);
    return heap_.signal(signal);
  }
  void leave() override;
  void abandon(const std::string& what, int culprit) override;
  void get(int peer, Offset remote, void* target, std::uint64_t size_bytes, Time timeout) override;
  std::uint64_t load(int peer, Offset remote) override;
  std::uint64_t activity() const override { return activity_.load(std::memory_order_relaxed); }
  std::uint64_t heap_bytes() const override { return heap_.layout().size_bytes(); }
  bool needs_progress() const override { return true; }
  void note_activity() override { activity_.fetch_add(1, std::memory_order_relaxed); }

 private:
  // A forked child has a copy of this object, but is not the rank.
  bool is_this_rank() const { return ::getpid() == member(rank()).pid; }
  void connect_all();
  const Member& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  // --- waiting -----------------------------------------------------------------------------------
  Standing standing(int rank) const override;
  void look_at_peers() override {
    heap_.memory().look();
    if (now() >= closes_at_) {
      heap_.admit_nobody();
      closes_at_ = Time::max();
    }
  }
  // Slower ranks of this host may also find this one gone, and must not report it as the cause.
  void note_final_failure(const RankFailure& failure) override { heap_.memory().publish(failure); }
  std::string named(int rank) const override {
    return fmt::format("rank {} (pid {} on {})", rank, member(rank).pid, member(rank).host);
  }
  bool take_arrivals() override { return heap_.progress(); }
  bool rest(Time now, const std::function<bool()>& holds) override;
  Lateness find_late(Time timeout, int awaited) override;
  int find_silent();
  void announce_end(MessageKind kind, const std::optional<RankFailure>& failure);

  Time timeout_;
  std::vector<Member> members_;  // by rank
  std::atomic<std::uint64_t> activity_{0};
  bool has_left_ = false;
  Time closes_at_ = Time::max();  // to connections
  mutable MessageHeap heap_;      // a flush is not a change
};

// Receives a message from every other rank before the first call, so that all connections exist.
void UcxTransport::connect_all() {
  heap_.notify_all(MessageKind::here);
  for (int from = 0; from < ranks(); ++from) {
    if (from == rank()) continue;
    block_until([&] { return heap_.contact(from).is_ready; }, timeout_, from,
                [&] { return fmt::format("the first message of rank {}", from); });
  }
  // One interface has one connection per peer, over which the message came.
  closes_at_ = now() + (heap_.tcp_interfaces() > 1 ? kConnectWithin : Time{});
  look_at_peers();
}

void UcxTransport::start(Move& move) {
  throw_if_failed();
  check_move(move, heap_.layout(), ranks());
  heap_.start(move);
}

void UcxTransport::get(int from, Offset remote, void* target, std::uint64_t size_bytes,
                       Time timeout) {
  throw_if_failed();
  check_rank(from, ranks());
  heap_.layout().check_range(remote, size_bytes);
  if (heap_.memory().reaches(from)) {
    std::memcpy(target, heap_.memory().heap(from) + remote, size_bytes);
    return;
  }
  const std::uint64_t number = heap_.start_get(from, remote, size_bytes);
  try {
    block_until([&] { return heap_.is_over(number); }, timeout, from,
                [&] { return fmt::format("{} bytes from rank {}", size_bytes, from); });
  } catch (...) {
    heap_.forget(number);
    throw;
  }
  const std::vector<std::byte> bytes = heap_.take_bytes(number);
  if (!bytes.empty()) std::memcpy(target, bytes.data(), bytes.size());
}

// --- waiting -------------------------------------------------------------------------------------

std::uint64_t UcxTransport::load(int from, Offset remote) {
  std::uint64_t word = 0;
  check_rank(from, ranks());
  if (!heap_.memory().reaches(from)) {
    get(from, remote, &word, sizeof(word), timeout_);
    return word;
  }
  heap_.layout().check_range(remote, sizeof(word));
  auto* const there = reinterpret_cast<std::uint64_t*>(heap_.memory().heap(from) + remote);
  return std::atomic_ref(*there).load(std::memory_order_acquire);
}

// The published state of a rank of this host is newer than its messages.
Standing UcxTransport::standing(int rank) const {
  if (heap_.memory().reaches(rank)) {
    Standing here = heap_.memory().standing(rank);
    if (here.presence != Presence::here) return here;
  }
  return heap_.contact(rank).standing;
}

bool UcxTransport::rest(Time now, const std::function<bool()>&) {
  spin_wait().rest_or_nap(now);
  return false;
}

// Queries all others. Every waiting rank answers. Returns the first rank without an answer, or
// kNoPeer.
int UcxTransport::find_silent() {
  std::vector<std::uint64_t> before;
  for (int rank = 0; rank < ranks(); ++rank) before.push_back(heap_.contact(rank).messages);
  heap_.notify_all(MessageKind::ask);
  const auto silent = [&] {
    for (int rank = 0; rank < ranks(); ++rank) {
      const Contact& of = heap_.contact(rank);
      const bool has_answered = of.messages > before[static_cast<std::size_t>(rank)];
      const bool is_here = of.standing.presence == Presence::here;
      if (rank != this->rank() && is_here && !has_answered) return rank;
    }
    return kNoPeer;
  };
  const Time end = now() + kAnswerWithin;
  while (silent() != kNoPeer && now() < end) heap_.progress();
  return silent();
}

WaitingTransport::Lateness UcxTransport::find_late(Time timeout, int awaited) {
  const int silent = find_silent();
  const int culprit = silent != kNoPeer || awaited == rank() ? silent : awaited;
  if (culprit == kNoPeer) return {};
  return {
      culprit, fmt::format("was silent for {:g} s", timeout.seconds()),
      fmt::format("{} {}", named(culprit),
                  culprit == silent ? "does not answer: it is stopped, in another call, or cut off"
                                    : "is there, but slow or in another call")};
}

// --- the end -------------------------------------------------------------------------------------

// An error here would hide the reason for which this rank ends. Peers also notice its connections.
void UcxTransport::announce_end(MessageKind kind, const std::optional<RankFailure>& failure) {
  has_left_ = true;
  try {
    heap_.notify_all(kind, failure);
    const Time end = now() + kLeaveWithin;
    while (!heap_.is_flushed() && now() < end) heap_.progress();
  } catch (const std::exception&) {
    return;
  }
}

void UcxTransport::leave() {
  if (has_left_ || !is_this_rank()) return;
  announce_end(MessageKind::left, last_failure());
  if (last_failure()) heap_.memory().publish(*last_failure());
  heap_.memory().withdraw(Presence::left);
}

void UcxTransport::abandon(const std::string& what, int culprit) {
  if (has_left_ || !is_this_rank()) return;
  const RankFailure reason = reason_for(what, culprit);
  announce_end(MessageKind::failed, reason);
  heap_.memory().publish(reason);
  heap_.memory().withdraw(Presence::failed);
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "a host";
  name.resize(std::strlen(name.c_str()));
  return name;
}

// UCX's devices for a job: the interface that leads to the rendezvous, and all RDMA devices, which
// a TCP connection cannot reach. Empty, for all, if the user chose or no interface leads there.
std::string devices_for(const LiveOptions& options) {
  if (std::getenv("UCX_NET_DEVICES") != nullptr) return {};
  if (!os::is_network_address(options.rendezvous)) return "lo";
  std::string devices = os::interface_towards(options.rendezvous);
  if (devices.empty() || devices == "lo") return devices;
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", error)) {
    for (const auto& port : std::filesystem::directory_iterator(device.path() / "ports", error)) {
      devices +=
          fmt::format(",{}:{}", device.path().filename().string(), port.path().filename().string());
    }
  }
  return devices;
}

// The hosts of a job. Empty if one of them has no IPv4 address, or too many.
std::optional<std::vector<os::Ipv4Address>> hosts_of(const Job& job) {
  std::vector<os::Ipv4Address> hosts;
  for (const Member& member : job.members) {
    if (member.hosts.empty()) return std::nullopt;
    hosts.insert(hosts.end(), member.hosts.begin(), member.hosts.end());
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

}  // namespace

std::unique_ptr<LiveTransport> connect(const LiveOptions& asked) {
  os::FileDescriptor listener(asked.listener);
  check_membership(asked);
  LiveOptions options = asked;
  if (options.heap_bytes == 0) options.heap_bytes = kHeapBytesDefault;
  if (os::is_network_address(options.rendezvous) && options.token.empty()) {
    throw std::invalid_argument(
        fmt::format("the group at \"{}\" needs a token, a secret that only its ranks share",
                    options.rendezvous));
  }
  auto wire = std::make_unique<Wire>(devices_for(options));
  const Job job = bootstrap(
      options, {::getpid(), host_name(), wire->address(), host_place(), os::ipv4_addresses()},
      std::move(listener), [&](const Job& joined) { wire->admit(hosts_of(joined)); });
  return std::make_unique<UcxTransport>(options, std::move(wire), job);
}

}  // namespace towpath::transport::ucx
