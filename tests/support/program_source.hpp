// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "program_kernels.hpp"
#include "towpath/tenstorrent/metalium/source_kernel.hpp"

// The building blocks of program_kernels.hpp as kernels in TT-Metalium's source form. There are
// four sources, compiled once each: what a plan asks for are their arguments.

namespace towpath::tenstorrent::kernels {

using ChipOf = std::shared_ptr<const machine::Chip>;

Kernel source_sender(const ChipOf& chip, const WorkerTask& task, metalium::KernelLog& log);
Kernel source_receiver(const ChipOf& chip, const WorkerTask& task, metalium::KernelLog& log);
Kernel source_uncalled_sender(const ChipOf& chip, const WorkerTask& task, metalium::KernelLog& log);
EthernetKernel source_bare_sender(const ChipOf& chip, const BareLink& link,
                                  metalium::KernelLog& log);
EthernetKernel source_bare_receiver(const ChipOf& chip, const BareLink& link,
                                    metalium::KernelLog& log);

// What the kernels of a run have recorded.
void add_to(RunLog& log, const metalium::KernelLog& recorded, const machine::Chip& chip);

// Pointers lead to bytes of L1 above this offset on any system.
inline constexpr std::uint64_t kPointersFrom = 0x10000;

}  // namespace towpath::tenstorrent::kernels
