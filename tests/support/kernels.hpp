// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "chip_bench.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"

// Kernels on the tiny chip, for tests of single calls.

namespace towpath::tenstorrent {

inline const KernelConfig kKernel{.core = noc::kCore, .name = "k"};
// Beginning of every refusal of such a kernel's calls.
inline const std::string kBegin = "kernel 'k' on core (1, 1) in ";

inline const NocAddress kFarTarget{noc::kFar, noc::kTarget};
// Holds the kernel's core and three more.
inline const NocMulticastAddress kSquare{{1, 1}, {2, 2}, noc::kTarget};

// Runs a kernel to its end.
void run(noc::Bench& bench, const Kernel& kernel, const KernelConfig& config = kKernel);

// The error with which a kernel's call is refused.
std::string refusal(const Kernel& kernel, const KernelConfig& config = kKernel);

}  // namespace towpath::tenstorrent
