// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "towpath/collective/schedule/schedule.hpp"
#include "towpath/transport/reduction.hpp"

// What every rank brings to a call, and what must come out of it: numbers that are computed for
// each element alone, from the collective's name, without steps, chunks or the reductions of
// transports.
//
//   const CallData data(schedule, elements, reduction);
//   const RankBuffers buffers(data, rank, is_in_place);
//   ...
//   data.count_wrong({&buffers});
//
// Values are whole numbers from 0 to 127, so that every order of reduction gives the same bits in
// every type. Each element is the work of a few ranks only, a different few from element to
// element; a missing or doubled contribution shows in some element for any number of ranks.

namespace towpath::collective {

// Consecutive elements of an output, and what they must be: `values` over and over.
struct ExpectedStretch {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::vector<std::uint8_t> values;
};

class RankBuffers;

class CallData {
 public:
  // `elements` is the size of the whole array, as of a plan.
  CallData(std::shared_ptr<const Schedule> schedule, std::uint64_t elements,
           transport::Reduction reduction);

  std::uint64_t input_bytes() const { return input_elements() * size_of(reduction_.type); }
  std::uint64_t output_bytes() const { return output_elements() * size_of(reduction_.type); }
  // In place, the byte at which a rank's input or output begins in the larger one of the two.
  std::uint64_t shared_offset(int rank) const;

  // What a rank brings: the whole array, or its part of all_gather and gather. Throws
  // std::invalid_argument unless `input` has as many bytes as it needs.
  void fill_input(int rank, std::span<std::byte> input) const;

  // What a rank must find; nothing of what it is promised nothing of.
  std::vector<ExpectedStretch> expected_of(int rank) const;

  // How many elements of the ranks' outputs are not what they must be. Averages of floats may
  // differ by the rounding of their division. Throws std::invalid_argument for an output of another
  // size.
  std::uint64_t count_wrong(const std::vector<const RankBuffers*>& ranks) const;

 private:
  std::uint64_t rank_count() const { return schedule_->ranks.size(); }
  std::uint64_t part_elements() const { return elements_ / rank_count(); }
  std::uint64_t input_elements() const;
  std::uint64_t output_elements() const;
  bool averages() const;
  std::vector<std::uint8_t> contributed(std::uint64_t rank) const;
  ExpectedStretch reduced(std::uint64_t start, std::uint64_t count) const;
  ExpectedStretch brought(std::uint64_t rank, std::uint64_t start, std::uint64_t count) const;
  std::uint64_t promised_elements(std::uint64_t sender, std::uint64_t receiver) const;
  std::vector<ExpectedStretch> parts_for(std::uint64_t receiver, std::uint64_t start) const;
  std::vector<ExpectedStretch> sent_to(std::uint64_t receiver) const;

  std::shared_ptr<const Schedule> schedule_;
  std::uint64_t elements_;
  transport::Reduction reduction_;
};

// A rank's input with its test data, and its output, filled with what is neutral to no operation,
// so that a result on top of it is wrong. In place, one is the other or a part of it.
class RankBuffers {
 public:
  RankBuffers(const CallData& data, int rank, bool is_in_place);

  int rank() const { return rank_; }
  std::span<std::byte> input() const { return input_; }
  std::span<std::byte> output() const { return output_; }

 private:
  int rank_;
  std::unique_ptr<std::byte[]> memory_;         // of the input; in place, of both
  std::unique_ptr<std::byte[]> output_memory_;  // none in place
  std::span<std::byte> input_;
  std::span<std::byte> output_;
};

}  // namespace towpath::collective
