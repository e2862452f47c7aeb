// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "towpath/tenstorrent/metalium/kernel_include/circular_buffers.h"
#include "towpath/tenstorrent/metalium/kernel_include/tensix_types.h"

// Types of TT-Metalium's host interface, under its names: cores, formats, configurations of
// kernels, circular buffers and buffers. Numbers that kernels also use are in their headers.

struct CoreCoord {
  std::size_t x = 0;
  std::size_t y = 0;

  constexpr CoreCoord() = default;
  constexpr CoreCoord(std::size_t column, std::size_t row) : x(column), y(row) {}
  auto operator<=>(const CoreCoord&) const = default;
  std::string str() const { return fmt::format("(x={},y={})", x, y); }
};

template <>
struct std::hash<CoreCoord> {
  std::size_t operator()(const CoreCoord& core) const noexcept { return core.x * 1024 + core.y; }
};

struct CoreRange {
  CoreCoord start_coord;
  CoreCoord end_coord;

  constexpr CoreRange(const CoreCoord& core) : start_coord(core), end_coord(core) {}  // NOLINT
  CoreRange(const CoreCoord& start, const CoreCoord& end) : start_coord(start), end_coord(end) {
    if (end.x < start.x || end.y < start.y) {
      throw std::invalid_argument(fmt::format(
          "a range of cores from {} to {} is empty; its last core must not be before its first",
          start.str(), end.str()));
    }
  }
  bool contains(const CoreCoord& core) const {
    return core.x >= start_coord.x && core.x <= end_coord.x && core.y >= start_coord.y &&
           core.y <= end_coord.y;
  }
  CoreCoord grid_size() const {
    return {end_coord.x - start_coord.x + 1, end_coord.y - start_coord.y + 1};
  }
  std::size_t size() const { return grid_size().x * grid_size().y; }
  auto operator<=>(const CoreRange&) const = default;
};

class CoreRangeSet {
 public:
  CoreRangeSet() = default;
  CoreRangeSet(const CoreCoord& core) : ranges_{CoreRange(core)} {}            // NOLINT
  CoreRangeSet(const CoreRange& range) : ranges_{range} {}                     // NOLINT
  CoreRangeSet(std::vector<CoreRange> ranges) : ranges_(std::move(ranges)) {}  // NOLINT
  template <typename Set>
    requires requires(const Set& set) { set.count(CoreRange(CoreCoord())); }
  CoreRangeSet(const Set& ranges) : ranges_(ranges.begin(), ranges.end()) {}  // NOLINT

  const std::vector<CoreRange>& ranges() const { return ranges_; }
  bool contains(const CoreCoord& core) const {
    for (const CoreRange& range : ranges_) {
      if (range.contains(core)) return true;
    }
    return false;
  }
  std::size_t num_cores() const { return cores().size(); }
  // Row-major within each range, without duplicates.
  std::vector<CoreCoord> cores() const;

 private:
  std::vector<CoreRange> ranges_;
};

std::vector<CoreCoord> corerange_to_cores(const CoreRangeSet& cores);

namespace tt {

using chip_id_t = int;
using ChipId = int;

enum class ARCH { Invalid = 0, GRAYSKULL = 1, WORMHOLE_B0 = 2, BLACKHOLE = 3, QUASAR = 4 };

std::uint32_t tile_size(DataFormat format);

namespace tt_metal {

using KernelHandle = std::uint32_t;
using CBHandle = std::uintptr_t;

enum class DataMovementProcessor { RISCV_0 = 0, RISCV_1 = 1 };
enum NOC : std::uint8_t { RISCV_0_default = 0, RISCV_1_default = 1, NOC_0 = 0, NOC_1 = 1 };
enum NOC_MODE : std::uint8_t { DM_DEDICATED_NOC = 0, DM_DYNAMIC_NOC = 1 };
enum Eth : std::uint8_t { SENDER = 0, RECEIVER = 1, IDLE = 2 };
enum class BufferType : std::uint8_t { DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE };
enum class TensorMemoryLayout : std::uint8_t {
  INTERLEAVED,
  HEIGHT_SHARDED,
  WIDTH_SHARDED,
  BLOCK_SHARDED
};
enum class HalMemType : std::uint8_t { L1, DRAM, HOST };
using Defines = std::map<std::string, std::string>;
using NamedArguments = std::unordered_map<std::string, std::uint32_t>;

struct DataMovementConfig {
  DataMovementProcessor processor = DataMovementProcessor::RISCV_0;
  NOC noc = NOC::RISCV_0_default;
  NOC_MODE noc_mode = NOC_MODE::DM_DEDICATED_NOC;
  std::vector<std::uint32_t> compile_args{};
  Defines defines{};
  NamedArguments named_compile_args{};
};
struct ReaderDataMovementConfig : DataMovementConfig {
  explicit ReaderDataMovementConfig(std::vector<std::uint32_t> arguments = {},
                                    Defines definitions = {})
      : DataMovementConfig{.processor = DataMovementProcessor::RISCV_1,
                           .noc = NOC::NOC_0,
                           .compile_args = std::move(arguments),
                           .defines = std::move(definitions)} {}
};
struct WriterDataMovementConfig : DataMovementConfig {
  explicit WriterDataMovementConfig(std::vector<std::uint32_t> arguments = {},
                                    Defines definitions = {})
      : DataMovementConfig{.processor = DataMovementProcessor::RISCV_0,
                           .noc = NOC::NOC_1,
                           .compile_args = std::move(arguments),
                           .defines = std::move(definitions)} {}
};
struct EthernetConfig {
  Eth eth_mode = Eth::SENDER;
  NOC noc = NOC::NOC_0;
  DataMovementProcessor processor = DataMovementProcessor::RISCV_0;
  std::vector<std::uint32_t> compile_args{};
  Defines defines{};
  NamedArguments named_compile_args{};
};
enum class MathFidelity : std::uint8_t { LoFi = 0, HiFi2 = 2, HiFi3 = 3, HiFi4 = 4 };
enum class UnpackToDestMode : std::uint8_t { UnpackToDestFp32, Default };
struct ComputeConfig {
  MathFidelity math_fidelity = MathFidelity::HiFi4;
  bool fp32_dest_acc_en = false;
  bool dst_full_sync_en = false;
  std::vector<UnpackToDestMode> unpack_to_dest_mode{};
  bool bfp8_pack_precise = false;
  bool math_approx_mode = false;
  std::vector<std::uint32_t> compile_args{};
  Defines defines{};
  NamedArguments named_compile_args{};
};
using KernelConfiguration = std::variant<DataMovementConfig, EthernetConfig, ComputeConfig>;

class Buffer;

class CircularBufferConfig {
 public:
  CircularBufferConfig(std::uint32_t total_size, const std::map<std::uint8_t, DataFormat>& formats);
  CircularBufferConfig& set_page_size(std::uint8_t number, std::uint32_t page_size);
  CircularBufferConfig& set_globally_allocated_address(const Buffer& buffer);

  std::uint32_t total_size() const { return total_size_; }
  const std::map<std::uint8_t, DataFormat>& formats() const { return formats_; }
  std::uint32_t page_size(std::uint8_t number) const;
  // 0: allocated by the program.
  std::uint32_t address() const { return address_; }

 private:
  std::uint32_t total_size_;
  std::map<std::uint8_t, DataFormat> formats_;
  std::map<std::uint8_t, std::uint32_t> page_sizes_;
  std::uint32_t address_ = 0;
};

}  // namespace tt_metal
}  // namespace tt

using tt::tt_metal::MathFidelity;

enum class CoreType : std::uint8_t { WORKER, ETH, DRAM, PCIE, ARC, TENSIX = WORKER };

// 16-bit numbers with the range of float.
class bfloat16 {
 public:
  bfloat16() = default;
  bfloat16(float value)  // NOLINT: converts like the original
      : bits_(rounded(std::bit_cast<std::uint32_t>(value))) {}
  explicit bfloat16(std::uint16_t bits) : bits_(bits) {}
  template <std::integral Integer>
  bfloat16(Integer value) : bfloat16(static_cast<float>(value)) {}                     // NOLINT
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }  // NOLINT
  float to_float() const { return *this; }
  std::uint16_t to_packed() const { return bits_; }
  std::uint16_t to_uint16() const { return bits_; }
  bool operator==(const bfloat16& other) const { return bits_ == other.bits_; }

 private:
  // To the nearest value, with ties to even.
  static constexpr std::uint16_t rounded(std::uint32_t bits) {
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  std::uint16_t bits_ = 0;
};

inline std::uint32_t pack_two_bfloat16_into_uint32(std::pair<bfloat16, bfloat16> values) {
  return values.first.to_packed() | std::uint32_t{values.second.to_packed()} << 16;
}

#define TT_ASSERT(condition, ...)                                             \
  do {                                                                        \
    if (!(condition)) {                                                       \
      throw std::runtime_error("the program's assertion fails: " #condition); \
    }                                                                         \
  } while (false)
#define TT_FATAL(condition, ...) TT_ASSERT(condition)
#define TT_THROW(...) throw std::runtime_error(fmt::format(__VA_ARGS__))
