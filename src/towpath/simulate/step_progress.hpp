// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "towpath/base/units.hpp"
#include "towpath/sim/snapshot.hpp"

// When the steps of a thread block were complete that others of its rank wait for.

namespace towpath::simulate {

class StepProgress {
 public:
  // A block will ask. One that goes back asks for steps before those that it has asked for.
  void add_reader(std::uint32_t block);
  void goes_back() { is_kept_ = true; }

  // Forgets all steps, but not who asks.
  void clear();
  // Steps are numbered from 1 on, and are complete in that order.
  void add(std::uint64_t step, Time complete);
  // Null while the step is not complete.
  const Time* find(std::uint64_t step, std::uint32_t reader);

  template <typename Visit>
  void for_each_reader(const Visit& visit) const {
    for (const Reader& reader : readers_) visit(reader.block);
  }
  // Adds the steps behind `step`, which are all that will be asked for, counted from `zero`.
  void describe(sim::Snapshot& snapshot, std::uint64_t step, std::uint64_t zero) const;
  // All steps have numbers so much greater, and were complete so much later.
  void shift(std::uint64_t steps, Time by);

 private:
  struct Step {
    std::uint64_t number = 0;
    Time complete;
  };
  struct Reader {
    std::uint32_t block;
    std::size_t place;  // among those before the last ones, of the step that it asked for last
  };
  void trim();

  std::array<Step, 3> last_{};
  std::uint32_t added_ = 0;
  bool is_kept_ = false;
  std::vector<Step> before_;
  std::vector<Reader> readers_;
  std::size_t trim_at_ = 0;
};

}  // namespace towpath::simulate
