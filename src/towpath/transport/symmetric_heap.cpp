// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/transport/symmetric_heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <stdexcept>

namespace towpath::transport {
namespace {

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
  if (value > UINT64_MAX - unit) throw std::bad_alloc();
  return (value + unit - 1) / unit * unit;
}

// The first byte available to SymmetricHeap. Checked here because members are initialized with it.
std::uint64_t first_free_byte(int ranks, std::uint64_t heap_bytes) {
  if (ranks < 1)
    throw std::invalid_argument(fmt::format("there are {} ranks; there must be at least 1", ranks));
  const std::uint64_t reserved = Transport::reserved_bytes(ranks);
  if (heap_bytes < reserved) {
    throw std::invalid_argument(fmt::format(
        "a heap of {} bytes is too small; {} ranks need at least {}", heap_bytes, ranks, reserved));
  }
  return rounded_up(reserved, SymmetricHeap::kAlignment);
}

std::uint32_t checked_signals(std::uint32_t signals) {
  if (signals >= Transport::kReservedSignals) return signals;
  throw std::invalid_argument(fmt::format("{} signals are too few; at least {} are needed", signals,
                                          Transport::kReservedSignals));
}

}  // namespace

RangeAllocator::RangeAllocator(std::uint64_t begin, std::uint64_t end, std::uint64_t unit)
    : unit_(unit) {
  if (begin < end) gaps_.emplace(begin, (end - begin) / unit * unit);
}

std::uint64_t RangeAllocator::allocate(std::uint64_t size) {
  const std::uint64_t wanted = rounded_up(std::max<std::uint64_t>(size, 1), unit_);
  const auto gap = std::find_if(gaps_.begin(), gaps_.end(),
                                [&](const auto& entry) { return entry.second >= wanted; });
  if (gap == gaps_.end()) throw std::bad_alloc();
  const auto [begin, length] = *gap;
  gaps_.erase(gap);
  if (length > wanted) gaps_.emplace(begin + wanted, length - wanted);
  taken_.emplace(begin, wanted);
  return begin;
}

std::uint64_t RangeAllocator::release(std::uint64_t begin) {
  const auto entry = taken_.find(begin);
  if (entry == taken_.end()) return 0;
  const std::uint64_t size = entry->second;
  taken_.erase(entry);
  auto gap = gaps_.emplace(begin, size).first;
  const auto after = std::next(gap);
  if (after != gaps_.end() && gap->first + gap->second == after->first) {
    gap->second += after->second;
    gaps_.erase(after);
  }
  if (gap == gaps_.begin()) return size;
  const auto before = std::prev(gap);
  if (before->first + before->second == gap->first) {
    before->second += gap->second;
    gaps_.erase(gap);
  }
  return size;
}

SymmetricHeap::SymmetricHeap(int ranks, std::uint64_t heap_bytes, std::uint32_t signals)
    : size_bytes_(heap_bytes),
      bytes_(first_free_byte(ranks, heap_bytes), heap_bytes, kAlignment),
      numbers_(Transport::kReservedSignals, checked_signals(signals), 1),
      generation_(signals, 0) {}

Offset SymmetricHeap::allocate(std::uint64_t size_bytes) { return bytes_.allocate(size_bytes); }

void SymmetricHeap::release(Offset offset) {
  if (bytes_.release(offset) > 0) return;
  throw std::invalid_argument(
      fmt::format("offset {} cannot be released; it is not from allocate", offset));
}

Signal SymmetricHeap::allocate_signals(std::uint32_t count) {
  return static_cast<Signal>(numbers_.allocate(count));
}

std::uint32_t SymmetricHeap::release_signals(Signal first) {
  const std::uint64_t count = numbers_.release(first);
  if (count == 0) {
    throw std::invalid_argument(
        fmt::format("signal {} cannot be released; it is not from allocate_signals", first));
  }
  for (std::uint64_t signal = first; signal < first + count; ++signal) generation_[signal] ^= 1;
  return static_cast<std::uint32_t>(count);
}

void SymmetricHeap::check_range(Offset offset, std::uint64_t size_bytes) const {
  if (size_bytes <= size_bytes_ && offset <= size_bytes_ - size_bytes) return;
  throw std::out_of_range(fmt::format("{} bytes at offset {} are outside the heap of {} bytes",
                                      size_bytes, offset, size_bytes_));
}

void SymmetricHeap::check_signal(Signal signal) const {
  if (signal < signals()) return;
  throw std::out_of_range(
      fmt::format("signal {} is outside the range 0 to {}", signal, signals() - 1));
}

void check_rank(int rank, int ranks) {
  if (rank >= 0 && rank < ranks) return;
  throw std::out_of_range(fmt::format("rank {} is outside the range 0 to {}", rank, ranks - 1));
}

void check_move(const Move& move, const SymmetricHeap& heap, int ranks) {
  if (move.peer != kNoPeer) check_rank(move.peer, ranks);
  if (move.peer != kNoPeer && move.has_source) heap.check_range(move.remote, move.size_bytes);
  if (move.has_signal) heap.check_signal(move.signal);
  if (const char* missing = missing_part(move); missing != nullptr) {
    throw std::invalid_argument(fmt::format("a move needs {}", missing));
  }
}

}  // namespace towpath::transport
