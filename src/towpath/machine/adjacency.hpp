// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "towpath/base/index.hpp"

namespace towpath::machine {

// Link numbers per device, ascending, in one array.
class Adjacency {
 public:
  Adjacency() = default;
  // end_of(link) is a device, or negative to omit the link.
  template <typename EndOf>
  Adjacency(std::size_t devices, std::size_t links, const EndOf& end_of) : first_(devices + 1) {
    for (std::size_t link = 0; link < links; ++link) {
      if (const int device = end_of(link); device >= 0) ++first_[index(device) + 1];
    }
    for (std::size_t device = 0; device < devices; ++device) first_[device + 1] += first_[device];
    links_.resize(index(first_.back()));
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (std::size_t link = 0; link < links; ++link) {
      if (const int device = end_of(link); device >= 0) {
        links_[index(next[index(device)]++)] = static_cast<int>(link);
      }
    }
  }

  std::span<const int> of(int device) const {
    const auto first = index(first_[index(device)]);
    return {links_.data() + first, index(first_[index(device) + 1]) - first};
  }

 private:
  std::vector<int> first_;  // per device, plus one entry
  std::vector<int> links_;
};

}  // namespace towpath::machine
