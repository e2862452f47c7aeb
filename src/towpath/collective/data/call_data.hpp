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

// Inputs and expected outputs of a call, computed per element from the collective's name alone,
// without steps, chunks or the transports' reductions.
//
//   const CallData data(schedule, elements, reduction);
//   const RankBuffers buffers(data, rank, is_in_place);
//   ...
//   data.count_wrong({&buffers});
//
// Values are whole numbers from 0 to 127, so every order of reduction gives the same bits in every
// type. Only a few ranks contribute to each element, and they vary from element to element. A
// missing or doubled contribution is therefore visible in some element for any number of ranks.

namespace towpath::collective {

// Consecutive elements of an output and their expected values: `values`, repeated.
struct ExpectedStretch {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::vector<std::uint8_t> values;
};

class RankBuffers;

class CallData {
 public:
  // `elements` is the size of the whole array, as in a plan.
  CallData(std::shared_ptr<const Schedule> schedule, std::uint64_t elements,
           transport::Reduction reduction);

  std::uint64_t input_bytes() const {
    return elements_in(Buffer::input) * size_of(reduction_.type);
  }
  std::uint64_t output_bytes() const {
    return elements_in(Buffer::output) * size_of(reduction_.type);
  }
  // In place, the byte offset of a rank's input or output in the larger of the two.
  std::uint64_t shared_offset(int rank) const;

  // Fills a rank's input: the whole array, or its part for all_gather and gather. Throws
  // std::invalid_argument unless `input` has the required size.
  void fill_input(int rank, std::span<std::byte> input) const;

  // The expected output of a rank. Unspecified elements are omitted.
  std::vector<ExpectedStretch> expected_of(int rank) const;

  // Number of wrong elements in the ranks' outputs. Averages of floats may differ by the rounding
  // of their division. Throws std::invalid_argument if an output has the wrong size.
  std::uint64_t count_wrong(const std::vector<const RankBuffers*>& ranks) const;

 private:
  std::uint64_t rank_count() const { return schedule_->ranks.size(); }
  std::uint64_t part_elements() const { return elements_ / rank_count(); }
  std::uint64_t elements_in(Buffer buffer) const {
    const bool is_one_part = chunks_in(*schedule_, 0, buffer) < schedule_->chunks;
    return is_one_part ? part_elements() : elements_;
  }
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

// A rank's input with test data, and its output, filled with a value that is not neutral for any
// operation, so that accumulating into it gives a wrong result. In place, one is the other or a
// part of it.
class RankBuffers {
 public:
  RankBuffers(const CallData& data, int rank, bool is_in_place);

  int rank() const { return rank_; }
  std::span<std::byte> input() const { return input_; }
  std::span<std::byte> output() const { return output_; }

 private:
  int rank_;
  std::unique_ptr<std::byte[]> memory_;         // input; in place, both
  std::unique_ptr<std::byte[]> output_memory_;  // null in place
  std::span<std::byte> input_;
  std::span<std::byte> output_;
};

}  // namespace towpath::collective
