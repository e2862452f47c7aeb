// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/collective/algorithms/algorithms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <vector>

namespace towpath::collective {

std::string_view name_of(Reach reach) {
  switch (reach) {
    case Reach::fifo: return "fifo";
    case Reach::memory: return "memory";
    case Reach::group_of_host: return "group_of_host";
    case Reach::group: return "group";
    case Reach::multicast: return "multicast";
  }
  return "";
}

std::span<const Algorithm> algorithms() {
#define TOWPATH_LIST_ALGORITHM(name) name,
  static const std::vector<Algorithm> all = {TOWPATH_ALGORITHMS(TOWPATH_LIST_ALGORITHM)};
#undef TOWPATH_LIST_ALGORITHM
  return all;
}

Schedule Algorithm::operator()(const AlgorithmOptions& options) const {
  if (options.root != 0 && !has_root(collective)) {
    throw std::invalid_argument(
        fmt::format("root is {}; {} has no root, so that only 0 is allowed; broadcast, reduce, "
                    "gather and scatter have one",
                    options.root, name_of(collective)));
  }
  return make(options);
}

Schedule make_schedule(std::string_view algorithm, const AlgorithmOptions& options) {
  std::vector<std::string_view> names;
  for (const Algorithm& candidate : algorithms()) {
    if (candidate.name == algorithm) return candidate(options);
    names.push_back(candidate.name);
  }
  throw std::invalid_argument(
      fmt::format("there is no algorithm '{}'; allowed are {}", algorithm, fmt::join(names, ", ")));
}

}  // namespace towpath::collective
