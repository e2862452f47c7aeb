// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "towpath/os/spin_wait.hpp"
#include "towpath/os/stream.hpp"
#include "towpath/transport/signal_waits.hpp"
#include "towpath/transport/ucx/bootstrap.hpp"
#include "towpath/transport/ucx/message_heap.hpp"

namespace towpath::transport::ucx {
namespace {

using namespace literals;
using Kind = TransportError::Kind;

// How often a waiting rank looks whether all peers are there.
constexpr Time kLookInterval = 1_ms;
constexpr std::uint64_t kHeapBytesDefault = std::uint64_t{16} << 30;
// What says that a rank has left or failed may take as long to leave this process.
constexpr Time kFarewell = 500_ms;
// Who waits answers within this, unless the network is very slow.
constexpr Time kAnswerWithin = 250_ms;

// A loss, and whether this group can never go on after it: a rank that left in good order may not
// be missed by those who do not wait for it.
struct Found {
  Loss loss;
  bool is_final;
};

class UcxTransport final : public LiveTransport {
 public:
  UcxTransport(const LiveOptions& options, std::unique_ptr<Wire> wire, const Job& job)
      : rank_(options.rank),
        timeout_(options.timeout),
        members_(job.members),
        // The ranks of a host and its cores are not counted.
        spin_wait_(false),
        news_(options.news),
        on_look_(options.on_look),
        heap_(options, std::move(wire), job) {
    greet();
  }
  ~UcxTransport() override { leave(); }
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(members_.size()); }
  Time now() const override {
    const auto passed = std::chrono::steady_clock::now() - origin_;
    return Time::from_ps(std::chrono::nanoseconds(passed).count() * 1000);
  }
  bool carries_data() const override { return true; }
  bool is_addressable(int peer) const override { return peer == rank_; }

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
  void wait(SignalWait& wait) override;
  void cancel(SignalWait& wait) override { waits_.remove(wait); }

  bool progress() override;
  std::string pending() const override {
    std::string lines = waits_.pending(*this);
    if (!lines.empty()) lines.pop_back();
    return lines;
  }
  void block_until(const std::function<bool()>& holds, Time timeout, int peer,
                   const std::function<std::string()>& what) override;

  void leave() override;
  void abandon(const std::string& what, int culprit) override;
  void get(int peer, Offset remote, void* target, std::uint64_t size_bytes, Time timeout) override;
  std::uint64_t load(int peer, Offset remote) override {
    std::uint64_t word = 0;
    get(peer, remote, &word, sizeof(word), timeout_);
    return word;
  }
  std::uint64_t activity() const override { return activity_.load(std::memory_order_relaxed); }
  std::uint64_t heap_bytes() const override { return heap_.layout().size_bytes(); }
  bool needs_progress() const override { return true; }
  void note_activity() override { activity_.fetch_add(1, std::memory_order_relaxed); }

 private:
  // A forked child has a copy of this object, but is not the rank.
  bool is_this_rank() const { return ::getpid() == member(rank_).pid; }
  void check(const Move& move) const;
  void check_peer(int rank) const;
  void greet();
  const Member& member(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  // --- waiting -----------------------------------------------------------------------------------
  bool poll();
  bool is_ready(const SignalWait& wait) const {
    return holds(wait.comparison, signal_fetch(wait.signal), wait.value);
  }
  void throw_if_failed() const {
    if (failure_) throw *failure_;
  }
  bool looks_around(Time time);
  std::optional<Loss> find_failure() const;
  std::optional<Found> find_loss(int awaited) const;
  std::optional<Found> find_loss_among_waits() const;
  [[noreturn]] void give_up(const Found& found, const std::string& awaited);
  int find_silent();
  [[noreturn]] void throw_deadline_exceeded(Time timeout, int awaited, const std::string& what);
  void say_farewell(MessageKind kind, const std::optional<Loss>& loss);
  std::string named(int rank) const {
    return fmt::format("rank {} (pid {} on {})", rank, member(rank).pid, member(rank).host);
  }

  int rank_;
  Time timeout_;
  std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  std::vector<Member> members_;  // by rank
  SignalWaits waits_;
  os::SpinWait spin_wait_;
  std::shared_ptr<const News> news_;
  std::function<void()> on_look_;
  Time next_look_;
  std::atomic<std::uint64_t> activity_{0};
  std::optional<TransportError> failure_;  // every later call throws it again
  std::optional<Loss> last_loss_;          // what ended the last wait, if an error did
  bool has_left_ = false;
  mutable MessageHeap heap_;  // asking the peers whether all is visible changes nothing there
};

// Every rank hears of every other before it begins, so that all connections are made.
void UcxTransport::greet() {
  heap_.tell_all(MessageKind::here);
  for (int from = 0; from < ranks(); ++from) {
    if (from == rank_) continue;
    block_until([&] { return heap_.standing(from).is_ready; }, timeout_, from,
                [&] { return fmt::format("the first message of rank {}", from); });
  }
}

void UcxTransport::check_peer(int rank) const {
  if (rank >= 0 && rank < ranks()) return;
  throw std::out_of_range(fmt::format("rank {} is outside the range 0 to {}", rank, ranks() - 1));
}

void UcxTransport::check(const Move& move) const {
  if (move.peer != kNoPeer) check_peer(move.peer);
  if (move.peer != kNoPeer && move.has_source)
    heap_.layout().check_range(move.remote, move.size_bytes);
  if (move.has_signal) heap_.layout().check_signal(move.signal);
  if (const char* missing = missing_part(move); missing != nullptr) {
    throw std::invalid_argument(fmt::format("a move needs {}", missing));
  }
}

void UcxTransport::start(Move& move) {
  throw_if_failed();
  check(move);
  heap_.start(move);
}

void UcxTransport::get(int from, Offset remote, void* target, std::uint64_t size_bytes,
                       Time timeout) {
  throw_if_failed();
  check_peer(from);
  heap_.layout().check_range(remote, size_bytes);
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

void UcxTransport::wait(SignalWait& wait) {
  throw_if_failed();
  if (!wait.is_waiting && is_ready(wait)) {
    if (wait.ready != nullptr) wait.ready(wait);
    return;
  }
  waits_.add(wait);
}

bool UcxTransport::poll() {
  const bool any = heap_.progress();
  return waits_.look([this](const SignalWait& wait) { return is_ready(wait); }) || any;
}

bool UcxTransport::progress() {
  throw_if_failed();
  if (poll()) return true;
  if (!looks_around(now())) return false;
  const std::optional<Found> found = find_loss_among_waits();
  if (!found) return false;
  if (poll()) return true;  // what it did before it ended still counts
  give_up(*found, waits_.describe_all(found->loss.culprit, "", *this));
}

void UcxTransport::block_until(const std::function<bool()>& holds, Time timeout, int awaited,
                               const std::function<std::string()>& what) {
  throw_if_failed();
  last_loss_.reset();
  note_activity();
  if (holds()) return;
  Time progressed = now();
  spin_wait_.renew();
  while (true) {
    const bool any = poll();
    if (holds()) return;
    const Time time = now();
    if (any) {
      spin_wait_.renew();
      progressed = time;
      note_activity();
    }
    if (looks_around(time)) {
      std::optional<Found> found = find_loss(awaited);
      if (!found) found = find_loss_among_waits();
      // What it did before it ended still counts.
      if (found && !poll() && !holds()) {
        give_up(*found, waits_.describe_all(found->loss.culprit, what(), *this));
      }
      continue;
    }
    if (time - progressed >= timeout) throw_deadline_exceeded(timeout, awaited, what());
    if (!spin_wait_.spin()) spin_wait_.rest_or_nap(time);
  }
}

bool UcxTransport::looks_around(Time time) {
  if (time < next_look_) return false;
  next_look_ = time + kLookInterval;
  if (on_look_) on_look_();
  return true;
}

// Where several ranks gave up or died, one that blames itself or nobody knows best.
std::optional<Loss> UcxTransport::find_failure() const {
  std::optional<Loss> found;
  for (int rank = 0; rank < ranks(); ++rank) {
    const Standing& of = heap_.standing(rank);
    if (of.presence != Presence::failed && of.presence != Presence::dead) continue;
    if (!of.blame) return Loss{rank, "died"};
    if (of.blame->culprit == rank) return of.blame;
    if (!found) found = of.blame;
  }
  return found;
}

std::optional<Found> UcxTransport::find_loss(int awaited) const {
  if (std::optional<Loss> failure = find_failure()) return Found{std::move(*failure), true};
  if (news_ != nullptr) {
    if (std::optional<Loss> loss = news_->read()) return Found{std::move(*loss), true};
  }
  if (awaited == kNoPeer || awaited == rank_) return std::nullopt;
  const Standing& of = heap_.standing(awaited);
  if (of.presence != Presence::left) return std::nullopt;
  if (of.blame) return Found{*of.blame, true};
  return Found{{awaited, "left"}, false};
}

std::optional<Found> UcxTransport::find_loss_among_waits() const {
  std::optional<Found> found = find_loss(kNoPeer);
  for (const SignalWait* wait = waits_.first(); wait != nullptr && !found; wait = wait->next) {
    found = find_loss(wait->peer);
  }
  return found;
}

void UcxTransport::give_up(const Found& found, const std::string& awaited) {
  const Loss& loss = found.loss;
  const TransportError error(Kind::peer_died, loss.culprit,
                             fmt::format("{} {} while rank {} waited for {}", named(loss.culprit),
                                         loss.what, rank_, awaited));
  last_loss_ = loss;
  if (found.is_final) failure_ = error;
  throw error;
}

// Asks all others whether they are there: who waits, answers. The first that does not; kNoPeer
// where all do.
int UcxTransport::find_silent() {
  std::vector<std::uint64_t> before;
  for (int rank = 0; rank < ranks(); ++rank) before.push_back(heap_.standing(rank).messages);
  heap_.tell_all(MessageKind::ask);
  const auto silent = [&] {
    for (int rank = 0; rank < ranks(); ++rank) {
      const Standing& of = heap_.standing(rank);
      const bool has_answered = of.messages > before[static_cast<std::size_t>(rank)];
      if (rank != rank_ && of.presence == Presence::here && !has_answered) return rank;
    }
    return kNoPeer;
  };
  const Time end = now() + kAnswerWithin;
  while (silent() != kNoPeer && now() < end) heap_.progress();
  return silent();
}

void UcxTransport::throw_deadline_exceeded(Time timeout, int awaited, const std::string& what) {
  const int silent = find_silent();
  const int culprit = silent != kNoPeer || awaited == rank_ ? silent : awaited;
  std::string end;
  if (culprit != kNoPeer) {
    last_loss_ = Loss{culprit, fmt::format("was silent for {:g} s", timeout.seconds())};
    end = fmt::format("; {} {}", named(culprit),
                      culprit == silent
                          ? "does not answer: it is stopped, in another call, or cut off"
                          : "is there, but slow or in another call");
  }
  throw TransportError(
      Kind::timeout, culprit,
      fmt::format("{} waited {:g} s in vain for {}{}", named(rank_), timeout.seconds(),
                  waits_.describe_all(culprit, what, *this), end));
}

// --- the end -------------------------------------------------------------------------------------

void UcxTransport::say_farewell(MessageKind kind, const std::optional<Loss>& loss) {
  has_left_ = true;
  heap_.tell_all(kind, loss);
  const Time end = now() + kFarewell;
  while (!heap_.is_flushed() && now() < end) heap_.progress();
}

void UcxTransport::leave() {
  if (has_left_ || !is_this_rank()) return;
  say_farewell(MessageKind::left, last_loss_);
}

void UcxTransport::abandon(const std::string& what, int culprit) {
  if (has_left_ || !is_this_rank()) return;
  const bool is_known = culprit != kNoPeer && last_loss_ && last_loss_->culprit == culprit;
  say_farewell(MessageKind::failed, is_known ? *last_loss_ : Loss{rank_, what});
}

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "a host";
  name.resize(std::strlen(name.c_str()));
  return name;
}

}  // namespace

std::unique_ptr<LiveTransport> connect(const LiveOptions& asked) {
  check_membership(asked);
  LiveOptions options = asked;
  if (options.heap_bytes == 0) options.heap_bytes = kHeapBytesDefault;
  if (os::is_network_address(options.rendezvous) && options.token.empty()) {
    throw std::invalid_argument(
        fmt::format("the group at \"{}\" needs a token, a secret that its ranks share and others "
                    "on the network do not know",
                    options.rendezvous));
  }
  auto wire = std::make_unique<Wire>();
  const Job job = bootstrap(options, {::getpid(), host_name(), wire->address()});
  return std::make_unique<UcxTransport>(options, std::move(wire), job);
}

}  // namespace towpath::transport::ucx
