// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "towpath/gpu/study/exchange.hpp"
#include "towpath/gpu/study/rings.hpp"
#include "towpath/gpu/work.hpp"

namespace nb = nanobind;
using namespace nb::literals;

void bind_gpu_study(nb::module_& module) {
  using namespace towpath;
  using namespace towpath::gpu::study;
  using SharedMachine = std::shared_ptr<machine::Machine>;
  nb::enum_<ExchangeStage>(module, "ExchangeStage")
      .value("plain", ExchangeStage::plain)
      .value("separate_signal", ExchangeStage::separate_signal)
      .value("fused_signal", ExchangeStage::fused_signal);
  nb::enum_<RingKernel>(module, "RingKernel")
      .value("ring", RingKernel::ring)
      .value("simple_ring", RingKernel::simple_ring);
  module.def(
      "kernel_exchange_us",
      [](const SharedMachine& machine, ExchangeStage stage, std::uint64_t size_bytes, int threads,
         int bytes_per_thread, std::pair<int, int> gpus) {
        const ExchangeOptions options{stage,      size_bytes, threads, bytes_per_thread,
                                      gpus.first, gpus.second};
        return exchange_time(machine, options).us();
      },
      "machine"_a, "stage"_a, "size_bytes"_a, "threads"_a, "bytes_per_thread"_a, "gpus"_a,
      nb::call_guard<nb::gil_scoped_release>(),
      "Time of the slower of two kernels that exchange a buffer. Raises ValueError.");
  module.def(
      "kernel_all_reduce_us",
      [](const SharedMachine& machine, RingKernel kernel, std::uint64_t size_bytes, int threads,
         int bytes_per_thread, bool alternates) {
        const RingOptions options{kernel, size_bytes, threads, bytes_per_thread, alternates};
        return all_reduce_time(machine, options).us();
      },
      "machine"_a, "kernel"_a, "size_bytes"_a, "threads"_a, "bytes_per_thread"_a, "alternates"_a,
      nb::call_guard<nb::gil_scoped_release>(),
      "Time of the slowest of the kernels of an all-reduce in rings. Raises ValueError.");
  module.def(
      "kernel_ring_order",
      [](const SharedMachine& machine, bool alternates, int ring) {
        return ring_order(*machine, alternates, ring);
      },
      "machine"_a, "alternates"_a, "ring"_a, "The GPUs of a ring, in its order.");
}
