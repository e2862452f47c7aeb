// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "towpath/noc/niu/request.hpp"

// The configuration of a kernel, its addresses, and the options of its calls.

namespace towpath::tenstorrent {

// Source: tt-metal, dataflow_api.h: NOC_UNICAST_WRITE_VC and NOC_MULTICAST_WRITE_VC.
inline constexpr int kUnicastWriteVc = 1;
inline constexpr int kMulticastWriteVc = 4;
inline constexpr int kKernelNoc = -1;
// The NoC of a kernel on the compute cores, which have none.
inline constexpr int kNoNoc = -2;
inline constexpr int kOnlyChip = -1;

using NocAddress = noc::Address;

// The workers of a rectangle, and the same offset in each. The first corner has the least x and y.
struct NocMulticastAddress {
  machine::Coordinate first;
  machine::Coordinate last;
  std::uint64_t offset = 0;
};

// Number of workers that a multicast from `source` reaches, which its call must be given.
int multicast_destinations(const machine::Chip& chip, machine::Coordinate source,
                           const NocMulticastAddress& to, bool includes_source);

struct KernelConfig {
  machine::Coordinate core;
  std::string name;
  int noc_index = 0;
  std::vector<std::uint32_t> compile_args{};
  std::vector<std::uint32_t> runtime_args{};
  std::vector<std::uint64_t> semaphores{};  // offset of each, from its Program
  noc::Cycle start_cycle = 0;
  int chip = kOnlyChip;    // in its cluster, from its Program
  bool is_watched = true;  // for hazards
};

struct WriteOptions {
  int vc = kUnicastWriteVc;
  bool is_static_vc = true;
  bool is_posted = false;
  int noc = kKernelNoc;
};
struct ReadOptions {
  int vc = kUnicastWriteVc;
  int noc = kKernelNoc;
};
struct MulticastOptions {
  int vc = kMulticastWriteVc;
  bool is_linked = false;
  int noc = kKernelNoc;
};

}  // namespace towpath::tenstorrent
