// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/simulated/gpu/gpu_memory.hpp"

#include <algorithm>
#include <cstring>

#include "towpath/transport/simulated/gpu/gpu_endpoint.hpp"

namespace towpath::transport::simulated {

namespace {

constexpr int kWarpThreads = 32;
constexpr std::int64_t kCopyBytes = 16;  // of a load of the library's copy loop
constexpr Bytes kTurnMin{1024};          // finer turns take more time to simulate than they change
constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;
constexpr std::uint64_t kSignalBytes = 8;

std::uint64_t word_at(const std::byte* place, std::uint64_t size_bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, place, size_bytes);
  return word;
}

std::int64_t warps_of(const Access& access) {
  return (access.issuer.threads + kWarpThreads - 1) / kWarpThreads;
}

bool is_answered(const Access& access) {
  return access.kind == AccessKind::get || (access.kind == AccessKind::atomic && access.fetches);
}

}  // namespace

// An access in flight. It ends twice: for its issuer, and at its peer.
struct GpuMemory::Flight : GpuDelivery {
  GpuMemory* memory = nullptr;
  Access* access = nullptr;   // the caller's, until its last callback
  Access asked;               // a copy of it
  QueuePair* pair = nullptr;  // of an adapter, until its message has left
  Time latency_back;
  bool is_ended = false;  // `done` was called
  bool has_landed = false;
};

struct GpuMemory::QueuePair {
  GpuMemory* memory = nullptr;
  bool is_busy = false;
  std::deque<Flight*> waiting;
};

// The accesses of a thread block in flight.
struct GpuMemory::Lane {
  std::uint64_t under_way = 0;
  Time acknowledged;  // the last one that has landed
  std::vector<Access*> fences;
};

// A thread that polls a word with the awaited value.
struct GpuMemory::Poll {
  GpuMemory* memory = nullptr;
  MemoryWait* wait = nullptr;  // null once it is cancelled
};

GpuMemory::GpuMemory(GpuEndpoint& own, const machine::KernelCost& cost)
    : own_(own), rank_(own.rank()), cost_(cost), simulation_(own.simulation()) {}

GpuMemory::~GpuMemory() = default;

// --- an access is issued ------------------------------------------------------------------------

Rate GpuMemory::copy_rate(const Access& access, Time latency) const {
  const std::int64_t in_flight = kCopyBytes * access.issuer.threads * cost_.put_loads_in_flight;
  const Int128 scaled = static_cast<Int128>(in_flight) * kPicosecondsPerSecond;
  const std::int64_t time_ps = std::max<std::int64_t>(latency.ps(), 1);
  Rate rate = std::min(Rate::from_bytes_per_second(static_cast<std::int64_t>(scaled / time_ps)),
                       cost_.multiprocessor_rate);
  if (access.issuer.rate_max != Rate()) rate = std::min(rate, access.issuer.rate_max);
  return rate;
}

// Blocks that copy at the same time take turns on a link, one iteration of their loops at a time.
Bytes GpuMemory::turn_bytes(const Access& access) const {
  const std::int64_t turn = kCopyBytes * access.issuer.threads * cost_.put_loads_in_flight;
  return std::clamp(Bytes(static_cast<std::uint64_t>(turn)), kTurnMin, gpu_links::kSegment);
}

Time GpuMemory::start_overhead(const Access& access) const {
  if (access.kind == AccessKind::atomic || access.size_bytes == 0) return cost_.signal;
  if (access.issuer.threads == 1) return cost_.thread_put_overhead;
  return access.issuer.threads <= kWarpThreads ? cost_.warp_put_overhead : cost_.block_put_overhead;
}

GpuMemory::Flight& GpuMemory::new_flight(Access& access) {
  Flight& flight = flights_.take();
  flight.memory = this;
  flight.access = &access;
  flight.asked = access;
  flight.from = &own_;
  flight.peer = &own_.peer(access.peer);
  flight.epoch = own_.epoch_;
  flight.route = flight.peer->route;
  flight.latency_back = flight.peer->endpoint->peer(rank_).route->latency;
  flight.size_bytes = access.size_bytes;
  flight.remote = access.remote;
  flight.delay = own_.jitter();
  flight.left = left;
  flight.arrived = arrived;
  flight.deliver = deliver;
  flight.is_ended = flight.has_landed = false;
  return flight;
}

void GpuMemory::start(Access& access) {
  if (access.kind == AccessKind::fence) return start_fence(access);
  if (access.kind == AccessKind::thread_fence) {
    return end_fence_at(access, simulation_.now() + cost_.fence);
  }
  check_access(access, own_.heap(), own_.ranks());
  Flight& flight = new_flight(access);
  ++own_.under_way_;
  ++lanes_[access.issuer.lane].under_way;
  flight.peer->order.add(flight);
  const bool is_put = access.kind == AccessKind::put && access.size_bytes > 0;
  if (is_put && access.local != nullptr) {
    flight.payload.assign(access.local, access.local + access.size_bytes);
  }
  flight.size = is_put ? Bytes(access.size_bytes) : Bytes(0);
  const bool uses_adapter = flight.route->leaves_host;
  flight.segment_max = gpu_links::kSegment;
  if (uses_adapter) {
    flight.pace = cost_.queue_pair_rate;
    flight.delay += cost_.gpu_initiated_adapters ? cost_.initiation_overhead : cost_.proxy_overhead;
  } else {
    flight.pace =
        copy_rate(access, cost_.memory_latency + flight.route->latency + flight.latency_back);
    flight.segment_max = turn_bytes(access);
    if (is_put && access.has_signal) {
      flight.delay += flight.latency_back + cost_.fence + flight.route->latency;
    }
  }
  simulation_.after(
      start_overhead(access),
      [](void* context) {
        Flight& issued = *static_cast<Flight*>(context);
        issued.route->leaves_host ? issued.memory->hand_over(issued) : send(&issued);
      },
      &flight);
}

// --- the way to the peer ------------------------------------------------------------------------

GpuMemory::QueuePair& GpuMemory::queue_pair(const Flight& flight) {
  const int pairs = cost_.gpu_initiated_adapters ? cost_.queue_pairs : 1;
  const auto number = static_cast<std::uint64_t>(flight.asked.issuer.lane % pairs);
  const auto peer = static_cast<std::uint64_t>(flight.peer->rank);
  QueuePair& pair = queue_pairs_[peer << 32 | number];
  pair.memory = this;
  return pair;
}

void GpuMemory::hand_over(Flight& flight) {
  flight.pair = &queue_pair(flight);
  const auto enqueue = [](void* context) {
    Flight& handed_over = *static_cast<Flight*>(context);
    QueuePair& pair = *handed_over.pair;
    pair.waiting.push_back(&handed_over);
    if (!pair.is_busy) begin(pair);
  };
  if (cost_.gpu_initiated_adapters) return enqueue(&flight);
  proxy_free_at_ = std::max(proxy_free_at_, simulation_.now()) + cost_.proxy_message;
  simulation_.at(proxy_free_at_, enqueue, &flight);
}

void GpuMemory::begin(QueuePair& pair) {
  Flight& next = *pair.waiting.front();
  pair.waiting.pop_front();
  pair.is_busy = true;
  const machine::KernelCost& cost = pair.memory->cost_;
  const Time posting = cost.gpu_initiated_adapters ? cost.queue_pair_message : Time();
  pair.memory->simulation_.after(posting, send, &next);
}

void GpuMemory::send(void* context) {
  Flight& flight = *static_cast<Flight*>(context);
  flight.memory->own_.ranks_.network_.send(flight);
}

void GpuMemory::left(gpu_links::Message& message) {
  Flight& flight = static_cast<Flight&>(message);
  GpuMemory& memory = *flight.memory;
  if (flight.pair != nullptr) {
    QueuePair& pair = *std::exchange(flight.pair, nullptr);
    pair.is_busy = false;
    if (!pair.waiting.empty()) begin(pair);
    return;
  }
  const Access& access = flight.asked;
  if (is_answered(access)) return;
  // Threads that signal after a payload wait for its acknowledgement. All others continue.
  const bool waits = access.has_signal && flight.size > Bytes(0);
  const Time acknowledged = flight.route->latency + flight.latency_back + memory.cost_.fence;
  memory.end_at(flight, memory.simulation_.now() + (waits ? acknowledged : Time()));
}

void GpuMemory::arrived(gpu_links::Message& message) {
  Flight& flight = static_cast<Flight&>(message);
  flight.peer->order.arrived(flight, [](GpuDelivery& visible) { visible.deliver(visible); });
}

void GpuMemory::deliver(GpuDelivery& delivery) {
  Flight& flight = static_cast<Flight&>(delivery);
  GpuMemory& memory = *flight.memory;
  const Access& access = flight.asked;
  if (access.kind == AccessKind::get) return memory.answer(flight);
  memory.change_peer(flight);
  memory.acknowledge(flight);
  flight.has_landed = true;
  const Time acknowledged = memory.simulation_.now() + flight.latency_back;
  if (is_answered(access) || (flight.route->leaves_host && !flight.is_ended)) {
    return memory.end_at(flight, acknowledged);
  }
  if (flight.is_ended) complete(flight);
}

void GpuMemory::change_peer(Flight& flight) {
  const Access& access = flight.asked;
  GpuEndpoint& to = *flight.peer->endpoint;
  if (access.kind == AccessKind::atomic) {
    std::byte* const place = to.data(access.remote);
    const std::uint64_t before = word_at(place, access.size_bytes);
    const std::uint64_t after = changed_word(access, before);
    if (access.fetches) flight.access->result = before;
    std::memcpy(place, &after, access.size_bytes);
    if (access.landed != nullptr) access.landed(*flight.access);
    if (access.operation != AtomicOperation::fetch) to.changed(access.remote, access.size_bytes);
    return;
  }
  if (!flight.payload.empty()) {
    std::memcpy(to.data(access.remote), flight.payload.data(), flight.payload.size());
    if (access.landed != nullptr && !access.has_signal) access.landed(*flight.access);
    to.changed(access.remote, access.size_bytes);
  }
  if (!access.has_signal) return;
  std::byte* const place = to.data(access.signal_at);
  const std::uint64_t after = signalled_word(access, word_at(place, kSignalBytes));
  std::memcpy(place, &after, kSignalBytes);
  if (access.landed != nullptr) access.landed(*flight.access);
  to.changed(access.signal_at, kSignalBytes);
}

// --- the way back -------------------------------------------------------------------------------

void GpuMemory::answer(Flight& flight) {
  const Access& access = flight.asked;
  GpuEndpoint& peer = *flight.peer->endpoint;
  if (access.local != nullptr && access.size_bytes > 0) {
    const std::byte* const source = peer.data(access.remote);
    flight.payload.assign(source, source + access.size_bytes);
  }
  flight.route = peer.peer(rank_).route;
  flight.size = Bytes(access.size_bytes);
  flight.delay = Time();
  flight.left = nullptr;
  flight.arrived = answered;
  own_.ranks_.network_.send(flight);
}

void GpuMemory::answered(gpu_links::Message& message) {
  Flight& flight = static_cast<Flight&>(message);
  GpuMemory& memory = *flight.memory;
  const Access& access = flight.asked;
  if (!flight.payload.empty()) {
    std::memcpy(access.local, flight.payload.data(), flight.payload.size());
    const std::byte* const heap = memory.own_.data(0);
    const bool is_in_heap =
        access.local >= heap && access.local < heap + memory.own_.heap().size_bytes();
    if (is_in_heap) memory.changed(static_cast<Offset>(access.local - heap), access.size_bytes);
  }
  memory.acknowledge(flight);
  flight.has_landed = true;
  end(flight);
}

void GpuMemory::end_at(Flight& flight, Time when) {
  if (when == simulation_.now()) return end(flight);
  simulation_.at(when, [](void* context) { end(*static_cast<Flight*>(context)); }, &flight);
}

void GpuMemory::end(Flight& flight) {
  GpuMemory& memory = *flight.memory;
  flight.is_ended = true;
  const bool is_over = flight.has_landed;
  if (flight.asked.done != nullptr) flight.asked.done(*flight.access);
  memory.own_.notify_blocked();
  if (is_over) complete(flight);
}

void GpuMemory::complete(Flight& flight) {
  GpuMemory& memory = *flight.memory;
  --memory.own_.under_way_;
  flight.payload.clear();
  memory.flights_.release(flight);
  if (flight.asked.visible != nullptr) flight.asked.visible(*flight.access);
  memory.own_.notify_blocked();
}

// --- fences -------------------------------------------------------------------------------------

bool GpuMemory::has_adapter_peers() {
  if (has_adapter_peers_) return *has_adapter_peers_;
  bool any = false;
  for (int rank = own_.ranks() - 1; rank >= 0 && !any; --rank) {
    any = own_.peer(rank).route->leaves_host;
  }
  has_adapter_peers_ = any;
  return any;
}

Time GpuMemory::fence_time(const Access& fence) {
  const std::int64_t warps = warps_of(fence);
  Time time = cost_.fence * warps;
  if (!has_adapter_peers()) return time;
  if (!cost_.gpu_initiated_adapters) return time + cost_.proxy_message;
  const std::int64_t pairs = std::int64_t{cost_.queue_pairs} * (own_.ranks() - 1);
  return time + cost_.queue_pair_poll * (warps * pairs);
}

void GpuMemory::start_fence(Access& access) {
  Lane& lane = lanes_[access.issuer.lane];
  lane.fences.push_back(&access);
  if (lane.under_way == 0) end_fences(lane);
}

void GpuMemory::acknowledge(Flight& flight) {
  Lane& lane = lanes_[flight.asked.issuer.lane];
  const Time latency = flight.asked.kind == AccessKind::get ? Time() : flight.latency_back;
  lane.acknowledged = std::max(lane.acknowledged, simulation_.now() + latency);
  if (--lane.under_way == 0) end_fences(lane);
}

void GpuMemory::end_fences(Lane& lane) {
  for (Access* fence : std::exchange(lane.fences, {})) {
    end_fence(*fence, std::max(lane.acknowledged, simulation_.now()), fence_time(*fence));
  }
}

void GpuMemory::end_fence(Access& fence, Time from, Time duration) {
  Time& free_at = fences_free_at_[fence.issuer.multiprocessor];
  free_at = std::max(free_at, from) + duration;
  end_fence_at(fence, free_at);
}

void GpuMemory::end_fence_at(Access& fence, Time when) {
  ++own_.under_way_;
  fence.context_of_transport = this;
  simulation_.at(
      when,
      [](void* context) {
        Access& ended = *static_cast<Access*>(context);
        GpuMemory& memory = *static_cast<GpuMemory*>(ended.context_of_transport);
        --memory.own_.under_way_;
        if (ended.done != nullptr) ended.done(ended);
        memory.own_.notify_blocked();
      },
      &fence);
}

// --- waits --------------------------------------------------------------------------------------

void GpuMemory::wait(MemoryWait& wait) { wait.holds(wait) ? poll(wait) : waits_.add(wait); }

void GpuMemory::cancel(MemoryWait& wait) {
  if (!wait.is_waiting) return;
  for (Poll* poll : polls_) {
    if (poll->wait != &wait) continue;
    poll->wait = nullptr;
    wait.is_waiting = false;
    return;
  }
  waits_.remove(wait);
}

void GpuMemory::changed(Offset first, std::uint64_t size_bytes) {
  waits_.look(first, size_bytes, [this](MemoryWait& wait) { poll(wait); });
}

// The word has its value. The waiting thread sees it at its next poll.
void GpuMemory::poll(MemoryWait& wait) {
  Poll& poll = poll_pool_.take();
  poll = {this, &wait};
  wait.is_waiting = true;
  polls_.push_back(&poll);
  simulation_.after(cost_.poll, polled, &poll);
}

void GpuMemory::polled(void* context) {
  Poll& poll = *static_cast<Poll*>(context);
  GpuMemory& memory = *poll.memory;
  MemoryWait* const wait = std::exchange(poll.wait, nullptr);
  std::erase(memory.polls_, &poll);
  memory.poll_pool_.release(poll);
  if (wait == nullptr) return;
  wait->is_waiting = false;
  if (!wait->holds(*wait)) return memory.waits_.add(*wait);  // it changed again before the look
  wait->ready(*wait);
  memory.own_.notify_blocked();
}

std::byte* GpuMemory::reach(int peer, Offset offset) {
  own_.heap().check_range(offset, 1);
  if (!own_.is_addressable(peer)) return nullptr;
  return own_.peer(peer).endpoint->data(offset);
}

}  // namespace towpath::transport::simulated
