// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "sentence.hpp"

namespace towpath::tenstorrent {

void run(noc::Bench& bench, const Kernel& kernel, const KernelConfig& config) {
  bool is_over = false;
  run_kernel(bench.network, config, [&](DataMovementCore& core) {
    kernel(core);
    is_over = true;
  });
  bench.simulation.run();
  EXPECT_TRUE(is_over);
}

std::string refusal(const Kernel& kernel, const KernelConfig& config) {
  noc::Bench bench;
  return sentence_of([&] {
    run_kernel(bench.network, config, kernel);
    bench.simulation.run();
  });
}

}  // namespace towpath::tenstorrent
