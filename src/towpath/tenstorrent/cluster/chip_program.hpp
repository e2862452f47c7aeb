// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/machine/chip.hpp"
#include "towpath/tenstorrent/cluster/cluster.hpp"
#include "towpath/tenstorrent/device/program.hpp"

namespace towpath::tenstorrent {

// A program on a single chip.
class ChipProgram final : public Program {
 public:
  ChipProgram(std::shared_ptr<const machine::Chip> chip, const Options& options);

  // Runs all kernels to their end, once. Throws std::invalid_argument on a call that cannot be
  // carried out, DeadlockError when kernels wait forever, and std::runtime_error when
  //   - bytes change that a write has yet to read (wait for noc_async_writes_flushed first),
  //   - a kernel ends with requests that it has not waited for,
  //   - the run takes more than cycles_max.
  // Errors name kernel, core and call.
  ProgramResult run();

 private:
  Cluster cluster_;  // ends before the kernels, which its simulation unwinds
};

}  // namespace towpath::tenstorrent
