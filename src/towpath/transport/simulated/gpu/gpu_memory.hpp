// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "towpath/base/pool.hpp"
#include "towpath/machine/kernel_cost.hpp"
#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/simulated/gpu/gpu_ranks.hpp"

// The remote memory of a simulated GPU, with the costs of machine::KernelCost.
//
// Inside a host the threads of the issuer copy. Each keeps put_loads_in_flight words of 16 bytes in
// flight at a time, from the load until the store is acknowledged. With the latencies this gives
// the pace of a put (Little's law), limited by its multiprocessor and the links. A signal after a
// payload leaves when the payload is acknowledged and one thread has fenced.
//
// To another host an adapter copies. A put is passed to a queue pair, which moves one message at a
// time, in order, at its own rate; a signal travels behind its payload. A CPU proxy has one queue
// pair for each peer and handles the puts of all blocks one after the other. If threads start
// transfers themselves, there are several queue pairs, and the lane selects one. The issuer is done
// when the adapter at the far end has acknowledged.

namespace towpath::transport::simulated {

class GpuEndpoint;
struct GpuDelivery;

class GpuMemory final : public RemoteMemory {
 public:
  GpuMemory(GpuEndpoint& own, const machine::KernelCost& cost);
  ~GpuMemory() override;
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  void start(Access& access) override;
  void wait(MemoryWait& wait) override;
  void cancel(MemoryWait& wait) override;
  void stored(Offset first, std::uint64_t size_bytes) override { changed(first, size_bytes); }
  std::byte* reach(int peer, Offset offset) override;

  void changed(Offset first, std::uint64_t size_bytes);
  std::string pending() const { return waits_.pending(rank_); }

 private:
  struct Flight;
  struct QueuePair;
  struct Lane;
  struct Poll;

  Flight& new_flight(Access& access);
  Rate copy_rate(const Access& access, Time latency) const;
  Bytes turn_bytes(const Access& access) const;
  Time start_overhead(const Access& access) const;
  // A fence of the access's threads, when all stores are acknowledged.
  Time fence_time(const Access& fence);
  bool has_adapter_peers();

  // A put, a get's request or an atomic operation, in this order.
  void hand_over(Flight& flight);
  QueuePair& queue_pair(const Flight& flight);
  static void begin(QueuePair& pair);
  static void send(void* flight);
  static void left(gpu_links::Message& message);
  static void arrived(gpu_links::Message& message);
  static void deliver(GpuDelivery& delivery);
  void change_peer(Flight& flight);
  // A get's bytes: they are read at the peer, come back, and are stored.
  void answer(Flight& flight);
  static void answered(gpu_links::Message& message);
  void end_at(Flight& flight, Time when);
  static void end(Flight& flight);
  static void complete(Flight& flight);

  void start_fence(Access& access);
  void acknowledge(Flight& flight);
  void end_fences(Lane& lane);
  // The library's fences of a multiprocessor take turns. The fences of threads (thread_fence) do
  // not: on an H100 they overlap, over its own memory and the host's (benchmarks/gpu/README.md).
  void end_fence(Access& fence, Time from, Time duration);
  void end_fence_at(Access& fence, Time when);

  void poll(MemoryWait& wait);
  static void polled(void* poll);

  GpuEndpoint& own_;
  int rank_;
  const machine::KernelCost& cost_;
  sim::Simulation& simulation_;
  std::optional<bool> has_adapter_peers_{};  // once it was asked for
  Time proxy_free_at_;
  MemoryWaits waits_;
  std::vector<Poll*> polls_;  // under way
  Pool<Poll> poll_pool_;
  Pool<Flight> flights_;
  std::unordered_map<std::uint64_t, QueuePair> queue_pairs_;
  std::unordered_map<int, Lane> lanes_;
  std::unordered_map<int, Time> fences_free_at_;  // by multiprocessor
};

}  // namespace towpath::transport::simulated
