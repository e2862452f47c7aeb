// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "towpath/machine/chip.hpp"
#include "towpath/tenstorrent/core/data_movement_core.hpp"
#include "towpath/tenstorrent/metalium/kernel_log.hpp"
#include "towpath/tenstorrent/metalium/worker_memory_map.hpp"

// Kernels in TT-Metalium's source form: a file with `void kernel_main()` and the real names and
// signatures of dataflow_api.h. It is compiled with the system's g++ at its first use, and runs on
// a core like any other kernel.
//
//   const CompiledKernel compiled = compile_kernel({.file = "reader.cpp", .compile_args = {4}},
//                                                  {.chip = chip});
//   program.create_kernel({.core = {1, 1}, .name = "reader", .runtime_args = {0x20000}},
//                         make_kernel(compiled, {.log = &log}));

namespace towpath::tenstorrent::metalium {

enum class Processor : std::uint8_t { data_movement_0, data_movement_1, compute, ethernet };
std::string_view name_of(Processor processor);

struct CircularBuffer {
  std::uint32_t offset = 0;
  std::uint32_t size_bytes = 0;
  std::uint32_t page_bytes = 0;
  std::uint8_t format = 0;  // DataFormat number
};
// Indexed by number. Entries without pages are unused.
using CircularBuffers = std::vector<CircularBuffer>;

struct KernelSource {
  std::filesystem::path file;  // its path, or with `text` its name in errors
  std::string text{};          // the source itself, or empty for the file
  std::vector<std::uint32_t> compile_args{};
  std::map<std::string, std::uint32_t> named_compile_args{};
  std::map<std::string, std::string> defines{};
  std::vector<std::filesystem::path> include_folders{};
  CircularBuffers circular_buffers{};  // of the core, with formats that are constants of the kernel
};

struct KernelTarget {
  std::shared_ptr<const machine::Chip> chip;
  Processor processor = Processor::data_movement_0;
  int noc_index = 0;
};

// A kernel as a shared object on disk.
struct CompiledKernel {
  std::filesystem::path library;
  KernelTarget target;
};

// Compiles a kernel, or finds it in the cache ($XDG_CACHE_HOME/towpath or ~/.cache/towpath) by its
// source, included headers, definitions and compile-time arguments. The compiler is $CXX, or g++.
// Throws std::invalid_argument with the compiler's first error if compilation fails.
CompiledKernel compile_kernel(const KernelSource& source, const KernelTarget& target);

class KernelArrivals;
class KernelFabric;

struct KernelSetup {
  machine::Coordinate logical{};  // its position in the logical grid
  CircularBuffers circular_buffers{};
  std::vector<std::uint32_t> common_args{};
  KernelLog* log = nullptr;              // outlives the run, may be null
  const KernelFabric* fabric = nullptr;  // outlives the run, may be null
  KernelArrivals* arrivals = nullptr;    // outlives the run, null if they are not watched
};

// The kernel for Program::create_kernel(). Each core and run has a copy of the shared object, with
// its global variables. For an Ethernet core use the other create_kernel().
Kernel make_kernel(const CompiledKernel& compiled, KernelSetup setup);

}  // namespace towpath::tenstorrent::metalium
