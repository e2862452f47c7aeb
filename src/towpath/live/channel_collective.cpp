// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/channel_collective.hpp"

#include <algorithm>
#include <cstring>

#include "towpath/base/index.hpp"

namespace towpath::live {

namespace {

// Up to this size a rank sends its array to all others at once: a copy of this size between two
// cores takes 2 us at 8 GB/s, as long as the second step of two shots among ranks that share cores
// (4 ranks on 2 cores: 2.6 us).
constexpr std::uint64_t kOneShotBytesMax = 16 << 10;

std::uint32_t mark_of(const Request& request, std::uint64_t number) {
  const auto kind = static_cast<std::uint32_t>(request.kind);
  const auto root = static_cast<std::uint32_t>(request.peer);
  // The stamp of a chunk has the size of a part, which arrays of different size may share.
  const std::uint64_t size = is_uneven(request.kind) ? 0 : size_of(request);
  return static_cast<std::uint32_t>(number) * 0x9e3779b1U ^ (kind + 1) * 0x85ebca6bU ^
         (root + 1) * 0xc2b2ae35U ^ (request.element + 1) * 0x27d4eb2fU ^
         static_cast<std::uint32_t>(size * 0xff51afd7ed558ccd >> 32);
}

}  // namespace

ChannelCollective::ChannelCollective(Channels& channels, const Request& request,
                                     std::uint64_t number)
    : channels_(channels),
      request_(request),
      mark_(mark_of(request, number)),
      transfer_(channels, request.combination) {
  begin_next();
}

bool ChannelCollective::advance() {
  bool any = false;
  while (!is_done_) {
    any |= transfer_.advance();
    if (!transfer_.is_done()) break;
    begin_next();
    any = true;
  }
  return any;
}

void ChannelCollective::begin_next() {
  Phase& phase = transfer_.phase();
  phase.clear(channels_.ranks());
  phase.mark = mark_;
  is_done_ = !prepare();
  ++next_phase_;
  if (!is_done_) transfer_.begin();
}

bool ChannelCollective::prepare() {
  switch (request_.kind) {
    case Kind::exchange:
    case Kind::all_to_all: return prepare_exchange();
    case Kind::all_gather: return prepare_all_gather();
    case Kind::barrier: return prepare_barrier();
    case Kind::broadcast: return prepare_broadcast();
    case Kind::reduce_scatter: return prepare_reduce_scatter();
    case Kind::all_reduce:
    case Kind::reduce: return is_one_shot() ? prepare_one_shot() : prepare_two_shot();
    case Kind::send:
    case Kind::receive: break;  // Messages carries these
  }
  return false;
}

bool ChannelCollective::prepare_exchange() {
  if (next_phase_ > 0) return false;
  Phase& phase = transfer_.phase();
  phase.sends = request_.inputs;
  phase.receives = request_.outputs;
  const auto self = index(channels_.rank());
  keep_inputs_in_place();
  const Span& from = phase.sends[self];
  const Span& to = phase.receives[self];
  const std::uint64_t size = std::min(from.size_bytes, to.size_bytes);
  phase.begins_together = true;
  if (from.data == to.data) return true;
  phase.own = from.data;
  phase.result = {to.data, size};
  return true;
}

// A part that arrives replaces a part that may not have been sent yet.
void ChannelCollective::keep_inputs_in_place() {
  Phase& phase = transfer_.phase();
  const auto self = index(channels_.rank());
  std::uint64_t kept = 0;
  for (std::size_t peer = 0; peer < phase.sends.size(); ++peer) {
    const bool is_replaced = peer != self && overlap(phase.sends[peer], phase.receives[peer]);
    if (is_replaced) kept += phase.sends[peer].size_bytes;
  }
  parts_.resize(kept);
  std::byte* to = parts_.data();
  for (std::size_t peer = 0; peer < phase.sends.size(); ++peer) {
    Span& from = phase.sends[peer];
    if (peer == self || !overlap(from, phase.receives[peer])) continue;
    std::memcpy(to, from.data, from.size_bytes);
    from.data = to;
    to += from.size_bytes;
  }
}

bool ChannelCollective::prepare_all_gather() {
  if (next_phase_ > 0) return false;
  Phase& phase = transfer_.phase();
  const Span& own = request_.inputs[0];
  std::fill(phase.sends.begin(), phase.sends.end(), own);
  phase.receives = request_.outputs;
  phase.begins_together = true;
  std::byte* const to = phase.receives[index(channels_.rank())].data;
  if (own.data == to) return true;
  phase.own = own.data;
  phase.result = {to, own.size_bytes};
  return true;
}

// One byte from each rank to each rank.
bool ChannelCollective::prepare_barrier() {
  if (next_phase_ > 0) return false;
  Phase& phase = transfer_.phase();
  parts_.resize(2);
  std::fill(phase.sends.begin(), phase.sends.end(), Span{&parts_[0], 1});
  std::fill(phase.receives.begin(), phase.receives.end(), Span{&parts_[1], 1});
  return true;
}

bool ChannelCollective::prepare_broadcast() {
  if (next_phase_ > 0) return false;
  Phase& phase = transfer_.phase();
  if (is_root()) {
    std::fill(phase.sends.begin(), phase.sends.end(), request_.inputs[0]);
  } else {
    phase.receives[index(request_.peer)] = request_.outputs[0];
  }
  return true;
}

bool ChannelCollective::prepare_reduce_scatter() {
  if (next_phase_ > 0) return false;
  Phase& phase = transfer_.phase();
  phase.sends = request_.inputs;
  phase.combines = true;
  phase.own = request_.inputs[index(channels_.rank())].data;
  phase.result = request_.outputs[0];
  return true;
}

bool ChannelCollective::is_one_shot() const {
  return channels_.ranks() <= 2 || request_.inputs[0].size_bytes <= kOneShotBytesMax;
}

bool ChannelCollective::prepare_one_shot() {
  if (next_phase_ > 0) return false;
  Phase& phase = transfer_.phase();
  const Span& input = request_.inputs[0];
  if (request_.kind == Kind::all_reduce) {
    std::fill(phase.sends.begin(), phase.sends.end(), input);
    phase.is_result_sent = channels_.ranks() > 1;
  } else if (!is_root()) {
    phase.sends[index(request_.peer)] = input;
  }
  if (!gets_result()) return true;
  phase.combines = true;
  phase.own = input.data;
  phase.result = request_.outputs[0];
  return true;
}

// Blocks so large that each rank's part of one fills its slots.
bool ChannelCollective::prepare_two_shot() {
  const std::uint64_t total = request_.inputs[0].size_bytes;
  const std::uint64_t block_bytes =
      Channels::kSlots * Channels::kSlotBytes * static_cast<std::uint64_t>(channels_.ranks());
  const std::uint64_t block = next_phase_ / 2 * block_bytes;
  if (block >= total) return false;
  const std::uint64_t size = std::min(block_bytes, total - block);
  if (next_phase_ % 2 == 0) {
    prepare_parts_combined(block, size);
  } else {
    prepare_parts_spread(block, size);
  }
  return true;
}

// The part of a block that a rank combines: whole elements. The last parts may be shorter.
Span ChannelCollective::part_of(const Span& block, int rank) const {
  const std::uint64_t ranks = static_cast<std::uint64_t>(channels_.ranks());
  const std::uint64_t unit = std::max<std::uint64_t>(request_.combination.element_bytes, 64);
  const std::uint64_t units = (block.size_bytes + unit - 1) / unit;
  const std::uint64_t part = (units + ranks - 1) / ranks * unit;
  const std::uint64_t begin = std::min(block.size_bytes, part * static_cast<std::uint64_t>(rank));
  const std::uint64_t end = std::min(block.size_bytes, begin + part);
  return {block.data == nullptr ? nullptr : block.data + begin, end - begin};
}

void ChannelCollective::prepare_parts_combined(std::uint64_t block, std::uint64_t size) {
  Phase& phase = transfer_.phase();
  const int self = channels_.rank();
  const Span input{request_.inputs[0].data + block, size};
  for (int rank = 0; rank < channels_.ranks(); ++rank) {
    phase.sends[index(rank)] = part_of(input, rank);
  }
  phase.combines = true;
  const Span own = part_of(input, self);
  phase.own = own.data;
  phase.result = own;
  if (gets_result()) {
    phase.result = part_of({request_.outputs[0].data + block, size}, self);
  } else {
    parts_.resize(own.size_bytes);
    phase.result.data = parts_.data();
  }
}

void ChannelCollective::prepare_parts_spread(std::uint64_t block, std::uint64_t size) {
  Phase& phase = transfer_.phase();
  phase.mark ^= 0x165667b1;
  const int self = channels_.rank();
  const Span output{gets_result() ? request_.outputs[0].data + block : nullptr, size};
  Span own = part_of(output, self);
  if (!gets_result()) own.data = parts_.data();
  const bool is_for_all = request_.kind == Kind::all_reduce;
  for (int rank = 0; rank < channels_.ranks(); ++rank) {
    if (is_for_all || rank == request_.peer) phase.sends[index(rank)] = own;
    if (gets_result()) phase.receives[index(rank)] = part_of(output, rank);
  }
}

}  // namespace towpath::live
