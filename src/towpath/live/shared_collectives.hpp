// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "towpath/live/call.hpp"
#include "towpath/live/fastest_way.hpp"
#include "towpath/live/shared_slots.hpp"
#include "towpath/live/stage_ring.hpp"
#include "towpath/live/task.hpp"
#include "towpath/transport/live_transport.hpp"

// Collectives between ranks that map each other's memory. Each rank shows what it has and reads
// what the others show, so that a small call is one store and one load per peer:
//
//   up to slot_bytes()    in a slot beside the word that announces it
//   more                 in blocks through a ring of stages, one filled while another is read
//   much in parts        not staged: peers read it from this process's memory, where the system
//                        lets them and where that is faster
//   on the heap          not copied at all: peers read it there, and an all-reduce stores its
//                        result to all of them
//
// An all-reduce among more than two ranks either combines everything on every rank (one shot), or
// each rank combines a part that all then read (two shots). What is faster, and whether stores
// of less than kTriedBytesLeast should go past the caches, is measured: before the first call, and
// again after kBytesPerProbe. How more is shown, staged through the caches or past them or not at
// all, is tried on the calls themselves, by each rank for what it shows. Results that the last
// cache has no room for are stored past it.

namespace towpath::live {

// What all ranks measured, the slowest of them; seconds.
struct Costs {
  float step_s = 0;           // a step without bytes
  float read_s_per_byte = 0;  // of what a peer staged
};

class SharedCollectives {
 public:
  static std::uint64_t heap_bytes(int ranks) {
    return slots_bytes(ranks) + StageRing::bytes(ranks);
  }
  static bool serves(Kind kind) {
    return kind != Kind::exchange && kind != Kind::send && kind != Kind::receive;
  }
  // Whether all ranks reach each other's memory.
  static bool is_possible(transport::LiveTransport& transport);

  // Every rank makes its own in the same order, and a barrier follows before the first call.
  explicit SharedCollectives(transport::LiveTransport& transport);
  SharedCollectives(const SharedCollectives&) = delete;
  SharedCollectives& operator=(const SharedCollectives&) = delete;

  // Begins a call; the request stays until it is done.
  void begin(const Request& request);
  // Whether anything moved. Throws Mismatch, and transport::TransportError.
  bool advance();
  bool is_done() const { return request_ == nullptr; }
  // Forgets the current call; nothing may follow.
  void cancel();
  // Whether something of that rank is awaited.
  bool awaits(int peer);

  // What was measured; nothing before the first call.
  const std::optional<Costs>& costs() const { return costs_; }

 private:
  friend class Task::promise_type;

  // Two-shot parts of eight ranks are 64 KiB then, and no step costs more than its bytes.
  static constexpr std::uint64_t kTwoShotBytes = StageRing::kBlockBytesMost;
  // Still in the second-level cache when the next one is staged, or when what was read from the
  // memory of other processes is combined.
  static constexpr std::uint64_t kBlockBytes = 256 << 10;
  static_assert(kBlockBytes <= StageRing::kBlockBytesMost);
  // Fewer bytes get from cache to cache sooner than through memory, however far: among two ranks
  // far apart 128 B take 0.40 us instead of 0.66, 1 KiB 0.55 instead of 0.75, 2 KiB the same, 8
  // KiB 3.1 instead of 1.8.
  static constexpr std::uint64_t kStreamedBytesLeast = 2 << 10;
  // Twice the bytes of the probe.
  static constexpr std::uint64_t kTriedBytesLeast = 64 << 10;
  // From here on the lowest rank chooses how all ranks show their arrays: who waits for its line
  // first is late by less than a hundredth of the call.
  static constexpr std::uint64_t kLedBytesLeast = 512 << 10;
  static constexpr int kLeader = 0;
  // The ring follows them, on a page of its own.
  static std::uint64_t slots_bytes(int ranks) {
    constexpr std::uint64_t kPageBytes = 4096;
    return (SharedSlots::bytes(ranks) + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  // At 10 GB/s every 6 ms: a virtual machine's processors are moved about, and the probe takes a
  // hundredth of that.
  static constexpr std::uint64_t kBytesPerProbe = 64 << 20;

  // What a coroutine waits for.
  struct Condition {
    enum class What : std::uint8_t { free, stage_free, arrived, ended } what = What::free;
    int peer = transport::kNoPeer;  // kNoPeer: of all
    std::uint64_t step = 0;
    std::uint64_t staged = 0;  // the step that ends the last use of the stage
    int next = 0;              // of those that arrived one after the other
  };
  struct Until {
    SharedCollectives& self;
    Condition condition;
    bool await_ready() {
      for (int i = 0; i < self.looks_; ++i) {
        if (self.holds(condition)) return true;
      }
      return false;
    }
    void await_suspend(std::coroutine_handle<>) { self.awaited_ = condition; }
    void await_resume() const {}
  };
  // Where a rank's bytes are, in the line that it publishes.
  enum class Place : std::uint32_t { stage, heap, process };
  struct Shown {
    Place place = Place::stage;
    Way way = Way::staged;     // what others stage, where one rank chooses for all
    std::uint64_t first = 0;   // offset of the heap, or address
    std::uint64_t second = 0;  // offset of the result, or distance from part to part
  };
  static_assert(sizeof(Shown) <= SharedSlots::kInlineBytes);

  bool holds(Condition& condition);
  Until until_free(std::uint64_t step) { return {*this, {Condition::What::free, -1, step}}; }
  // The slot of a step and the stage of the next block.
  Until until_stage_free(std::uint64_t step, std::uint64_t size_bytes) {
    return {*this, {Condition::What::stage_free, -1, step, stages_.busy_until(size_bytes)}};
  }
  Until until_arrived(std::uint64_t step, int peer = transport::kNoPeer) {
    return {*this, {Condition::What::arrived, peer, step}};
  }
  Until until_ended(std::uint64_t step) { return {*this, {Condition::What::ended, -1, step}}; }

  bool advance_task();
  void begin_next();
  Task task_of(const Request& request);
  bool is_small_reduction(const Request& request) const;
  Task run_barrier();
  bool run_small_reduction_at_once(const Request& request);
  void show_small(const Request& request);
  Task run_small_reduction(const Request& request);
  void end_small_reduction(const Request& request);
  Task run_large_reduction(const Request& request);
  Task run_led_all_reduce(const Request& request);
  Task run_following_blocks(const Request& request);
  Task run_broadcast(const Request& request);
  Task run_large_broadcast(const Request& request);
  Task run_parts(const Request& request);
  Task run_large_parts(const Request& request);
  Task run_first_lap();
  Task run_read_probe();
  Task run_probe();

  bool is_root(const Request& request) const { return request.peer == rank_; }
  bool gets_result(const Request& request) const {
    return request.kind != Kind::reduce || is_root(request);
  }
  bool is_one_shot(std::uint64_t size_bytes) const;
  bool fills_cache(std::uint64_t size_bytes) const;
  // How this rank shows an array of this call that is not on the heap.
  void choose_way(const Request& request, std::uint64_t size_bytes, bool may_read);
  void note_way(const Request& request, std::uint64_t size_bytes);

  // Shows bytes in the slot of a step, and reads them.
  void fill(std::uint64_t step, const std::byte* from, std::uint64_t size_bytes);
  const std::byte* filled(int rank, std::uint64_t step, std::uint64_t size_bytes) const;
  // Says in the line of a step where more is, and reads it.
  void show(std::uint64_t step, const Shown& what);
  Shown shown(int rank, std::uint64_t step) const;
  std::byte* stage(int rank, std::uint64_t place) const {
    return regions_[static_cast<std::size_t>(rank)] + ring_ + place;
  }
  void copy_to_slot(std::byte* to, const std::byte* from, std::uint64_t size_bytes) const;
  void copy_to_stage(std::byte* to, const std::byte* from, std::uint64_t size_bytes) const;
  // To this rank's result.
  void copy_out(std::byte* to, const std::byte* from, std::uint64_t size_bytes) const;
  static void copy(std::byte* to, const std::byte* from, std::uint64_t size_bytes, bool streams);
  std::optional<std::uint64_t> heap_offset(const Span& span) const;
  std::byte* on_heap(int rank, std::uint64_t offset) const {
    return heaps_[static_cast<std::size_t>(rank)] + offset;
  }

  // result[i] = sources[0][i] op sources[1][i] op ..., in the order of the ranks.
  void fold(const Request& request, std::byte* result, std::uint64_t size_bytes);
  // The same of this rank's part of a block, which is stored to `copies` as well.
  void fold_to(const Request& request, std::byte* result, std::uint64_t size_bytes,
               const std::vector<std::byte*>& copies);
  struct Blocks;
  Blocks blocks_of(const Request& request) const;
  std::optional<Shown> arrays_on_heap(const Request& request) const;
  static std::optional<Shown> arrays_in_process(const Request& request);
  static bool is_led(const Request& request);
  std::uint64_t take_stage(const Blocks& blocks, std::uint64_t block, std::uint64_t step);
  void show_block(const Request& request, const Blocks& blocks, std::uint64_t block,
                  std::uint64_t place, std::uint64_t step);
  void note_all_ended(std::uint64_t step);
  void fold_block(const Request& request, const Blocks& blocks, std::uint64_t block,
                  std::uint64_t place);
  bool are_all(Place place, std::uint64_t step) const;
  bool is_any(Place place, std::uint64_t step) const;
  void reduce_on_heap(const Request& request, std::uint64_t step);
  void reduce_from_memory(const Request& request, std::uint64_t step);
  void take_results(const Request& request, std::uint64_t step);
  void fold_part(const Request& request, const Blocks& blocks, std::uint64_t block,
                 std::uint64_t place);
  void take_parts(const Request& request, const Blocks& blocks, std::uint64_t block,
                  std::uint64_t place);
  void read_private(int peer, std::uint64_t address, const Span& to);
  // How many bytes of each other rank's array are read before they are combined, and where.
  std::uint64_t read_bytes() const;
  const std::byte* read_operand(int peer, std::uint64_t address, std::uint64_t size_bytes);

  struct Parts;
  Parts parts_of(const Request& request) const;
  void show_parts(const Request& request, const Parts& parts, std::uint64_t done,
                  std::uint64_t place);
  void take_direct(const Request& request, const Parts& parts, std::uint64_t step);
  void take_staged(const Request& request, const Parts& parts, std::uint64_t step,
                   std::uint64_t done, std::uint64_t place);
  Shown place_of_parts(const Request& request, const Parts& parts);
  void take_own(const Request& request, std::uint64_t first, std::uint64_t size_bytes);
  struct Piece;
  void fold_parts(const Request& request, const Parts& parts, std::uint64_t step,
                  const Piece& piece);
  std::uint64_t part_bytes_most(const Request& request) const;
  // What a call is about; all ranks count the same bytes.
  std::uint64_t bytes_of(const Request& request) const;

  // The blocks of a reduction that come after its first step: their first step, how many of them
  // are shown already, and where the last two are.
  struct Following {
    bool any = false;
    std::uint64_t first = 0;
    std::uint64_t shown = 0;
    std::array<std::uint64_t, 2> places{};
  };

  using Figures = std::array<float, 4>;
  void show_figures(std::uint64_t step, const Figures& figures);
  Figures greatest(std::uint64_t step) const;
  void read_probe(std::uint64_t place);

  transport::LiveTransport& transport_;
  int rank_;
  int ranks_;
  std::vector<std::byte*> heaps_;    // by rank
  std::vector<std::byte*> regions_;  // by rank
  std::uint64_t ring_;               // its offset in a region
  SharedSlots slots_;
  bool is_crowded_;
  int looks_;
  std::uint64_t step_ = 0;        // the last one of this rank
  std::uint64_t small_step_ = 0;  // of a small reduction that is shown, or 0
  Following following_;           // of the current call
  StageRing stages_;              // of each rank
  std::uint32_t stamp_ = 0;
  const Request* request_ = nullptr;
  bool is_probing_ = false;
  bool has_lapped_ = false;
  std::optional<bool> reads_private_;  // whether ranks can read each other's memory that is no heap
  Condition awaited_;
  std::vector<const std::byte*> sources_;  // by rank, of the current fold
  std::vector<std::byte*> copies_;         // of its result
  std::vector<std::byte> scratch_;
  std::vector<std::byte> operands_;  // by rank, read from the memory of their processes
  std::vector<std::byte> probe_bytes_;
  std::optional<Costs> costs_;
  FastestWay ways_;
  FastestWay::Choice way_;  // of the current call
  Time began_;
  bool streams_ = false;          // to slots
  bool streams_results_ = false;  // of the current call
  std::uint64_t cache_bytes_;     // of the last level; 0 where it is not known
  std::uint64_t bytes_until_probe_ = 0;
  Frame frame_;
  Task task_;
};

}  // namespace towpath::live
