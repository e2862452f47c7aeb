// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <stdexcept>
#include <vector>

#include "towpath/base/index.hpp"
#include "towpath/collective/algorithms/algorithms.hpp"

namespace towpath::collective {
namespace {

// Offset of a host's exit rail from the ring's rail. Neighbouring hosts differ, including the last
// and the first. With an odd number of hosts the last uses a third value.
int exit_shift(int host, int hosts) {
  const bool is_odd_one = hosts % 2 == 1 && host == hosts - 1;
  return is_odd_one && hosts > 1 ? 2 : host % 2;
}

// From GPU `entry` of a host over all others to `exit`, between neighbours if possible.
void walk(int first_rank, int gpus, int entry, int exit, std::vector<int>& ring) {
  if (gpus == 1) {
    ring.push_back(first_rank);
    return;
  }
  const int stride = exit == (entry + 1) % gpus ? gpus - 1 : 1;
  for (int i = 0, gpu = entry; i < gpus; ++i, gpu = (gpu + stride) % gpus) {
    if (gpu != exit) ring.push_back(first_rank + gpu);
  }
  ring.push_back(first_rank + exit);
}

void check_positive(const char* what, int value, int max) {
  if (value < 1 || value > max) {
    throw std::invalid_argument(fmt::format("{} is {}; it must be 1 to {}", what, value, max));
  }
}

}  // namespace

std::vector<std::vector<int>> rail_rings(int hosts, int gpus_per_host, int channels) {
  check_positive("hosts", hosts, kRanksMax);
  check_positive("gpus_per_host", gpus_per_host, kRanksMax / hosts);
  check_positive("channels", channels, kChannelsMax);
  std::vector<std::vector<int>> rings(index(channels));
  for (int channel = 0; channel < channels; ++channel) {
    const auto exit_of = [&](int host) {
      return (channel + exit_shift(host, hosts)) % gpus_per_host;
    };
    for (int host = 0; host < hosts; ++host) {
      const int exit = exit_of(host);
      int entry = exit_of((host + hosts - 1) % hosts);
      if (entry == exit) entry = (exit + 1) % gpus_per_host;
      walk(host * gpus_per_host, gpus_per_host, entry, exit, rings[index(channel)]);
    }
  }
  return rings;
}

}  // namespace towpath::collective
