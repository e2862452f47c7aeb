// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/live/copy_paths.hpp"

#include "towpath/os/process.hpp"

namespace towpath::live {

namespace {

// Twice the bytes of the probe. Fewer bytes never justify the system call of a read, and take the
// path that the probe found: a trial takes a lap of the ring for each path, which is many small
// calls.
constexpr std::uint64_t kTunedBytesLeast = 64 << 10;

}  // namespace

CopyPaths::CopyPaths(const transport::LiveTransport& transport)
    : transport_(transport),
      is_crowded_(transport.is_crowded()),
      cache_bytes_(os::last_level_cache_bytes().value_or(0)),
      tuner_(StageRing::bytes(transport.ranks())) {}

void CopyPaths::prefer_streaming(bool is_faster) {
  streams_ = is_faster;
  // Ranks that share cores wait for each other more than for bytes, and the probe is not
  // informative.
  if (!is_crowded_) tuner_.expect(streams_ ? CopyPath::streamed : CopyPath::staged);
}

// If all inputs and results fit into the cache that the ranks share, a rank that uses its result
// finds it there.
void CopyPaths::begin(std::uint64_t size_bytes) {
  choice_ = {};
  streams_results_ = cache_bytes_ > 0 && 2 * size_bytes * index(transport_.ranks()) >= cache_bytes_;
}

// A staged byte is stored and read. A byte that is read in place costs a share of a system call and
// of the kernel's work per page.
void CopyPaths::choose(Kind kind, std::uint64_t size_bytes, bool may_read) {
  if (size_bytes < kTunedBytesLeast && !is_crowded_) {
    choice_ = {streams_ ? CopyPath::streamed : CopyPath::staged};
    return;
  }
  choice_ = tuner_.choose(kind, size_bytes, may_read && *reads_);
  kind_ = kind;
  size_bytes_ = size_bytes;
  if (choice_.is_timed) began_ = transport_.now();
}

void CopyPaths::note_end() {
  if (!choice_.is_timed) return;
  tuner_.note(kind_, size_bytes_, choice_.path, transport_.now() - began_);
}

}  // namespace towpath::live
