// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/simulate/simulated_ranks.hpp"

#include <fmt/format.h>

#include <numeric>
#include <stdexcept>

namespace towpath::simulate {

std::vector<int> places_of_ranks(std::vector<int> places, int ranks) {
  if (places.empty()) {
    places.resize(static_cast<std::size_t>(ranks));
    std::iota(places.begin(), places.end(), 0);
  }
  if (places.size() != static_cast<std::size_t>(ranks)) {
    throw std::invalid_argument(
        fmt::format("there are {} places for {} ranks; each rank needs one", places.size(), ranks));
  }
  return places;
}

}  // namespace towpath::simulate
