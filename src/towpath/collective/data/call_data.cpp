// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/data/call_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "towpath/base/index.hpp"
#include "towpath/collective/data/element_formats.hpp"

namespace towpath::collective {
namespace {

using transport::ReductionOperation;

constexpr std::byte kNeverWritten{0x5A};

// Period of `noise` in elements, times the number of ranks for reductions. It bounds the computed
// values. A prime, so no chunk size is a multiple of it.
constexpr std::uint64_t kNoisePeriod = 8191;

// Scattered numbers from 0, so that a misplaced chunk is detected.
template <std::uint64_t kBelow>
std::uint8_t noise(std::uint64_t place, std::uint64_t salt) {
  static_assert(kBelow <= 128);
  const std::uint64_t mixed = (place % kNoisePeriod + 1) * 2654435761 + salt * 40503;
  return static_cast<std::uint8_t>(((mixed ^ (mixed >> 15)) >> 7) % kBelow);
}

// For collectives that only move data: a number that encodes rank and position.
std::uint8_t tagged(std::uint64_t rank, std::uint64_t place) { return noise<101>(place, rank); }

// Ranks with a non-neutral value, per element.
std::uint64_t contributors(ReductionOperation operation) {
  return operation == ReductionOperation::prod ? 6 : 8;
}

std::uint8_t contribution(ReductionOperation operation, std::uint64_t rank, std::uint64_t place) {
  switch (operation) {
    case ReductionOperation::prod: return static_cast<std::uint8_t>(1 + noise<2>(place, rank));
    // A different contributor has the smallest or largest value at each position.
    case ReductionOperation::min:
    case ReductionOperation::max: return noise<101>(place, rank);
    case ReductionOperation::sum:
    case ReductionOperation::avg: break;
  }
  return static_cast<std::uint8_t>(1 + noise<13>(place, rank));
}

std::uint8_t neutral(ReductionOperation operation) {
  if (operation == ReductionOperation::prod) return 1;
  return operation == ReductionOperation::min ? 101 : 0;
}

std::uint8_t combined(ReductionOperation operation, std::uint8_t a, std::uint8_t b) {
  switch (operation) {
    case ReductionOperation::prod: return static_cast<std::uint8_t>(a * b);
    case ReductionOperation::min: return std::min(a, b);
    case ReductionOperation::max: return std::max(a, b);
    case ReductionOperation::sum:
    case ReductionOperation::avg: break;
  }
  return static_cast<std::uint8_t>(a + b);
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce || collective == Collective::barrier;
}

bool is_same_everywhere(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::barrier ||
         collective == Collective::broadcast || collective == Collective::all_gather;
}

void require_size(std::string_view which, std::uint64_t is, std::uint64_t needed) {
  if (is == needed) return;
  throw std::invalid_argument(
      fmt::format("an {} has {} bytes; the call needs {}", which, is, needed));
}

}  // namespace

CallData::CallData(std::shared_ptr<const Schedule> schedule, std::uint64_t elements,
                   transport::Reduction reduction)
    : schedule_(std::move(schedule)), elements_(elements), reduction_(reduction) {}

std::uint64_t CallData::shared_offset(int rank) const {
  if (input_bytes() == output_bytes()) return 0;
  return index(rank) * part_elements() * size_of(reduction_.type);
}

// A barrier's token is not divided.
bool CallData::averages() const {
  return reduction_.operation == ReductionOperation::avg && reduces(schedule_->collective) &&
         schedule_->collective != Collective::barrier;
}

// Values of the first elements. A few ranks contribute at each position, in turn.
std::vector<std::uint8_t> CallData::contributed(std::uint64_t rank) const {
  const ReductionOperation operation = reduction_.operation;
  const std::uint64_t ranks = rank_count();
  std::vector<std::uint8_t> values(std::min(elements_, kNoisePeriod * ranks), neutral(operation));
  for (std::uint64_t turn = 0; turn < std::min(contributors(operation), ranks); ++turn) {
    for (std::uint64_t place = (turn + ranks - rank) % ranks; place < values.size();
         place += ranks) {
      values[place] = contribution(operation, rank, place);
    }
  }
  return values;
}

void CallData::fill_input(int rank, std::span<std::byte> input) const {
  require_size("input", input.size(), input_bytes());
  const std::vector<std::uint8_t> values =
      reduces(schedule_->collective) ? contributed(index(rank))
                                     : brought(index(rank), 0, elements_in(Buffer::input)).values;
  with_format(reduction_.type, [&]<class Format>(Format) { fill<Format>(input, values); });
}

// Combines all ranks. Ranks whose turn it is not have neutral values.
ExpectedStretch CallData::reduced(std::uint64_t start, std::uint64_t count) const {
  const ReductionOperation operation = reduction_.operation;
  const std::uint64_t ranks = rank_count();
  const std::uint64_t some = std::min(contributors(operation), ranks);
  ExpectedStretch stretch{0, count, {}};
  stretch.values.resize(std::min(count, kNoisePeriod * ranks));
  std::uint64_t first = (ranks - start % ranks) % ranks;
  for (std::uint64_t place = start; std::uint8_t & total : stretch.values) {
    total = contribution(operation, first, place);
    for (std::uint64_t turn = 1, rank = first; turn < some; ++turn) {
      rank = rank + 1 == ranks ? 0 : rank + 1;
      total = combined(operation, total, contribution(operation, rank, place));
    }
    first = first == 0 ? ranks - 1 : first - 1;
    ++place;
  }
  return stretch;
}

ExpectedStretch CallData::brought(std::uint64_t rank, std::uint64_t start,
                                  std::uint64_t count) const {
  ExpectedStretch stretch{0, count, {}};
  stretch.values.resize(std::min(count, kNoisePeriod));
  for (std::uint64_t place = 0; place < stretch.values.size(); ++place) {
    stretch.values[place] = tagged(rank, start + place);
  }
  return stretch;
}

// Elements of a sender's part in the receiver's output. all_to_all_v sends whole chunks from the
// start of the part.
std::uint64_t CallData::promised_elements(std::uint64_t sender, std::uint64_t receiver) const {
  if (schedule_->collective != Collective::all_to_all_v) return part_elements();
  const std::uint64_t chunks = schedule_->chunks / rank_count();
  const std::uint64_t chunk_elements = divide_up(part_elements(), chunks);
  const std::uint64_t sent = schedule_->pattern.at(sender * rank_count() + receiver);
  return std::min(sent * chunk_elements, part_elements());
}

// The part of every sender, at the same offset of each sender's array.
std::vector<ExpectedStretch> CallData::parts_for(std::uint64_t receiver,
                                                 std::uint64_t start) const {
  std::vector<ExpectedStretch> parts;
  for (std::uint64_t sender = 0; sender < rank_count(); ++sender) {
    parts.push_back(brought(sender, start, promised_elements(sender, receiver)));
    parts.back().first = sender * part_elements();
  }
  return parts;
}

std::vector<ExpectedStretch> CallData::sent_to(std::uint64_t receiver) const {
  const auto sender = std::ranges::find(schedule_->pattern, receiver);
  if (sender == schedule_->pattern.end()) return {};
  return {brought(static_cast<std::uint64_t>(sender - schedule_->pattern.begin()), 0, elements_)};
}

std::vector<ExpectedStretch> CallData::expected_of(int rank) const {
  const std::uint64_t own = index(rank);
  const std::uint64_t root = index(schedule_->root);
  const std::uint64_t part = part_elements();
  switch (schedule_->collective) {
    case Collective::reduce:
      if (own != root) return {};
      [[fallthrough]];
    case Collective::all_reduce:
    case Collective::barrier: return {reduced(0, elements_)};
    case Collective::reduce_scatter: return {reduced(own * part, part)};
    case Collective::broadcast: return {brought(root, 0, elements_)};
    case Collective::scatter: return {brought(root, own * part, part)};
    case Collective::gather:
      if (own != root) return {};
      [[fallthrough]];
    case Collective::all_gather: return parts_for(own, 0);
    case Collective::all_to_all:
    case Collective::all_to_all_v: return parts_for(own, own * part);
    case Collective::send_recv: break;
  }
  return sent_to(own);
}

std::uint64_t CallData::count_wrong(const std::vector<const RankBuffers*>& ranks) const {
  const bool is_common = is_same_everywhere(schedule_->collective);
  const std::optional<std::uint64_t> divisor =
      averages() ? std::optional(rank_count()) : std::nullopt;
  const std::uint64_t element_bytes = size_of(reduction_.type);
  std::uint64_t wrong = 0;
  std::vector<ExpectedStretch> expected;
  for (const RankBuffers* const buffers : ranks) {
    const std::span<const std::byte> output = buffers->output();
    require_size("output", output.size(), output_bytes());
    if (!is_common || expected.empty()) expected = expected_of(buffers->rank());
    for (const ExpectedStretch& stretch : expected) {
      const auto found =
          output.subspan(stretch.first * element_bytes, stretch.count * element_bytes);
      with_format(reduction_.type, [&]<class Format>(Format) {
        wrong += count_different<Format>(found, stretch.values, divisor);
      });
    }
  }
  return wrong;
}

RankBuffers::RankBuffers(const CallData& data, int rank, bool is_in_place) : rank_(rank) {
  const std::uint64_t input_bytes = data.input_bytes();
  const std::uint64_t output_bytes = data.output_bytes();
  const std::uint64_t larger_bytes = std::max(input_bytes, output_bytes);
  const auto allocate = [](std::unique_ptr<std::byte[]>& memory, std::uint64_t size_bytes) {
    memory = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
    return std::span<std::byte>(memory.get(), size_bytes);
  };
  if (is_in_place) {
    const auto shared = allocate(memory_, larger_bytes);
    const std::uint64_t offset = data.shared_offset(rank);
    input_ = shared.subspan(input_bytes < output_bytes ? offset : 0, input_bytes);
    output_ = shared.subspan(output_bytes < input_bytes ? offset : 0, output_bytes);
  } else {
    input_ = allocate(memory_, input_bytes);
    output_ = allocate(output_memory_, output_bytes);
  }
  // The input is filled last: in place it overlaps the output.
  std::ranges::fill(output_, kNeverWritten);
  data.fill_input(rank, input_);
}

}  // namespace towpath::collective
