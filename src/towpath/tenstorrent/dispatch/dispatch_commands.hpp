// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "towpath/machine/chip.hpp"

// The commands of a host to a chip's dispatcher. A command for the prefetcher contains one for the
// dispatcher, followed by its data. Source of the sizes: tt-metal,
// impl/dispatch/kernels/cq_commands.hpp and impl/dispatch/device_command_calculator.hpp. The fields
// are chosen here.

namespace towpath::tenstorrent {

// Source: tt-metal, impl/dispatch/util/dispatch_settings.cpp, cores of kind Ethernet: entries of
// the prefetcher's queue, maximum bytes of an entry, the prefetcher's ring on the host's chip and
// on a remote one, the dispatcher's ring and its pages.
inline constexpr int kPrefetchEntries = 128;
inline constexpr std::uint64_t kPrefetchBytesMax = 32 << 10;
inline constexpr std::uint64_t kPrefetchRingBytes = 64 << 10;
inline constexpr std::uint64_t kRemotePrefetchRingBytes = 128 << 10;
inline constexpr std::uint64_t kDispatchRingBytes = 128 << 10;
inline constexpr std::uint64_t kDispatchPageBytes = 4096;
// Source: tt-metal, impl/dispatch/kernels/cq_prefetch.hpp.
inline constexpr int kPrefetchReads = 4;
// Source: tt-metal, hw/inc/hostdev/dev_msgs.h: launch_msg_t of a worker with five processors,
// counted, and its go message.
inline constexpr std::uint64_t kLaunchMessageBytes = 112;
inline constexpr std::uint64_t kGoMessageBytes = 4;

struct PrefetchCommand {
  enum class Kind : std::uint32_t { relay_inline, stall };
  Kind kind = Kind::relay_inline;
  std::uint32_t length_bytes = 0;  // of the dispatcher's command, with its data
  std::uint32_t stride_bytes = 0;  // to the next command
  std::uint32_t unused = 0;
};
static_assert(sizeof(PrefetchCommand) == 16);

// Before commands for another chip, padded to the host's alignment.
struct RelayHeader {
  std::uint64_t length_bytes = 0;  // including the header
};

struct DispatchCommand {
  enum class Kind : std::uint8_t {
    set_write_offsets,
    wait,
    write_linear,
    write_packed,
    write_packed_large,
    go_signal,
    write_host,
  };
  Kind kind = Kind::wait;
  std::uint8_t flags = 0;
  std::uint16_t count = 0;         // number of targets
  std::uint32_t length_bytes = 0;  // of the whole command
  std::uint32_t size_bytes = 0;    // of the data of a target, or the word of go_signal
  std::uint32_t value = 0;         // an offset, or for wait the number of ended cores
};
static_assert(sizeof(DispatchCommand) == 16);

inline constexpr std::uint8_t kWaitsForWrites = 1;      // of wait
inline constexpr std::uint8_t kNotifiesPrefetcher = 2;  // of wait
inline constexpr std::uint8_t kGoesToRectangles = 4;    // of write_packed, go_signal

// Follows the command of write_linear.
struct LinearTarget {
  std::int32_t x = 0;
  std::int32_t y = 0;
  std::uint64_t offset = 0;
};
static_assert(sizeof(LinearTarget) == 16);

struct UnicastTarget {
  std::uint16_t x = 0;
  std::uint16_t y = 0;
};
// Workers of a rectangle.
struct MulticastTarget {
  UnicastTarget first;
  UnicastTarget last;
};
// A target of write_packed_large, with its own data.
struct LargeTarget {
  MulticastTarget rectangle;
  std::uint32_t offset = 0;
};
static_assert(sizeof(UnicastTarget) == 4 && sizeof(MulticastTarget) == 8 &&
              sizeof(LargeTarget) == 12);

// Rectangles that cover exactly these workers of the chip, each once.
std::vector<MulticastTarget> rectangles_of(const machine::Chip& chip,
                                           std::vector<machine::Coordinate> workers);

// Encodes the host's commands as byte sequences.
class CommandWriter {
 public:
  using Bytes = std::vector<std::byte>;
  explicit CommandWriter(const machine::Chip& chip);

  void set_write_offsets();
  // Waits until all earlier writes have arrived.
  void wait_for_writes();
  // The same, and until `ended` cores have ended since the start. `stalls_prefetcher`: later
  // commands are not relayed before.
  void wait_for_cores(std::uint32_t ended, bool stalls_prefetcher);
  // Bytes for one tile, in commands of the size of a fetch.
  void write_linear(machine::Coordinate tile, std::uint64_t offset,
                    std::span<const std::byte> data);
  // To the same offset of each core, with data of equal length.
  void write_packed(std::span<const machine::Coordinate> cores, std::uint64_t offset,
                    std::span<const Bytes> data);
  void write_packed(std::span<const MulticastTarget> rectangles, std::uint64_t offset,
                    std::span<const std::byte> data);
  void write_packed_large(std::span<const MulticastTarget> rectangles, std::uint64_t offset,
                          std::span<const std::byte> data);
  // A word.
  void go_signal(std::span<const MulticastTarget> rectangles, std::uint64_t offset,
                 std::uint32_t word);
  void go_signal(std::span<const machine::Coordinate> cores, std::uint64_t offset,
                 std::uint32_t word);
  // Reports the number of events to the host.
  void write_host(std::uint32_t events);

  // The fetches of the prefetcher, in order, each with all commands that fit.
  std::vector<Bytes> take_entries();

 private:
  // Writes commands with all targets that fit into a fetch, at most `targets_max`.
  template <typename Target, typename DataOf>
  void write_packed_parts(std::span<const Target> targets, DispatchCommand command,
                          std::size_t targets_max, const DataOf& data_of);
  void begin(const DispatchCommand& command);
  template <typename Value>
  void add(const Value& value) {
    add_bytes(std::as_bytes(std::span(&value, 1)));
  }
  void add_bytes(std::span<const std::byte> bytes);
  void align(std::uint64_t unit_bytes);
  void end();

  std::uint64_t alignment_bytes_;
  Bytes current_;
  std::vector<Bytes> commands_;
};

}  // namespace towpath::tenstorrent
