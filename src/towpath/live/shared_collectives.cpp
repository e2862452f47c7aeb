// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/shared_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "towpath/os/process.hpp"
#include "towpath/transport/remote_memory.hpp"
#include "towpath/transport/streaming.hpp"

namespace towpath::live {

using transport::TransportError;

namespace {

// What is combined piece by piece stays in the first-level cache, with its operands.
constexpr std::uint64_t kPieceBytes = 8 << 10;
// Looks at a word before the caller gets to do something else: about a microsecond.
constexpr int kLooks = 50;
constexpr std::uint32_t kProbeStamp = 1;

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

// The same on all ranks that call the same; a different one where they do not, all but certainly.
std::uint32_t stamp_of(const Request& request, int rank) {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(request.kind) + 1, request.element);
  hash = mixed(hash, static_cast<std::uint64_t>(request.peer));
  const bool is_out =
      request.kind == Kind::all_gather || (request.kind == Kind::broadcast && request.peer != rank);
  for (const Span& span : is_out ? request.outputs : request.inputs) {
    hash = mixed(hash, span.size_bytes);
  }
  return static_cast<std::uint32_t>(hash >> (64 - SharedSlots::kStampBits));
}

std::vector<std::byte*> reached(transport::LiveTransport& transport, transport::Offset offset) {
  std::vector<std::byte*> places;
  for (int rank = 0; rank < transport.ranks(); ++rank) {
    places.push_back(transport.remote_memory()->reach(rank, offset));
  }
  return places;
}

std::vector<std::byte*> new_region(transport::LiveTransport& transport, std::uint64_t size_bytes) {
  const transport::Offset offset = transport.allocate(size_bytes);
  std::memset(transport.data(offset), 0, SharedSlots::bytes(transport.ranks()));
  return reached(transport, offset);
}

}  // namespace

bool SharedCollectives::is_possible(transport::LiveTransport& transport) {
  if (transport.remote_memory() == nullptr) return false;
  for (int rank = 0; rank < transport.ranks(); ++rank) {
    if (transport.remote_memory()->reach(rank, 0) == nullptr) return false;
  }
  return true;
}

SharedCollectives::SharedCollectives(transport::LiveTransport& transport)
    : transport_(transport),
      rank_(transport.rank()),
      ranks_(transport.ranks()),
      heaps_(reached(transport, 0)),
      regions_(new_region(transport, heap_bytes(ranks_))),
      ring_(slots_bytes(ranks_)),
      slots_(rank_, regions_),
      is_crowded_(transport.is_crowded()),
      looks_(is_crowded_ ? 1 : kLooks),
      stages_(ranks_),
      sources_(index_of(ranks_)),
      ways_(StageRing::bytes(ranks_)),
      cache_bytes_(os::last_level_cache_bytes().value_or(0)) {}

// --- calls ---------------------------------------------------------------------------------------

void SharedCollectives::begin(const Request& request) {
  request_ = &request;
  begin_next();
}

void SharedCollectives::begin_next() {
  const bool is_due = bytes_until_probe_ == 0;
  is_probing_ = ranks_ > 1 && (!costs_ || is_due);
  stamp_ = is_probing_ ? kProbeStamp : stamp_of(*request_, rank_);
  if (!is_probing_) {
    const std::uint64_t size = bytes_of(*request_);
    bytes_until_probe_ -= std::min(bytes_until_probe_, size);
    if (is_small_reduction(*request_) && run_small_reduction_at_once(*request_)) {
      request_ = nullptr;
      transport_.wake_peers();
      return;
    }
    task_ = task_of(*request_);
  } else if (!std::exchange(has_lapped_, true)) {
    task_ = run_first_lap();
  } else if (!reads_private_) {
    task_ = run_read_probe();
  } else {
    task_ = run_probe();
    bytes_until_probe_ = kBytesPerProbe;
  }
}

bool SharedCollectives::advance() {
  const bool any = advance_task();
  if (any) transport_.wake_peers();
  return any;
}

bool SharedCollectives::advance_task() {
  bool any = false;
  while (request_ != nullptr) {
    if (!holds(awaited_)) return any;
    any = true;
    task_.resume();
    if (!task_.is_done()) continue;
    task_.clear();
    awaited_ = {};
    if (following_.any) {
      task_ = run_following_blocks(*request_);
    } else if (is_probing_) {
      begin_next();
    } else {
      request_ = nullptr;
    }
  }
  return any;
}

void SharedCollectives::cancel() {
  task_.clear();
  awaited_ = {};
  following_ = {};
  request_ = nullptr;
}

bool SharedCollectives::holds(Condition& condition) {
  switch (condition.what) {
    case Condition::What::free: return slots_.is_free(condition.step);
    case Condition::What::stage_free:
      return slots_.is_free(condition.step) && slots_.have_ended(condition.staged);
    case Condition::What::ended: return slots_.have_ended(condition.step);
    case Condition::What::arrived: break;
  }
  if (condition.peer != transport::kNoPeer) {
    return slots_.has_arrived(condition.peer, condition.step, stamp_);
  }
  for (; condition.next < ranks_; ++condition.next) {
    if (condition.next == rank_) continue;
    if (!slots_.has_arrived(condition.next, condition.step, stamp_)) return false;
  }
  return true;
}

bool SharedCollectives::awaits(int peer) {
  if (request_ == nullptr || peer == rank_) return false;
  switch (awaited_.what) {
    case Condition::What::free:
      return awaited_.step > SharedSlots::kSlots &&
             !slots_.has_ended(peer, awaited_.step - SharedSlots::kSlots);
    case Condition::What::stage_free: return !slots_.has_ended(peer, awaited_.staged);
    case Condition::What::ended: return !slots_.has_ended(peer, awaited_.step);
    case Condition::What::arrived: break;
  }
  const bool is_asked = awaited_.peer == transport::kNoPeer || awaited_.peer == peer;
  return is_asked && !slots_.has_published(peer, awaited_.step);
}

std::uint64_t SharedCollectives::bytes_of(const Request& request) const {
  switch (request.kind) {
    case Kind::barrier: return 0;
    case Kind::all_gather:
    case Kind::all_to_all:
    case Kind::reduce_scatter: return part_bytes_most(request) * index_of(ranks_);
    case Kind::broadcast:
      return (is_root(request) ? request.inputs : request.outputs)[0].size_bytes;
    default: return request.inputs[0].size_bytes;
  }
}

bool SharedCollectives::is_small_reduction(const Request& request) const {
  const bool is_reduction = request.kind == Kind::all_reduce || request.kind == Kind::reduce;
  return is_reduction && request.inputs[0].size_bytes <= slots_.slot_bytes();
}

Task SharedCollectives::task_of(const Request& request) {
  const std::uint64_t size = bytes_of(request);
  streams_results_ = fills_cache(size);
  switch (request.kind) {
    case Kind::barrier: return run_barrier();
    case Kind::broadcast:
      return size <= slots_.slot_bytes() ? run_broadcast(request) : run_large_broadcast(request);
    case Kind::all_gather:
    case Kind::all_to_all:
    case Kind::reduce_scatter: {
      const bool is_whole = request.kind == Kind::all_gather;
      const std::uint64_t shown = is_whole ? part_bytes_most(request) : size;
      return shown <= slots_.slot_bytes() ? run_parts(request) : run_large_parts(request);
    }
    default: break;
  }
  if (is_small_reduction(request)) return run_small_reduction(request);
  return is_led(request) ? run_led_all_reduce(request) : run_large_reduction(request);
}

// --- choices -------------------------------------------------------------------------------------

// One shot reads the arrays of all others, two shots of all parts twice, in two more steps.
bool SharedCollectives::is_one_shot(std::uint64_t size_bytes) const {
  if (ranks_ <= 2) return true;
  const double one = static_cast<double>(size_bytes) * (ranks_ - 2) * costs_->read_s_per_byte;
  return one < costs_->step_s;
}

// What all ranks read and what they receive has no room in the cache that they share. Where it has,
// who wants the result finds it there.
bool SharedCollectives::fills_cache(std::uint64_t size_bytes) const {
  return cache_bytes_ > 0 && 2 * size_bytes * index_of(ranks_) >= cache_bytes_;
}

// Staged, each byte is stored and read; read where it is, it costs a system call and what the
// kernel does for each page. Less than kTriedBytesLeast is never worth that, and goes the way that
// the probe found: a trial takes a lap of the ring each way, which is many small calls.
void SharedCollectives::choose_way(const Request& request, std::uint64_t size_bytes,
                                   bool may_read) {
  if (size_bytes < kTriedBytesLeast && !is_crowded_) {
    way_ = {streams_ ? Way::streamed : Way::staged};
    return;
  }
  way_ = ways_.choose(request.kind, size_bytes, may_read && *reads_private_);
  if (way_.is_timed) began_ = transport_.now();
}

void SharedCollectives::note_way(const Request& request, std::uint64_t size_bytes) {
  if (!way_.is_timed) return;
  ways_.note(request.kind, size_bytes, way_.way, transport_.now() - began_);
}

// --- what is shown -------------------------------------------------------------------------------

void SharedCollectives::fill(std::uint64_t step, const std::byte* from, std::uint64_t size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes <= SharedSlots::kInlineBytes) {
    std::memcpy(slots_.inline_bytes(step), from, size_bytes);
  } else {
    copy_to_slot(slots_.slot(step), from, size_bytes);
  }
}

const std::byte* SharedCollectives::filled(int rank, std::uint64_t step,
                                           std::uint64_t size_bytes) const {
  const bool is_inline = size_bytes <= SharedSlots::kInlineBytes;
  return is_inline ? slots_.inline_bytes(rank, step) : slots_.slot(rank, step);
}

void SharedCollectives::show(std::uint64_t step, const Shown& what) {
  std::memcpy(slots_.inline_bytes(step), &what, sizeof(what));
  slots_.publish(step, stamp_);
}

SharedCollectives::Shown SharedCollectives::shown(int rank, std::uint64_t step) const {
  Shown what;
  std::memcpy(&what, slots_.inline_bytes(rank, step), sizeof(what));
  return what;
}

void SharedCollectives::copy_to_slot(std::byte* to, const std::byte* from,
                                     std::uint64_t size_bytes) const {
  // Past the caches, 1 KiB among 4 ranks on 2 cores took 6.9 us instead of 6.1.
  copy(to, from, size_bytes, streams_ && !is_crowded_);
}

void SharedCollectives::copy_to_stage(std::byte* to, const std::byte* from,
                                      std::uint64_t size_bytes) const {
  copy(to, from, size_bytes, way_.way == Way::streamed);
}

void SharedCollectives::copy_out(std::byte* to, const std::byte* from,
                                 std::uint64_t size_bytes) const {
  copy(to, from, size_bytes, streams_results_);
}

void SharedCollectives::copy(std::byte* to, const std::byte* from, std::uint64_t size_bytes,
                             bool streams) {
  if (size_bytes == 0) return;
  if (streams && size_bytes >= kStreamedBytesLeast) {
    transport::stream_copy(to, from, size_bytes);
  } else {
    std::memcpy(to, from, size_bytes);
  }
}

std::optional<std::uint64_t> SharedCollectives::heap_offset(const Span& span) const {
  const std::byte* const heap = heaps_[index_of(rank_)];
  if (span.data < heap || span.data + span.size_bytes > heap + transport_.heap_bytes()) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(span.data - heap);
}

void SharedCollectives::fold(const Request& request, std::byte* result, std::uint64_t size_bytes) {
  fold_to(request, result, size_bytes, {});
}

void SharedCollectives::fold_to(const Request& request, std::byte* result, std::uint64_t size_bytes,
                                const std::vector<std::byte*>& copies) {
  const Combination& how = request.combination;
  if (scratch_.empty()) scratch_.resize(kPieceBytes);
  // Between two ranks nothing is in between, and the whole is one piece.
  const bool is_whole = ranks_ <= 2 && copies.empty();
  const std::uint64_t piece = is_whole ? std::max<std::uint64_t>(size_bytes, 1) : kPieceBytes;
  for (std::uint64_t done = 0; done < size_bytes; done += piece) {
    const std::uint64_t size = std::min(piece, size_bytes - done);
    std::byte* const to = result + done;
    const std::byte* left = sources_[0] + done;
    if (ranks_ == 1 && left != to) std::memmove(to, left, size);
    for (int rank = 1; rank < ranks_; ++rank) {
      // The result may be an operand that comes later, so it is stored last.
      std::byte* const kept = rank + 1 == ranks_ ? to : scratch_.data();
      how.combine(how.context, kept, left, sources_[index_of(rank)] + done, size);
      left = kept;
    }
    if (how.finish != nullptr) how.finish(how.context, to, size);
    for (std::byte* const copy : copies) std::memcpy(copy + done, to, size);
  }
}

void SharedCollectives::read_private(int peer, std::uint64_t address, const Span& to) {
  if (transport_.read_private(peer, reinterpret_cast<const std::byte*>(address), to.data,
                              to.size_bytes)) {
    return;
  }
  throw TransportError(TransportError::Kind::peer_died, peer,
                       fmt::format("rank {} could not read the memory of rank {}", rank_, peer));
}

std::uint64_t SharedCollectives::read_bytes() const {
  constexpr std::uint64_t kPageBytes = 4096;
  return std::max(kBlockBytes / index_of(ranks_) / kPageBytes * kPageBytes, kPageBytes);
}

const std::byte* SharedCollectives::read_operand(int peer, std::uint64_t address,
                                                 std::uint64_t size_bytes) {
  operands_.resize(read_bytes() * index_of(ranks_));
  std::byte* const here = operands_.data() + read_bytes() * index_of(peer);
  read_private(peer, address, {here, size_bytes});
  return here;
}

}  // namespace towpath::live
