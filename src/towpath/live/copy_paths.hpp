// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "towpath/live/path_tuner.hpp"
#include "towpath/live/shared_rank.hpp"
#include "towpath/transport/live_transport.hpp"
#include "towpath/transport/streaming.hpp"

namespace towpath::live {

// The path for copying the bytes of the current call: to slots, to stages and to results, through
// the caches or past them, or not staged at all.
class CopyPaths {
 public:
  explicit CopyPaths(const transport::LiveTransport& transport);

  // --- results of the probe ----------------------------------------------------------------------
  // Whether stores past the caches reach other ranks sooner.
  void prefer_streaming(bool is_faster);
  // True if ranks can read the memory of each other's processes.
  void allow_reads(bool are_allowed) { reads_ = are_allowed; }
  bool has_tried_reads() const { return reads_.has_value(); }

  // --- the path of the current call --------------------------------------------------------------
  // `size_bytes`: the array of one rank.
  void begin(std::uint64_t size_bytes);
  // Chooses the path of an array that is not on the heap.
  void choose(Kind kind, std::uint64_t size_bytes, bool may_read);
  // Uses the path that another rank chose.
  void follow(CopyPath path) { choice_ = {path}; }
  CopyPath path() const { return choice_.path; }
  // True if the duration includes the reads of all other ranks.
  bool is_whole() const { return choice_.is_whole; }
  // The call has ended.
  void note_end();

  // --- copies ------------------------------------------------------------------------------------
  void to_slot(std::byte* to, const std::byte* from, std::uint64_t size_bytes) const {
    // Past the caches, 1 KiB among 4 ranks on 2 cores took 6.9 us instead of 6.1.
    copy(to, from, size_bytes, streams_ && !is_crowded_);
  }
  void to_stage(std::byte* to, const std::byte* from, std::uint64_t size_bytes) const {
    copy(to, from, size_bytes, choice_.path == CopyPath::streamed);
  }
  void to_result(std::byte* to, const std::byte* from, std::uint64_t size_bytes) const {
    copy(to, from, size_bytes, streams_results_);
  }
  static void copy(std::byte* to, const std::byte* from, std::uint64_t size_bytes, bool streams) {
    if (streams && size_bytes >= kStreamedBytesLeast) {
      transport::stream_copy(to, from, size_bytes);
    } else if (size_bytes > 0) {
      std::memcpy(to, from, size_bytes);
    }
  }

 private:
  // Smaller copies move from cache to cache faster than through memory, at any distance: between
  // two distant ranks 128 B take 0.40 us instead of 0.66, 1 KiB 0.55 instead of 0.75, 2 KiB the
  // same, 8 KiB 3.1 instead of 1.8.
  static constexpr std::uint64_t kStreamedBytesLeast = 2 << 10;

  const transport::LiveTransport& transport_;
  bool is_crowded_;
  std::uint64_t cache_bytes_;  // of the last level, or 0
  PathTuner tuner_;
  PathTuner::Choice choice_;
  Kind kind_ = Kind::barrier;
  std::uint64_t size_bytes_ = 0;
  Time began_;
  bool streams_ = false;          // small arrays to slots and stages
  bool streams_results_ = false;  // of the current call
  std::optional<bool> reads_;
};

}  // namespace towpath::live
