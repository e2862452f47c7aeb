// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "towpath/noc/chip_network.hpp"
#include "towpath/tenstorrent/metalium/source_run.hpp"

namespace towpath::tenstorrent::metalium {

// Kernels in source form on a network that is shared, mainly with the host. The caller runs the
// simulation.
class KernelsBeside {
 public:
  // Compiles and starts the kernels of workers. All are on this chip, whatever number they name,
  // and use no fabric. The network must stay until they have ended. Throws like
  // run_source_program().
  KernelsBeside(noc::ChipNetwork& network, const SourceProgram& program);

  bool is_over() const;
  // The state of the run: first and last cycle of each kernel, or 0, the end of the last one, or 0,
  // and their reports.
  const SourceResult& result() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the kernels
};

}  // namespace towpath::tenstorrent::metalium
