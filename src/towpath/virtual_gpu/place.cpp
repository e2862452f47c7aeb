// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/virtual_gpu/place.hpp"

#include <algorithm>
#include <cstdlib>

#include "towpath/virtual_gpu/device/settings.hpp"

namespace towpath::virtual_gpu {
namespace {

struct Names {
  const char *rank, *size;
};
// Names from Open MPI, PMI (MPICH, Slurm), and torchrun, as `towpath nccl run` sets them.
constexpr Names kNames[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"RANK", "WORLD_SIZE"},
};

constexpr int kHostsMax = 1 << 16;  // more than programs have processes

int number_of(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

Place found_place() {
  Place place{0, 1, 0, setting("TOWPATH_HOSTS", 1, kHostsMax, 1)};
  for (const auto& [rank, size] : kNames) {
    if (std::getenv(rank) == nullptr) continue;
    place.size = std::max(1, number_of(size, 1));
    place.rank = std::clamp(number_of(rank, 0), 0, place.size - 1);
    break;
  }
  place.host = place.rank * place.hosts / place.size;
  return place;
}

}  // namespace

const Place& place_of_process() {
  static const Place place = found_place();
  return place;
}

}  // namespace towpath::virtual_gpu
