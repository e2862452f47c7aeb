// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "towpath/transport/reduction.hpp"

// Bytes of result per second. A reduction reads two operands where memcpy reads one, so that
// beyond the caches two thirds of memcpy is the most that can be had.

namespace towpath::transport {
namespace {

constexpr std::size_t kSizes[] = {64 << 10, 16 << 20};

// Bytes that are near 1 as 16-bit floats, and normal with normal products in the wider ones.
struct Operands {
  explicit Operands(std::size_t size)
      : a(size, std::byte{0x3c}), b(size, std::byte{0x3d}), result(size) {}
  std::vector<std::byte> a, b, result;
};

void copy(benchmark::State& state, std::size_t size) {
  Operands operands(size);
  for (auto _ : state) {
    std::memcpy(operands.result.data(), operands.a.data(), size);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

void combine(benchmark::State& state, std::size_t size, Reduction reduction) {
  Operands operands(size);
  for (auto _ : state) {
    reduce(operands.result.data(), operands.a.data(), operands.b.data(), size, reduction);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

const bool is_registered = [] {
  for (const std::size_t size : kSizes) {
    const std::string suffix = fmt::format("/{}_KiB", size >> 10);
    benchmark::RegisterBenchmark(("reduce/memcpy" + suffix).c_str(),
                                 [size](benchmark::State& state) { copy(state, size); });
    for (const DataType type : {DataType::int8, DataType::int32, DataType::int64, DataType::float16,
                                DataType::bfloat16, DataType::float32, DataType::float64}) {
      for (const ReductionOperation operation :
           {ReductionOperation::sum, ReductionOperation::prod, ReductionOperation::max}) {
        const std::string name =
            "reduce/" + std::string(name_of(type)) + "/" + std::string(name_of(operation)) + suffix;
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          combine(state, size, {type, operation});
        });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace towpath::transport
